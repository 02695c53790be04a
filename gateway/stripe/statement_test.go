package stripe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// A day at the simulator, fetched and read: a payment with its fee, a refund,
// and the refund that came back, each under our own number.
func TestAStatementIsTheDaysBalanceTransactions(t *testing.T) {
	b := open(t, "checkout")
	statements := b.Gateway.(gateway.Statements)
	now := b.Now()
	p := gateway.Payment{ID: "pay01", Order: "o", Method: b.Method, Amount: 1000, Currency: "EUR",
		ReturnURL: "https://shop.example/", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	p.Ref = b.Gateway.Create(t.Context(), p).Ref
	if err := b.Pay(p); err != nil {
		t.Fatal(err)
	}
	r := gateway.Refund{ID: "ref01", Payment: p, Amount: 300, CreatedAt: now}
	r.Ref = b.Gateway.Refund(t.Context(), r).Ref
	if err := b.FailRefund(r); err != nil {
		t.Fatal(err)
	}
	day := now.Truncate(24 * time.Hour)
	file, err := statements.FetchStatement(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := statements.ReadStatement(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[gateway.StatementKind]gateway.StatementLine{
		gateway.PaymentLine:    {Number: "pay01", Amount: 1000, Fee: 29},
		gateway.RefundLine:     {Number: "ref01", Amount: -300},
		gateway.RefundBackLine: {Number: "ref01", Amount: 300},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d: %s", len(lines), len(want), file)
	}
	for _, l := range lines {
		w := want[l.Kind]
		if l.Number != w.Number || l.Amount != w.Amount || l.Fee != w.Fee || l.Currency != "EUR" || !l.At.Equal(now) || l.ID == "" || l.Ref == "" {
			t.Errorf("got %+v, want %+v", l, w)
		}
	}
	before, err := statements.FetchStatement(t.Context(), day.AddDate(0, 0, -1))
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := statements.ReadStatement(before); err != nil || len(lines) != 0 {
		t.Errorf("the day before: got %v, %v, want nothing", lines, err)
	}
}

func TestAPayoutIsASettlementAndNoLineIsDropped(t *testing.T) {
	lines, err := open(t, "checkout").Gateway.(gateway.Statements).ReadStatement([]byte(`{"data":[
		{"id":"txn_1","type":"payout","amount":-971,"fee":0,"currency":"jpy","created":1772355600,"source":"po_1"},
		{"id":"txn_2","type":"stripe_fee","amount":-5,"fee":0,"currency":"isk","created":1772355600,"source":null}]}`))
	if err == nil {
		t.Fatalf("5 of a hundredth of a króna was read as %+v", lines)
	}
	lines, err = open(t, "checkout").Gateway.(gateway.Statements).ReadStatement([]byte(`{"data":[
		{"id":"txn_1","type":"payout","amount":-971,"fee":0,"currency":"jpy","created":1772355600,"source":"po_1"},
		{"id":"txn_2","type":"adjustment","amount":-500,"fee":1500,"currency":"isk","created":1772355600,"source":null}]}`))
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v", lines, err)
	}
	if l := lines[0]; l.Kind != gateway.SettledLine || l.Amount != -971 || l.Currency != "JPY" || l.Ref != "po_1" {
		t.Errorf("got %+v, want a settlement", l)
	}
	if l := lines[1]; l.Kind != gateway.OtherLine || l.Amount != -5 || l.Fee != 15 {
		t.Errorf("got %+v, want another line", l)
	}
}

func TestWhatIsNoStatementOfStripesIsRefused(t *testing.T) {
	s := open(t, "checkout").Gateway.(gateway.Statements)
	for _, file := range []string{"", "a,b", "{}", `{"data":null}`, `{"data":[{}]}`, `{"data":[],"has_more":true}`,
		`{"data":[{"id":"t","type":"charge","amount":1.5,"currency":"eur","created":1}]}`,
		`{"data":[{"id":"t","type":"charge","amount":1,"currency":"euro","created":1}]}`,
		`{"data":[{"id":"t","type":"charge","amount":-9223372036854775808,"currency":"eur","created":1}]}`,
		`{"data":[{"id":"t","type":"charge","amount":1,"currency":"eur","created":0}]}`} {
		if lines, err := s.ReadStatement([]byte(file)); err == nil || !strings.Contains(err.Error(), "statement") {
			t.Errorf("%q: got %v, %v, want it refused", file, lines, err)
		}
	}
}
