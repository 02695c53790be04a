package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Times of tasks.
const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 5 * time.Minute
	numberLife = 24 * time.Hour // a refund's number is not sent again after it: gateways forget
	maxTries   = 1000           // about three days at retryMost; then a person has to look
)

// lease is how long a worker owns the task that it has claimed: longer than its
// call may take, and the two entries around it.
func (o Options) lease() time.Duration { return 2 * o.CallFor }

// dispatch starts the tasks that are due, as many as there are slots. A task
// that ends makes room and rings again.
func (b *background) dispatch(ctx context.Context) error {
	due, err := b.due(ctx, flow.KindTask, 2*cap(b.slots))
	if err != nil {
		return err
	}
	for _, r := range due {
		if !b.begin(r.ID) {
			continue
		}
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
			b.finish(r.ID)
			return nil
		}
		b.tasks.Go(func() {
			defer func() {
				<-b.slots
				b.finish(r.ID)
				b.ring()
			}()
			if err := b.run(b.calls, r); err != nil && b.calls.Err() == nil {
				b.h.log.Error("task", "task", r.ID, "error", err)
			}
		})
	}
	return nil
}

func (b *background) begin(task string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[task] {
		return false
	}
	b.running[task] = true
	return true
}

func (b *background) finish(task string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, task)
}

// run does one task: claim it, call the gateway outside of any transaction,
// and let the answer happen to the order.
func (b *background) run(ctx context.Context, r ledger.Record) error {
	var t flow.Task
	if err := flow.Decode(r, &t); err != nil {
		return err
	}
	t, ok, err := b.claim(ctx, t)
	if err != nil || !ok {
		return err
	}
	if t.Do == flow.DoPayout || t.Do == flow.DoTrace || t.Do == flow.DoRecall {
		return b.runPayout(ctx, t)
	}
	ev, why, err := b.call(ctx, t)
	if err != nil {
		return err
	}
	if why != nil {
		return b.again(ctx, t, why)
	}
	ev.ID = t.ID
	res, _, err := b.h.advance(ctx, t.Order, ev, nil)
	if err != nil {
		return fmt.Errorf("holdfast: task %s %s: %w", t.Do, t.ID, err)
	}
	if res.Seq == 0 { // nothing new: the payment is still open, the refund under way
		return b.again(ctx, t, nil)
	}
	return nil
}

// claim takes the task for as long as the lease. Its new version is the fencing
// number: who comes back later than the lease finds another one.
func (b *background) claim(ctx context.Context, t flow.Task) (flow.Task, bool, error) {
	now, err := b.h.now(ctx)
	if err != nil {
		return t, false, err
	}
	t.Due = now.Add(b.h.o.lease())
	ok, err := b.write(ctx, &t, flow.TaskReady)
	return t, ok, err
}

// write stores the task as its next version; false = somebody else did.
func (b *background) write(ctx context.Context, t *flow.Task, state string) (bool, error) {
	t.Version++
	r := t.Record()
	r.State = state
	_, ok, err := b.h.fresh(ctx, ledger.Entry{Records: []ledger.Record{r}})
	return ok, err
}

// errUnknown says that a gateway did not tell us what happened.
var errUnknown = errors.New("no definite answer")

// call asks the gateway. why is set when we still don't know.
func (b *background) call(ctx context.Context, t flow.Task) (ev flow.Event, why, err error) {
	_, gw, err := b.h.gateway(t.Gateway)
	var r *Rejection
	if errors.As(err, &r) {
		return ev, err, nil // the gateway has been taken out of the options: ask again when it is back
	}
	if err != nil {
		return ev, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.h.o.CallFor)
	defer cancel()
	if t.Do == flow.DoRefund || t.Do == flow.DoLook {
		return b.callRefund(ctx, gw, t)
	}
	p, err := b.h.Payment(ctx, t.ID)
	if err != nil {
		return ev, nil, err
	}
	var a gateway.Answer
	switch t.Do {
	case flow.DoCreate:
		a = gw.Create(ctx, wirePayment(p))
	case flow.DoQuery:
		a = gw.Query(ctx, wirePayment(p))
	case flow.DoClose:
		a = gw.Close(ctx, wirePayment(p))
	default:
		return ev, nil, fmt.Errorf("holdfast: task %s asks for %q", t.ID, t.Do)
	}
	ev, known := paymentFact(t.Do, a)
	if !known {
		return ev, unknown(a.Err, a.Code), nil
	}
	return ev, nil, nil
}

func (b *background) callRefund(ctx context.Context, gw gateway.Gateway, t flow.Task) (ev flow.Event, why, err error) {
	f, err := b.h.RefundByID(ctx, t.ID)
	if err != nil {
		return ev, nil, err
	}
	p, err := b.h.Payment(ctx, f.Payment)
	if err != nil {
		return ev, nil, err
	}
	wire := gateway.Refund{ID: f.ID, Payment: wirePayment(p), Amount: f.Amount, Reason: f.Reason, CreatedAt: f.CreatedAt.Std(), Ref: f.Ref}
	var a gateway.RefundAnswer
	if t.Do == flow.DoLook {
		a = gw.QueryRefund(ctx, wire)
	} else {
		a = gw.Refund(ctx, wire)
	}
	ev, known := refundFact(t.Do, a)
	if known {
		return ev, nil, nil
	}
	if b.h.o.Clock().Sub(wire.CreatedAt) < numberLife || gw.QueryRefund(ctx, wire).Outcome != gateway.Refused {
		return ev, unknown(a.Err, a.Code), nil
	}
	return flow.Event{On: flow.RefundDenied, Code: "never arrived"}, nil, nil
}

func unknown(err error, code string) error {
	if err == nil {
		return fmt.Errorf("%w: %s", errUnknown, code)
	}
	return err
}

// again puts the task off: by Poll when the gateway answered that nothing has
// changed (why nil), by a growing delay when it gave no definite answer. Whoever
// changed the task meanwhile is right.
func (b *background) again(ctx context.Context, t flow.Task, why error) error {
	now, err := b.h.now(ctx)
	if err != nil {
		return err
	}
	state, wait := flow.TaskReady, b.h.o.Poll
	t.Tries, t.Error = 0, ""
	if why != nil {
		var old flow.Task
		if old, err = document[flow.Task](ctx, b.h, flow.KindTask, t.ID); err != nil {
			return err
		}
		t.Tries, t.Error = old.Tries+1, why.Error()
		wait = backoff(t.Tries)
		b.h.log.Warn("gateway gave no definite answer", "task", t.ID, "do", t.Do, "tries", t.Tries, "error", why)
	}
	t.Due = now.Add(wait)
	if t.Tries >= maxTries {
		state, t.Due = flow.TaskStuck, 0
		b.h.log.Error("task given up; look at it", "task", t.ID, "do", t.Do, "error", why)
	}
	_, err = b.write(ctx, &t, state)
	return err
}

// backoff doubles from retryFirst to retryMost, half of it by chance, so that
// those who failed together don't come back together.
func backoff(tries int) time.Duration {
	d := retryMost
	if n := tries - 1; n < 16 {
		d = min(d, retryFirst<<n)
	}
	return d/2 + rand.N(d/2)
}

// TaskDetail is a task with the state of its record.
type TaskDetail struct {
	Task
	State string `json:"state"` // ready, done or stuck
}

// Tasks lists tasks, from the highest id down. An owner is the order.
func (h *Holdfast) Tasks(ctx context.Context, f Filter) ([]TaskDetail, error) {
	rs, err := h.store.Records(ctx, f.query(flow.KindTask))
	if err != nil {
		return nil, fmt.Errorf("holdfast: list tasks: %w", err)
	}
	out := make([]TaskDetail, len(rs))
	for i, r := range rs {
		out[i].State = r.State
		if err := flow.Decode(r, &out[i].Task); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// TaskByID finds one task.
func (h *Holdfast) TaskByID(ctx context.Context, id string) (TaskDetail, error) {
	r, err := h.record(ctx, flow.KindTask, id)
	if err != nil {
		return TaskDetail{}, err
	}
	d := TaskDetail{State: r.State}
	return d, flow.Decode(r, &d.Task)
}

// RetryTask makes a task due now, as if it had never been tried.
func (h *Holdfast) RetryTask(ctx context.Context, key Key, id string) (Answer[Task], error) {
	a, err := h.changeTask(ctx, key, id, flow.TaskReady)
	if err == nil {
		h.work.ring()
	}
	return a, err
}

// ParkTask puts a task aside, for a person to look at, until it is retried or what
// it is about changes. A call under way is not taken back.
func (h *Holdfast) ParkTask(ctx context.Context, key Key, id string) (Answer[Task], error) {
	return h.changeTask(ctx, key, id, flow.TaskStuck)
}

func (h *Holdfast) changeTask(ctx context.Context, key Key, id, state string) (Answer[Task], error) {
	return change[Task](ctx, h, key, func() (e ledger.Entry, err error) {
		t, err := h.TaskByID(ctx, id)
		if err != nil {
			return e, err
		}
		if t.State == flow.TaskDone {
			return e, reject(CodeInvalidState, "task %s is done", id)
		}
		t.Due, t.Tries = 0, 0
		if state == flow.TaskReady {
			if t.Due, err = h.now(ctx); err != nil {
				return e, err
			}
		}
		t.Version++
		r := t.Record()
		r.State = state
		return ledger.Entry{Records: []ledger.Record{r}}, nil
	})
}
