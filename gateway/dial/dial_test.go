package dial_test

import (
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

type faults struct {
	Late time.Duration `json:"late"`
	Lost float64       `json:"lost"`
}

func TestADialIsReadAsItIsWritten(t *testing.T) {
	want := faults{1500 * time.Millisecond, 0.25}
	b, err := dial.Marshal(want)
	if err != nil || string(b) != `{"late":"1.5s","lost":0.25}` {
		t.Fatalf("got %s, %v", b, err)
	}
	got := faults{Late: time.Hour}
	if err := dial.Unmarshal(b, &got); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if err := dial.Unmarshal([]byte(`{"lost":1}`), &got); err != nil || got != (faults{Lost: 1}) {
		t.Errorf("absent fields: got %+v, %v; want them zero", got, err)
	}
}

func TestAWrongDialChangesNothing(t *testing.T) {
	for _, bad := range []string{
		`{"lost":1.1}`, `{"lost":-0.1}`, `{"lost":"1"}`, `{"late":1}`, `{"late":"-1s"}`, `{"late":"soon"}`, `{"lots":1}`, `{"Lost":1}`, `[]`, ``,
	} {
		got := faults{Lost: 0.5}
		if err := dial.Unmarshal([]byte(bad), &got); err == nil || got != (faults{Lost: 0.5}) {
			t.Errorf("%s: got %+v, %v", bad, got, err)
		}
	}
}

func TestADialAtRestDrawsNothing(t *testing.T) {
	l := dial.Luck{Rand: rand.New(rand.NewPCG(1, 2))}
	fresh := rand.New(rand.NewPCG(1, 2)).Uint64()
	if l.Chance(0) || l.UpTo(0) != 0 {
		t.Error("something went wrong with a dial at rest")
	}
	if got := l.Uint64(); got != fresh {
		t.Errorf("got %d, want the first draw, %d", got, fresh)
	}
	if !l.Chance(1) || l.UpTo(time.Hour) >= time.Hour {
		t.Error("a dial at 1 did nothing, or too much")
	}
}

func TestAnAgendaGoesByTimeAndThenByOrder(t *testing.T) {
	var a dial.Agenda[string]
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a.Add(noon.Add(time.Hour), "late")
	a.Add(noon, "first")
	a.Add(noon, "second")
	if at, ok := a.Next(); !ok || !at.Equal(noon) {
		t.Errorf("got %v, %v", at, ok)
	}
	var got []string
	for {
		v, ok := a.Due(noon)
		if !ok {
			break
		}
		got = append(got, v)
	}
	if want := []string{"first", "second"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if v, ok := a.Due(noon.Add(time.Hour)); !ok || v != "late" {
		t.Errorf("got %q, %v", v, ok)
	}
}

func TestABrowserGetsItsLanguage(t *testing.T) {
	for _, c := range []struct{ target, accept, want string }{
		{"/", "", "en"}, {"/", "zh-CN,en;q=0.8", "zh"}, {"/", "fr, zh;q=0.5", "zh"}, {"/?lang=zh", "en", "zh"}, {"/?lang=fr", "zh", "zh"},
	} {
		r := httptest.NewRequest("GET", c.target, nil)
		r.Header.Set("Accept-Language", c.accept)
		if got := dial.Language(r); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.target, c.accept, got, c.want)
		}
	}
}
