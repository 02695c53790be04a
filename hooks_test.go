package holdfast

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// mask is a Sealer that a test can read.
type mask struct{}

func (mask) Seal(s string) string { return "sealed:" + base64.StdEncoding.EncodeToString([]byte(s)) }

func (mask) Open(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "sealed:"))
	return string(b), err
}

func hooked(o *Options) { o.Sealer, o.PrivateEndpoints = mask{}, true }

// receiver is a shop's endpoint.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	calls  []*http.Request
	bodies []string
	hang   chan struct{} // calls wait for it to close; nil = they don't
	hung   chan struct{} // receives when one waits
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: 200, hung: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.calls, r.bodies = append(r.calls, req), append(r.bodies, string(body))
	status, hang := r.status, r.hang
	r.mu.Unlock()
	if hang != nil {
		nudge(r.hung)
		select {
		case <-hang:
		case <-req.Context().Done():
		}
	}
	if status/100 == 3 {
		w.Header().Set("Location", r.URL+"/elsewhere")
	}
	w.WriteHeader(status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) got() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		ids = append(ids, c.Header.Get("webhook-id"))
	}
	return ids
}

// deliver does what is due until nothing is.
func (b *bench) deliver(h *Holdfast) {
	b.t.Helper()
	for range 50 {
		before, _ := h.store.Head(ctx)
		if _, err := h.work.deliver(ctx); err != nil {
			b.t.Fatal(err)
		}
		h.work.tasks.Wait()
		if after, _ := h.store.Head(ctx); after == before {
			return
		}
	}
	b.t.Fatal("never came to rest")
}

func (b *bench) endpoint(url string, types ...string) (Endpoint, string) {
	b.t.Helper()
	e, secret, err := b.CreateEndpoint(ctx, Key{}, EndpointInput{URL: url, Types: types})
	if err != nil {
		b.t.Fatal(err)
	}
	return e, secret
}

func (b *bench) deliveries(endpoint string) []Delivery {
	b.t.Helper()
	all, err := b.Deliveries(ctx, endpoint, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// signed says whether one of the signatures is secret's.
func signed(r *http.Request, body, secret string) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	return slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func TestWhatHappensIsDeliveredOnceAndSigned(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, secret := b.endpoint(r.URL, "order.*")
	o := b.place("tee", 1)
	b.item("cup", 1) // not wanted
	b.deliver(b.Holdfast)
	b.deliver(b.Holdfast)
	ds := b.deliveries(e.ID)
	if len(r.calls) != 1 || len(ds) != 1 || ds[0].State != DeliveryDelivered || ds[0].Status != 200 || ds[0].Tries != 1 || ds[0].ID != r.got()[0] {
		t.Fatalf("got %d calls and %+v", len(r.calls), ds)
	}
	if !signed(r.calls[0], r.bodies[0], secret) {
		t.Errorf("the signature is wrong: %v", r.calls[0].Header)
	}
	at, err := strconv.ParseInt(r.calls[0].Header.Get("webhook-timestamp"), 10, 64)
	if age := time.Since(time.Unix(at, 0)); err != nil || age < -time.Minute || age > time.Minute {
		t.Errorf("the timestamp is %v old", age)
	}
	var m struct {
		Type, Topic string
		Timestamp   time.Time
		Data        struct{ Order string }
	}
	if err := json.Unmarshal([]byte(r.bodies[0]), &m); err != nil || m.Type != "order.held" || m.Data.Order != o.ID || m.Timestamp.IsZero() {
		t.Errorf("got %s, %v", r.bodies[0], err)
	}
	for _, doc := range []any{e, ds} {
		if shown, _ := json.Marshal(doc); strings.Contains(string(shown), "sealed") || strings.Contains(string(shown), "whsec_") {
			t.Errorf("a secret is shown: %s", shown)
		}
	}
}

func TestAReplacedSecretGoesOnSigningForADay(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, old := b.endpoint(r.URL, "*")
	fresh, err := b.RotateEndpointSecret(ctx, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.deliver(b.Holdfast) // that it was rotated
	last := func() (*http.Request, string) { return r.calls[len(r.calls)-1], r.bodies[len(r.bodies)-1] }
	if c, body := last(); !signed(c, body, old) || !signed(c, body, fresh) {
		t.Errorf("not signed by both: %v", c.Header)
	}
	b.wait(secretOverlap)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	if c, body := last(); signed(c, body, old) || !signed(c, body, fresh) {
		t.Errorf("after a day not signed by the new one alone: %v", c.Header)
	}
}

func TestTriesAreSpreadOver76HoursAndThenTheEndpointIsDisabled(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	r.answer(500)
	e, _ := b.endpoint(r.URL, "order.held")
	b.place("tee", 1)
	began := b.now()
	for range len(hookDelays) + 1 {
		b.deliver(b.Holdfast)
		d := b.deliveries(e.ID)[0]
		if d.State != DeliveryPending {
			break
		}
		b.deliver(b.Holdfast) // too early
		delay := hookDelays[d.Tries-1]
		wait := d.NextAt.Std().Sub(b.now())
		if wait < delay || wait > delay+delay/10 {
			t.Errorf("after try %d the next is in %v, want %v and up to a tenth", d.Tries, wait, delay)
		}
		b.wait(wait)
	}
	if took := b.now().Sub(began); took < 75*time.Hour || took > 84*time.Hour {
		t.Errorf("it was tried for %v", took)
	}
	ids := r.got()
	if len(ids) != len(hookDelays)+1 || len(slices.Compact(ids)) != 1 {
		t.Errorf("got %v, want the same id %d times", ids, len(hookDelays)+1)
	}
	if d := b.deliveries(e.ID)[0]; d.State != DeliveryFailed || d.Status != 500 {
		t.Errorf("got %+v", d)
	}
	got, err := b.Endpoint(ctx, e.ID)
	if err != nil || got.State != EndpointDisabled || !slices.Contains(b.events(e.ID), "endpoint.disabled") {
		t.Errorf("got %+v %v %v", got, err, b.events(e.ID))
	}
}

func TestOnePoisonousEventDoesNotDisableAnEndpointThatTakesOthers(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, _ := b.endpoint(r.URL, "order.held")
	r.answer(400)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	r.answer(200)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	r.answer(400)
	for range len(hookDelays) {
		b.wait(27 * time.Hour)
		b.deliver(b.Holdfast)
	}
	got, err := b.Endpoint(ctx, e.ID)
	if failed, _ := b.Deliveries(ctx, e.ID, DeliveryFailed); err != nil || got.State != EndpointEnabled || len(failed) != 1 {
		t.Errorf("got %+v %v, %d failed", got, err, len(failed))
	}
}

func TestWhatIsGoneIsDisabledAtOnceAndCatchesUpWhenItIsBack(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, _ := b.endpoint(r.URL, "order.held")
	r.answer(410)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	got, err := b.Endpoint(ctx, e.ID)
	if err != nil || got.State != EndpointDisabled || len(r.calls) != 1 {
		t.Fatalf("got %+v %v after %d calls", got, err, len(r.calls))
	}
	r.answer(204)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	if len(r.calls) != 1 {
		t.Error("a disabled endpoint was called")
	}
	if _, err := b.EnableEndpoint(ctx, e.ID); err != nil {
		t.Fatal(err)
	}
	b.deliver(b.Holdfast)
	if len(r.calls) != 2 {
		t.Errorf("got %d calls, want that of the order placed meanwhile", len(r.calls))
	}
}

func TestTwoNodesDeliverEachEventOnce(t *testing.T) {
	b := newBench(t, hooked)
	other := b.open(hooked)
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	r := newReceiver(t)
	e, _ := b.endpoint(r.URL, "order.held")
	b.item("cup", 1000)
	const orders = 2*planPage + 10
	for range orders {
		b.place("cup", 1)
	}
	var wait sync.WaitGroup
	for _, h := range []*Holdfast{b.Holdfast, other} {
		wait.Go(func() {
			for range 40 {
				if _, err := h.work.deliver(ctx); err != nil {
					t.Errorf("deliver: %v", err)
				}
				h.work.tasks.Wait()
			}
		})
	}
	wait.Wait()
	ids := r.got()
	if len(ids) != orders || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != orders {
		t.Errorf("got %d calls with %d ids, want %d", len(ids), len(slices.Compact(slices.Sorted(slices.Values(ids)))), orders)
	}
	for _, d := range b.deliveries(e.ID) {
		if d.State != DeliveryDelivered || d.Tries != 1 {
			t.Errorf("%+v", d)
		}
	}
}

func TestADeliveryWhoseProcessDiedIsTriedAgainAfterItsLease(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, _ := b.endpoint(r.URL, "order.held")
	b.place("tee", 1)
	all, _ := b.endpointsIn(ctx, EndpointEnabled)
	if err := b.work.take(ctx, all[0]); err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(ctx)
	r.hang = make(chan struct{})
	defer close(r.hang)
	go func() { // the process dies during the call
		<-r.hung
		cancel()
	}()
	if err := b.work.try(cut, all[0], b.deliveries(e.ID)[0]); err == nil {
		t.Error("a call that was cut off came to an end")
	}
	r.mu.Lock()
	r.hang = nil
	r.mu.Unlock()
	b.deliver(b.Holdfast)
	if n := len(r.got()); n != 1 {
		t.Errorf("got %d calls within the lease, want 1", n)
	}
	b.wait(hookLease)
	b.deliver(b.Holdfast)
	if ids := r.got(); len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("got %v, want the same id twice", ids)
	}
}

func TestADeadEndpointDelaysNobodyElse(t *testing.T) {
	b := newBench(t, hooked)
	dead, quick := newReceiver(t), newReceiver(t)
	hang := make(chan struct{})
	dead.hang = hang
	b.endpoint(dead.URL, "order.held")
	b.endpoint(quick.URL, "order.held")
	b.item("cup", 1000)
	const orders = 3 * hookWidth
	for range orders {
		b.place("cup", 1)
	}
	deadline := time.Now().Add(hearing)
	for len(quick.got()) < orders && time.Now().Before(deadline) {
		if _, err := b.work.deliver(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n, stuck := len(quick.got()), len(dead.got()); n != orders || stuck > hookWidth {
		t.Errorf("the quick one got %d of %d while %d calls of the dead one hung", n, orders, stuck)
	}
	close(hang)
	b.work.tasks.Wait()
}

func TestTheLogIsBoundedAndAFullOneLetsTheFeedWait(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	r.answer(500)
	e, _ := b.endpoint(r.URL, "order.held")
	b.item("cup", 10_000)
	for range DeliveryLog + 20 {
		b.place("cup", 1)
	}
	all, _ := b.endpointsIn(ctx, EndpointEnabled)
	for range 20 { // begun, not tried
		if err := b.work.take(ctx, all[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.deliveries(e.ID)); n != DeliveryLog {
		t.Fatalf("%d are in the log, want %d", n, DeliveryLog)
	}
	if err := b.ReplayDelivery(ctx, Key{}, e.ID, 3); code(err) != CodeOverloaded {
		t.Errorf("got %v, want overloaded", err)
	}
	r.answer(200)
	b.deliver(b.Holdfast)
	if ids := r.got(); len(ids) != DeliveryLog+20 || len(b.deliveries(e.ID)) != DeliveryLog {
		t.Errorf("got %d calls, want every order's", len(ids))
	}
}

func TestADeliveryAndATimeAreReplayedUnderTheirIDs(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, _ := b.endpoint(r.URL, "order.held")
	b.place("tee", 1)
	b.wait(time.Hour)
	since := b.now()
	b.place("tee", 1)
	b.wait(time.Hour)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	first := r.got()
	event := b.deliveries(e.ID)[2].Event
	if err := b.ReplayDelivery(ctx, Key{}, e.ID, event); err != nil {
		t.Fatal(err)
	}
	b.deliver(b.Holdfast)
	if again := r.got()[3:]; len(again) != 1 || again[0] != b.deliveries(e.ID)[3].ID {
		t.Errorf("got %v, want the first of %v", again, first)
	}
	if err := b.ReplaySince(ctx, e.ID, since); err != nil {
		t.Fatal(err)
	}
	b.deliver(b.Holdfast)
	again := r.got()[4:]
	slices.Sort(first)
	slices.Sort(again)
	if len(again) != 2 || !slices.Equal(again, first[1:]) {
		t.Errorf("got %v, want the last two of %v", again, first)
	}
	if err := b.ReplayDelivery(ctx, Key{}, e.ID, 9999); code(err) != CodeNotFound {
		t.Errorf("got %v, want not_found", err)
	}
}

func TestWithoutAMasterKeyThereIsNoEndpoint(t *testing.T) {
	b := newBench(t)
	if _, _, err := b.CreateEndpoint(ctx, Key{}, EndpointInput{URL: "https://shop.example/hooks", Types: []string{"*"}}); code(err) != CodeSealerRequired {
		t.Errorf("got %v, want %s", err, CodeSealerRequired)
	}
}
