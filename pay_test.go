package holdfast

import (
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

func TestAPaidOrderHasItsGoods(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 2)
	p := b.start(o.ID)
	if p.State != flow.Open || p.URL == "" {
		t.Fatalf("got %+v", p)
	}
	b.gw.pay(p.ID, 200)
	for range 3 {
		b.notify(gateway.Notification{ID: "n1", Payment: p.ID, Status: gateway.Paid, Amount: 200, Currency: "CNY"})
	}
	b.is(o.ID, flow.Paid)
	b.available("tee", 1)
}

func TestAPaymentWhoseNotificationIsLostIsFound(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	p := b.start(o.ID)
	b.gw.pay(p.ID, 100)
	b.wait(30 * time.Second)
	b.run()
	b.is(o.ID, flow.Paid)
}

func TestWhatTheGatewayWouldSurelyRefuseIsNotStored(t *testing.T) {
	b := newBench(t)
	b.item("dear", 20)
	o := b.place("dear", 11)
	if _, err := b.Pay(ctx, Key{}, PayInput{Order: o.ID}); code(err) != CodePaymentUnfit {
		t.Errorf("got %v, want %s", err, CodePaymentUnfit)
	}
	b.is(o.ID, flow.Held)
}

func TestALostAnswerIsAskedForUnderTheSameNumber(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	b.gw.silent = true
	p := b.start(o.ID)
	if p.State != flow.Requested {
		t.Fatalf("got %+v, want it to be unknown", p)
	}
	b.gw.silent = false
	b.wait(time.Second)
	b.run()
	if p, _ = b.Payment(ctx, p.ID); p.State != flow.Open {
		t.Errorf("got %s, want %s", p.State, flow.Open)
	}
	if len(b.gw.status) != 1 {
		t.Errorf("%d payments at the gateway, want 1", len(b.gw.status))
	}
}

func TestWhatTheGatewayWillNotOpenLeavesTheOrderHeld(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	b.gw.refuses["create"] = true
	p := b.start(o.ID)
	if p.State != flow.Declined {
		t.Errorf("got %s, want %s", p.State, flow.Declined)
	}
	b.is(o.ID, flow.Held)
	b.gw.refuses["create"] = false
	if p = b.start(o.ID); p.ID != flow.PaymentID(o.ID, 2) || p.State != flow.Open {
		t.Errorf("second attempt: %+v", p)
	}
}

func TestAnUnreachableGatewayKeepsTheStockUntilTheCap(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 3)
	p := b.start(o.ID)
	b.gw.down = true
	b.wait(time.Hour)
	b.run()
	b.is(o.ID, flow.Closing)
	b.available("tee", 0)
	b.wait(24 * time.Hour)
	b.run()
	b.is(o.ID, flow.Expired)
	b.available("tee", 3)
	b.place("tee", 3)
	b.gw.down = false
	b.gw.pay(p.ID, 300)
	b.wait(retryMost)
	b.run()
	d := b.is(o.ID, flow.Refunded)
	if b.gw.repaid[p.ID] != 300 {
		t.Errorf("%d repaid, want 300: %+v", b.gw.repaid[p.ID], d)
	}
}

func TestMoneyBetweenQueryAndCloseBuysTheGoods(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 3)
	p := b.start(o.ID)
	b.gw.before = func(do string) {
		if do == "close" {
			b.gw.pay(p.ID, 300)
		}
	}
	b.wait(time.Hour)
	b.run()
	b.is(o.ID, flow.Paid)
}

func TestNoStockIsFreedWhileTheAttemptIsOpen(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 3)
	p := b.start(o.ID)
	freed := false
	b.gw.before = func(do string) {
		if s, _ := b.Stock(ctx, "tee"); do == "close" && s.Available > 0 {
			freed = true
		}
	}
	b.wait(time.Hour)
	b.run()
	if b.is(o.ID, flow.Expired); freed || b.gw.status[p.ID] != gateway.Closed {
		t.Errorf("freed early: %v, the gateway says %s", freed, b.gw.status[p.ID])
	}
}

func TestACancelWaitsForTheGateway(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 3)
	b.start(o.ID)
	a, err := b.Cancel(ctx, Key{}, o.ID)
	if err != nil || a.Value.State != flow.Closing {
		t.Fatalf("got %+v %v", a.Value, err)
	}
	b.run()
	b.is(o.ID, flow.Cancelled)
	b.available("tee", 3)
}

func TestAnAnswerToPayIsTheSameForEver(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	key := Key{Scope: "s", Value: "p", Print: []byte("p")}
	in := PayInput{Order: o.ID, Wait: time.Nanosecond}
	first, err := b.Pay(ctx, key, in)
	if err != nil || first.Value.State != flow.Requested {
		t.Fatalf("got %+v %v", first, err)
	}
	b.run()
	second, err := b.Pay(ctx, key, in)
	if err != nil || !second.Replayed || second.Value != first.Value {
		t.Errorf("got %+v %v, want %+v", second, err, first.Value)
	}
}

// The process dies after the payment was stored and before anyone was answered.
func TestAPayThatWasNeverAnsweredIsAnsweredOnRetry(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	key := Key{Scope: "s", Value: "p", Print: []byte("p")}
	_, err := command(ctx, b.Holdfast, key, o.ID, flow.Event{On: flow.Pay, Gateway: "till", Method: "page"},
		func(c flow.Case) Payment { return c.Payments[0] })
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	a, err := b.Pay(ctx, key, PayInput{Order: o.ID})
	if err != nil || a.Value.State != flow.Open || !a.Replayed {
		t.Errorf("got %+v %v", a, err)
	}
	if d := b.is(o.ID, flow.Paying); len(d.Payments) != 1 {
		t.Errorf("%d attempts, want 1", len(d.Payments))
	}
}

func TestAWorkerThatLostItsLeaseHasNoEffect(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	if _, err := b.Pay(ctx, Key{}, PayInput{Order: o.ID, Wait: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	rs, _ := b.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindTask})
	var slow flow.Task
	if err := flow.Decode(rs[0], &slow); err != nil {
		t.Fatal(err)
	}
	slow, ok, err := b.work.claim(ctx, slow)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	b.run()
	if n := b.gw.count("create " + slow.ID); n != 0 {
		t.Fatalf("%d calls while another worker has the lease, want none", n)
	}
	b.wait(b.o.lease())
	b.run()
	before, _ := b.store.Head(ctx)
	if err := b.work.again(ctx, slow, errTimeout); err != nil {
		t.Fatal(err)
	}
	if after, _ := b.store.Head(ctx); after != before {
		t.Errorf("the fenced worker wrote line %d", after.Seq)
	}
	b.is(o.ID, flow.Paying)
}

func TestRefundsInPartAndInFull(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 2)
	p := b.start(o.ID)
	b.gw.pay(p.ID, 200)
	b.wait(time.Minute)
	b.run()
	key := Key{Scope: "s", Value: "r", Print: []byte("r")}
	for range 2 {
		if _, err := b.Refund(ctx, key, RefundInput{Order: o.ID, Amount: 50, Restock: []Restock{{SKU: "tee", Quantity: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	b.run()
	b.is(o.ID, flow.PartlyRefunded)
	b.available("tee", 2)
	if _, err := b.Refund(ctx, Key{}, RefundInput{Order: o.ID, Amount: 151}); code(err) != CodeRefundExceeds {
		t.Errorf("got %v, want %s", err, CodeRefundExceeds)
	}
	b.gw.silent = true
	if _, err := b.Refund(ctx, Key{}, RefundInput{Order: o.ID}); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.gw.silent = false
	b.wait(time.Minute)
	b.run()
	b.is(o.ID, flow.Refunded)
	if b.gw.repaid[p.ID] != 200 {
		t.Errorf("%d repaid, want 200", b.gw.repaid[p.ID])
	}
}

func TestARefundThatWaitsIsLookedAfter(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	p := b.start(o.ID)
	b.gw.pay(p.ID, 100)
	b.wait(time.Minute)
	b.run()
	b.gw.pending = true
	a, err := b.Refund(ctx, Key{}, RefundInput{Order: o.ID})
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	if f, _ := b.RefundByID(ctx, a.Value.ID); f.State != flow.RefundAccepted {
		t.Fatalf("got %s, want %s", f.State, flow.RefundAccepted)
	}
	b.gw.refunds[a.Value.ID] = gateway.RefundDone
	b.wait(time.Minute)
	b.run()
	b.is(o.ID, flow.Refunded)
	b.notify(gateway.Notification{ID: "n2", Refund: a.Value.ID, Refunded: gateway.RefundFailed})
	b.is(o.ID, flow.Paid)
}

func TestAnAuthenticNotificationAboutAnotherAmountChangesNothing(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	p := b.start(o.ID)
	b.notify(gateway.Notification{ID: "n1", Payment: p.ID, Status: gateway.Paid, Amount: 1, Currency: "CNY"})
	d := b.is(o.ID, flow.Paying)
	if d.Payments[0].Code != flow.Mismatch {
		t.Errorf("the payment's code is %q, want %q", d.Payments[0].Code, flow.Mismatch)
	}
}

func TestANotificationAboutNothingIsParkedThenQuarantined(t *testing.T) {
	b := newBench(t)
	b.notify(gateway.Notification{ID: "n1", Payment: "nobody", Status: gateway.Paid, Amount: 1, Currency: "CNY"})
	for range parkTries {
		b.wait(parkWait)
		b.run()
	}
	rs, _ := b.store.Records(ctx, ledger.RecordQuery{Kind: kindParked, State: parkedStays})
	if len(rs) != 1 || rs[0].Due != 0 {
		t.Errorf("got %+v, want one in quarantine", rs)
	}
}

func TestANotificationThatCameTooEarlyIsAppliedLater(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	early := flow.PaymentID(o.ID, 1)
	b.gw.pay(early, 100)
	b.notify(gateway.Notification{ID: "n1", Payment: early, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
	b.gw.down = true
	b.start(o.ID)
	b.is(o.ID, flow.Paying)
	b.wait(parkWait)
	b.run()
	b.is(o.ID, flow.Paid)
}

func TestANotificationOfAnotherGatewayDoesNotPay(t *testing.T) {
	b := newBench(t)
	b.o.Gateways["other"] = newTill()
	o := b.place("tee", 1)
	a, err := b.Pay(ctx, Key{}, PayInput{Order: o.ID, Gateway: "other", Wait: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	b.notify(gateway.Notification{ID: "n1", Payment: a.Value.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
	b.is(o.ID, flow.Paying)
}

func TestATaskIsGivenUpVisibly(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	b.gw.down = true
	p := b.start(o.ID)
	task, err := document[flow.Task](ctx, b.Holdfast, flow.KindTask, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	task.Tries = maxTries - 1
	if ok, err := b.work.write(ctx, &task, flow.TaskReady); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := b.work.again(ctx, task, errTimeout); err != nil {
		t.Fatal(err)
	}
	if h, err := b.Health(ctx); err != nil || h.TasksStuck != 1 {
		t.Errorf("got %+v %v, want one stuck task", h, err)
	}
}

// A buyer opens the till's page, goes back and takes the code: the page is
// closed first, and the answer is the open code.
func TestAnotherMethodIsOpenedAfterTheFirstIsClosed(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	page := b.start(o.ID)
	a, err := b.Pay(ctx, Key{}, PayInput{Order: o.ID, Method: "code", Wait: time.Nanosecond})
	if err != nil || a.Value.State != flow.Waiting {
		t.Fatalf("got %+v, %v, want it to wait", a.Value, err)
	}
	b.run()
	code, err := b.Payment(ctx, a.Value.ID)
	if err != nil || code.State != flow.Open || code.Method != "code" {
		t.Fatalf("got %+v, %v, want it open", code, err)
	}
	if first, _ := b.Payment(ctx, page.ID); first.State != flow.AttemptClosed || b.gw.count("close "+page.ID) != 1 {
		t.Errorf("the first attempt is %s", first.State)
	}
	b.gw.pay(code.ID, 100)
	b.notify(gateway.Notification{ID: "n", Payment: code.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
	b.is(o.ID, flow.Paid)
}

// While the gateway can't say that the first attempt is closed, nothing is asked
// of it for the second.
func TestAnotherMethodWaitsAsLongAsTheFirstMayBringMoney(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	page := b.start(o.ID)
	b.gw.down = true
	a, err := b.Pay(ctx, Key{}, PayInput{Order: o.ID, Method: "code", Wait: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		b.run()
		b.wait(10 * time.Second)
	}
	if p, _ := b.Payment(ctx, a.Value.ID); p.State != flow.Waiting || b.gw.count("create "+p.ID) != 0 {
		t.Errorf("the second attempt is %s", p.State)
	}
	b.gw.down = false
	b.gw.pay(page.ID, 100) // the buyer pays on the page that is still there
	b.wait(time.Minute)
	b.run()
	b.is(o.ID, flow.Paid)
	if p, _ := b.Payment(ctx, a.Value.ID); p.State != flow.AttemptClosed {
		t.Errorf("the second attempt is %s, want %s", p.State, flow.AttemptClosed)
	}
}
