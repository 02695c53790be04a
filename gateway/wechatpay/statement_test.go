package wechatpay_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

func (b bench) statements() gateway.Statements { return b.Gateway.(gateway.Statements) }

// dayOf is the day of Beijing on which the bench begins.
func (b bench) dayOf() time.Time {
	y, m, d := b.Now().In(b.statements().Zone()).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, b.statements().Zone())
}

// aDay has two payments, one of them refunded in two parts, and its file.
func aDay(t *testing.T) (bench, []byte) {
	t.Helper()
	b := open(t, "native")
	p := b.payment("pay0001")
	p.Description = "Cup, blue 茶杯"
	b.Gateway.Create(t.Context(), p)
	if err := b.Pay(p); err != nil {
		t.Fatal(err)
	}
	b.paid(t, "pay0002")
	b.Gateway.Refund(t.Context(), b.refund(p, "ref0001", 500))
	b.Gateway.Refund(t.Context(), b.refund(p, "ref0002", 90))
	b.Advance(24 * time.Hour)
	file, err := b.statements().FetchStatement(t.Context(), b.dayOf().AddDate(0, 0, -1))
	if err != nil {
		t.Fatal(err)
	}
	return b, file
}

func TestAStatementHasEveryPaymentAndRefund(t *testing.T) {
	b, file := aDay(t)
	lines, err := b.statements().ReadStatement(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []gateway.StatementLine{
		{Kind: gateway.PaymentLine, Number: "pay0001", Amount: 1990, Fee: 12},
		{Kind: gateway.RefundLine, Number: "ref0001", Amount: -500, Fee: -3},
		{Kind: gateway.RefundLine, Number: "ref0002", Amount: -90, Fee: -1},
		{Kind: gateway.PaymentLine, Number: "pay0002", Amount: 1990, Fee: 12},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d", len(lines), len(want))
	}
	ids := map[string]bool{}
	for i, l := range lines {
		w := want[i]
		if l.Kind != w.Kind || l.Number != w.Number || l.Amount != w.Amount || l.Fee != w.Fee || l.Currency != "CNY" || l.Text == "" {
			t.Errorf("line %d: got %+v, want %+v", i, l, w)
		}
		if l.ID == "" || l.Ref == "" || ids[l.ID] || !l.At.Equal(b.Now().Add(-24*time.Hour)) {
			t.Errorf("line %d: got id %q, ref %q at %s", i, l.ID, l.Ref, l.At)
		}
		ids[l.ID] = true
	}
}

func TestADayWithoutStatementHasNone(t *testing.T) {
	b, _ := aDay(t)
	for name, day := range map[string]time.Time{"a day that is not over": b.dayOf(), "a day without trade": b.dayOf().AddDate(0, 0, -2)} {
		if _, err := b.statements().FetchStatement(t.Context(), day); !errors.Is(err, gateway.ErrNoStatement) {
			t.Errorf("%s: got %v, want %v", name, err, gateway.ErrNoStatement)
		}
	}
	b.Wire.Every(gatewaytest.Answers(404, `{"code":"NO_STATEMENT_EXIST"}`))
	if _, err := b.statements().FetchStatement(t.Context(), b.dayOf()); err == nil || errors.Is(err, gateway.ErrNoStatement) {
		t.Errorf("unsigned: got %v, want an error that says nothing of the day", err)
	}
}

// The file itself is not signed; its hash is.
func TestAFileOfAnotherHashIsNotRead(t *testing.T) {
	b, _ := aDay(t)
	b.sim.Inject(wechatpaysim.Fault{Call: "bill.download", Kind: wechatpaysim.TornAnswer})
	if file, err := b.statements().FetchStatement(t.Context(), b.dayOf().AddDate(0, 0, -1)); err == nil {
		t.Errorf("got %d bytes, want an error", len(file))
	} else if strings.Contains(err.Error(), "token") {
		t.Errorf("got %v, which lets everybody in", err)
	}
}

func TestAStatementThatIsNotWholeIsNotRead(t *testing.T) {
	b, file := aDay(t)
	rows := strings.SplitAfter(string(file), "\r\n")
	for name, text := range map[string]string{
		"nothing":             "",
		"a page":              "<html>log in</html>",
		"no sums":             strings.Join(rows[:5], ""),
		"a line less":         strings.Join(append(rows[:2:2], rows[3:]...), ""),
		"another amount":      strings.Replace(string(file), "`19.90", "`19.91", 1),
		"another fee":         strings.Replace(string(file), "`0.12000", "`0.13000", 1),
		"another refund":      strings.Replace(string(file), "`5.00", "`5.01", 1),
		"a fraction of a fen": strings.Replace(string(file), "`19.90", "`19.901", 1),
		"a word":              strings.Replace(string(file), "`19.90", "`many", 1),
		"no time":             strings.Replace(string(file), "`2026-03-01 17:00:00", "`2026-03-01", 1),
		"a cell more":         strings.Replace(string(file), "`CNY", "`CNY,`CNY", 1),
		"a column less":       strings.Replace(string(file), "货币种类,", "", 1),
		"two rows of sums":    string(file) + rows[len(rows)-2],
	} {
		if lines, err := b.statements().ReadStatement([]byte(text)); err == nil {
			t.Errorf("%s: got %d lines, want an error", name, len(lines))
		}
	}
	unknown := strings.Replace(string(file), "`SUCCESS", "`REVOKED", 1)
	lines, err := b.statements().ReadStatement([]byte(unknown))
	if err != nil || len(lines) != 4 || lines[0].Kind != gateway.OtherLine {
		t.Errorf("a state without a meaning: got %+v, %v, want it among the others", lines, err)
	}
	plain := strings.ReplaceAll(strings.TrimPrefix(string(file), "\ufeff"), "\r\n", "\n")
	if lines, err := b.statements().ReadStatement([]byte(plain)); err != nil || len(lines) != 4 {
		t.Errorf("saved by an editor: got %d lines, %v, want 4", len(lines), err)
	}
}

func TestAStatementHasWhatWasPaidOutAndCameBack(t *testing.T) {
	b := open(t, "native")
	day := b.dayOf()
	b.paid(t, "pay0001")
	for i, id := range []string{"out0001", "out0002"} {
		if a := pays(b).Payout(t.Context(), newPayout(id, int64(100+i), somebody)); a.Status != gateway.PayoutPending {
			t.Fatalf("got %s %s", a.Outcome, a.Status)
		}
	}
	if err := errors.Join(b.sim.ConfirmTransfer("out0001"), b.sim.LapseTransfer("out0002")); err != nil {
		t.Fatal(err)
	}
	b.Advance(24 * time.Hour)
	file, err := b.statements().FetchStatement(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := b.statements().ReadStatement(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []gateway.StatementLine{
		{Kind: gateway.PaymentLine, Number: "pay0001", Amount: 1990}, {Kind: gateway.PayoutLine, Number: "out0001", Amount: -100},
		{Kind: gateway.PayoutLine, Number: "out0002", Amount: -101}, {Kind: gateway.PayoutBackLine, Number: "out0002", Amount: 101},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d: %+v", len(lines), len(want), lines)
	}
	for i, l := range lines {
		if w := want[i]; l.Kind != w.Kind || l.Number != w.Number || l.Amount != w.Amount || l.ID == "" || l.At.Before(day) {
			t.Errorf("got %+v, want %+v", l, w)
		}
	}
	for name, change := range map[string][2]string{
		"a line is missing": {"`商家转账退回", "\n"}, "an amount": {"`1.01", "`1.02"}, "no amount": {"`支出,`1.01", "`支出,`many"},
		"neither way": {"收入", "收支"}, "the sums are missing": {"资金流水总笔数,", "资金,"}, "a column is missing": {"业务凭证号", "凭证"},
	} {
		if lines, err := b.statements().ReadStatement([]byte(strings.Replace(string(file), change[0], change[1], 1))); err == nil {
			t.Errorf("%s: got %d lines, want an error", name, len(lines))
		}
	}
}
