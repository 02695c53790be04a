package holdfast

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Delivery is an event on its way to an endpoint, or what became of it.
type Delivery struct {
	ID        string        `json:"id"` // webhook-id, the same on every try and replay
	Endpoint  string        `json:"endpoint"`
	Slot      int64         `json:"slot"` // of the endpoint's log
	Version   int64         `json:"version"`
	Event     int64         `json:"event"` // its number
	Type      string        `json:"type"`
	State     DeliveryState `json:"state"`
	Tries     int           `json:"tries"`
	Status    int           `json:"status,omitempty"` // that the endpoint answered last; 0 = no answer
	Error     string        `json:"error,omitempty"`  // why the last try failed
	Took      int64         `json:"took_ms"`          // the last try
	CreatedAt Time          `json:"created_at"`
	NextAt    Time          `json:"next_at,omitzero"` // while pending: the next try, or the end of the lease
	DoneAt    Time          `json:"done_at,omitzero"`
}

// DeliveryState says how a delivery is.
type DeliveryState string

const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed" // after the last try
)

// Limits of deliveries.
const (
	// DeliveryLog is how many deliveries of an endpoint are kept, and how many can
	// be pending: the oldest makes room for the next, and if it is pending the feed
	// waits.
	DeliveryLog = 500
	planPage    = 50 // deliveries that are begun in one entry
	planSkip    = 1000
	hookWidth   = 16               // calls to one endpoint at once
	hookLease   = 30 * time.Second // a process owns a delivery for so long; more than a call takes
	hookRest    = 50 * time.Millisecond
	maxWhy      = 200 // bytes of Delivery.Error
)

const kindDelivery = "delivery"

// hookDelays are those between two tries, 75.6 hours in all; up to a tenth is
// added to each by chance.
var hookDelays = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

func slotID(endpoint string, slot int64) string { return fmt.Sprintf("%s-%03d", endpoint, slot) }

func (d Delivery) record() (ledger.Record, error) {
	body, err := marshalled(d, kindDelivery, d.ID)
	return ledger.Record{Kind: kindDelivery, ID: slotID(d.Endpoint, d.Slot), Version: d.Version, State: string(d.State),
		Owner: d.Endpoint, Due: int64(d.NextAt), Body: body}, err
}

func marshalled(v any, kind, id string) (json.RawMessage, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("holdfast: write %s %s: %w", kind, id, err)
	}
	return body, nil
}

// Deliveries lists what is in an endpoint's log, the newest first; at most
// DeliveryLog. state "" = all.
func (h *Holdfast) Deliveries(ctx context.Context, endpoint string, state DeliveryState) ([]Delivery, error) {
	if _, err := h.endpoint(ctx, endpoint); err != nil {
		return nil, err
	}
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kindDelivery, Owner: endpoint, State: string(state), Limit: DeliveryLog})
	if err != nil {
		return nil, fmt.Errorf("holdfast: list deliveries to %s: %w", endpoint, err)
	}
	all, err := documents[Delivery](rs)
	slices.SortFunc(all, func(a, b Delivery) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.Event, a.Event))
	})
	return all, err
}

// ReplayDelivery delivers one event again, under the id it had, once for key.
func (h *Holdfast) ReplayDelivery(ctx context.Context, key Key, endpoint string, event int64) error {
	if _, ok, err := replayed[cursor](ctx, h, key); ok || err != nil {
		return err
	}
	if _, err := h.endpoint(ctx, endpoint); err != nil {
		return err
	}
	rows, err := h.store.Events(ctx, ledger.EventQuery{After: event - 1, Limit: 1})
	if err != nil {
		return fmt.Errorf("holdfast: replay %d to %s: %w", event, endpoint, err)
	}
	if len(rows) == 0 || rows[0].Seq != event {
		return reject(CodeNotFound, "no event %d", event)
	}
	for range maxConflict {
		c, err := document[cursor](ctx, h, kindCursor, endpoint)
		if err != nil {
			return err
		}
		begun, ok, err := h.begin(ctx, key, c, messages(rows), c.At)
		if err != nil || ok && begun > 0 {
			h.work.ringHooks()
			return err
		}
		if ok {
			return reject(CodeOverloaded, "%d deliveries to %s are pending", DeliveryLog, endpoint)
		}
	}
	return fmt.Errorf("holdfast: replay %d to %s: %d conflicts", event, endpoint, maxConflict)
}

// begin writes deliveries of events, as many as there is room for, once for key, and
// moves the cursor: to upTo if that was all, else to the last one. false = another
// process was faster.
func (h *Holdfast) begin(ctx context.Context, key Key, c cursor, events []Message, upTo int64) (begun int, ok bool, err error) {
	now, err := h.now(ctx)
	if err != nil {
		return 0, false, err
	}
	entry := ledger.Entry{ID: key.entry(), Fingerprint: key.Print, Records: make([]ledger.Record, 1)}
	for _, m := range events {
		slot := (c.Count + int64(begun)) % DeliveryLog
		old, err := h.slot(ctx, c.Endpoint, slot)
		if err != nil {
			return 0, false, err
		}
		if old.State == DeliveryPending || begun == planPage {
			break
		}
		d := Delivery{ID: c.Endpoint + "_" + strconv.FormatInt(m.ID, 10), Endpoint: c.Endpoint, Slot: slot, Version: old.Version + 1,
			Event: m.ID, Type: m.Type, State: DeliveryPending, CreatedAt: now, NextAt: now}
		r, err := d.record()
		if err != nil {
			return 0, false, err
		}
		entry.Records = append(entry.Records, r)
		begun++
	}
	if begun < len(events) {
		if begun == 0 {
			return 0, true, nil
		}
		upTo = events[begun-1].ID
	}
	c.At, c.Count, c.Version = upTo, c.Count+int64(begun), c.Version+1
	if entry.Records[0], err = c.record(); err != nil {
		return 0, false, err
	}
	_, ok, err = h.fresh(ctx, entry)
	return begun, ok, err
}

// slot is what is in a slot of an endpoint's log; one that was never used is
// empty.
func (h *Holdfast) slot(ctx context.Context, endpoint string, slot int64) (d Delivery, err error) {
	d, err = document[Delivery](ctx, h, kindDelivery, slotID(endpoint, slot))
	if r := (*Rejection)(nil); errors.As(err, &r) {
		return Delivery{}, nil
	}
	return d, err
}

// hookBody is what is delivered: the form that Standard Webhooks proposes.
type hookBody struct {
	Type      string          `json:"type"`
	Timestamp Time            `json:"timestamp"` // when it happened
	ID        int64           `json:"id"`        // of the event in the feed
	Topic     string          `json:"topic"`
	Data      json.RawMessage `json:"data"`
}

// hookRequest is one try.
func hookRequest(ctx context.Context, url, id string, m Message, secrets [][]byte) (*http.Request, error) {
	data := m.Data
	if data == nil {
		data = json.RawMessage("{}")
	}
	body, err := marshalled(hookBody{m.Type, m.At, m.ID, m.Topic, data}, "webhook", id)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("holdfast: webhook %s: %w", id, err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10) // the receiver holds it against its own clock
	var signatures []string
	for _, s := range secrets {
		mac := hmac.New(sha256.New, s)
		fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Holdfast")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", at)
	r.Header.Set("webhook-signature", strings.Join(signatures, " "))
	return r, nil
}

// callHook makes one try. err says why it failed; status 0 = there was no answer.
func (h *Holdfast) callHook(r *http.Request) (status int, err error) {
	resp, err := h.hooks.client.Do(r)
	if err != nil {
		return 0, hookFailure(err)
	}
	defer resp.Body.Close()
	// Read, so that the connection can be used again; what it says is nobody's, and
	// the status has said it all.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, hookAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, fmt.Errorf("answered %d", resp.StatusCode)
	}
	return resp.StatusCode, nil
}

// hookFailure says why without the URL, which may have a secret in it.
func hookFailure(err error) error {
	var refused *addressRefused
	if errors.As(err, &refused) {
		return refused
	}
	if t := (interface{ Timeout() bool })(nil); errors.As(err, &t) && t.Timeout() {
		return errors.New("no answer in time")
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// outcome is a delivery after a try.
func (d Delivery) outcome(now Time, status int, why error) Delivery {
	d.Tries++
	d.Status, d.Error, d.NextAt = status, "", 0
	if why == nil {
		d.State, d.DoneAt = DeliveryDelivered, now
		return d
	}
	if d.Error = why.Error(); len(d.Error) > maxWhy {
		d.Error = strings.ToValidUTF8(d.Error[:maxWhy], "")
	}
	if d.Tries > len(hookDelays) || status == http.StatusGone {
		d.State, d.DoneAt = DeliveryFailed, now
		return d
	}
	delay := hookDelays[d.Tries-1]
	d.NextAt = now.Add(delay + rand.N(delay/10))
	return d
}
