// Package dial has what the gateways' simulators share: the dial that says how
// often each thing goes wrong, the agenda of what a clock will do, and the
// looks of their pages. It knows nothing of any gateway.
//
// A simulator's dial is a struct of its own, called faults here: every field is
// a probability (float64, 0 to 1) or the most that something is late
// (time.Duration, 0 or more), and has its name in a json tag. The zero value is
// a faultless gateway. As JSON the durations are strings such as "1.5s".
package dial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"
)

var duration = reflect.TypeFor[time.Duration]()

// Marshal writes faults, a struct, as JSON.
func Marshal(faults any) ([]byte, error) {
	all := map[string]any{}
	for _, r := range Rows(faults) {
		all[r.Name] = r.Value
	}
	return json.Marshal(all)
}

// Unmarshal reads what Marshal writes into faults, a pointer to a struct.
// Absent fields become zero; unknown fields and values out of range are errors
// and change nothing.
func Unmarshal(data []byte, faults any) error {
	var given map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&given); err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	into := reflect.ValueOf(faults).Elem()
	read := reflect.New(into.Type()).Elem()
	for i := range read.NumField() {
		name := read.Type().Field(i).Tag.Get("json")
		raw, ok := given[name]
		if !ok {
			continue
		}
		delete(given, name)
		if err := set(read.Field(i), raw); err != nil {
			return fmt.Errorf("read faults: %s: %w", name, err)
		}
	}
	for name := range given {
		return fmt.Errorf("read faults: there is no %q", name)
	}
	into.Set(read)
	return nil
}

func set(field reflect.Value, raw []byte) error {
	if field.Type() != duration {
		var p float64
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%v is not within 0 to 1", p)
		}
		field.SetFloat(p)
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("%s is negative", d)
	}
	field.SetInt(int64(d))
	return nil
}

// Row is one field of a dial, as the template "dial" shows it.
type Row struct {
	Name string // of the JSON field
	Kind string // number or duration
	// Value is a float64, or a duration's string.
	Value any
}

// Rows lists the fields of faults, a struct, in their order.
func Rows(faults any) []Row {
	v := reflect.ValueOf(faults)
	var rows []Row
	for i := range v.NumField() {
		r := Row{Name: v.Type().Field(i).Tag.Get("json"), Kind: "number", Value: v.Field(i).Interface()}
		if d, ok := r.Value.(time.Duration); ok {
			r.Kind, r.Value = "duration", d.String()
		}
		rows = append(rows, r)
	}
	return rows
}

// Luck makes the choices. It is not safe for concurrent use.
type Luck struct{ *rand.Rand }

// Chance says yes with probability p. It draws nothing at 0, so that a dial at
// rest leaves the seed's other choices as they were.
func (l Luck) Chance(p float64) bool { return p > 0 && l.Float64() < p }

// UpTo is an even choice from 0 to below d.
func (l Luck) UpTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(l.Int64N(int64(d)))
}

// Pick is an even choice of one.
func Pick[T any](l Luck, of ...T) T { return of[l.IntN(len(of))] }
