package browser

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
)

// purse pays out whatever it is asked to, and takes no money. It notifies of what
// it is told to, and its statements have a line of every kind that is amiss.
type purse struct{ gateway.Gateway }

func (purse) Methods() []string { return nil }

func (purse) CheckPayout(gateway.Payout) *gateway.Unfit { return nil }

func (purse) Payout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: gateway.PayoutPaid, Ref: "purse-" + p.ID}
}

func (g purse) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return g.Payout(ctx, p)
}

func (purse) Parse(_ http.Header, id []byte, _ time.Time) (gateway.Notification, error) {
	return gateway.Notification{ID: string(id), Type: "paid", Payment: "of-another-shop", Ref: "purse-9", Status: gateway.Paid, Amount: 3900, Currency: "CNY"}, nil
}

func (purse) Zone() *time.Location { return time.UTC }

func (purse) FetchStatement(_ context.Context, day time.Time) ([]byte, error) {
	if day.Year() < 2026 {
		return nil, gateway.ErrNoStatement
	}
	return []byte(day.Format(time.DateOnly)), nil
}

func (purse) ReadStatement(file []byte) ([]gateway.StatementLine, error) {
	day, err := time.Parse(time.DateOnly, string(file))
	lines := []gateway.StatementLine{
		{Kind: gateway.PaymentLine, Number: "of-another-shop", Ref: "purse-9", Amount: 3900, Fee: 20},
		{Kind: gateway.SettledLine, Ref: "purse-10", Amount: -3880},
		{Kind: gateway.OtherLine, Ref: "purse-11", Amount: -500},
	}
	for i := range lines {
		lines[i].ID, lines[i].Currency, lines[i].At = lines[i].Ref, "CNY", day
	}
	return lines, err
}

// openBook keeps secrets where everybody can read them.
type openBook struct{}

func (openBook) Seal(secret string) string          { return secret }
func (openBook) Open(sealed string) (string, error) { return sealed, nil }

// inForm is how a browser writes a moment in a form.
const inForm = "2006-01-02T15:04"

// busy is a shop in which something of everything has happened.
type busy struct {
	*shop
	names map[string]string // what it is called, by what stands for it in a stop: {order}
}

// named puts names in their places.
func (s *busy) named(text string) string {
	for place, name := range s.names {
		text = strings.ReplaceAll(text, place, name)
	}
	return text
}

func openBusy(t *testing.T) *busy {
	t.Helper()
	s := &busy{openShop(t, mug, seat), map[string]string{}}
	for name, url := range s.dials() {
		s.names["{"+name+"}"] = url
	}
	token, err := s.core.FirstRun(t.Context())
	must(t, err)
	s.names["{token}"] = token
	s.sell()
	s.payOut()
	s.listens()
	must(t, s.core.Notify(t.Context(), "purse", nil, []byte("notice-1")))
	_, key, err := s.core.CreateKey(t.Context(), holdfast.Key{}, "cash desk", []string{holdfast.ScopeRead}, 0)
	must(t, err)
	now := s.now().UTC()
	s.names["{key}"], s.names["{then}"] = key.ID, now.Format(time.RFC3339Nano)
	s.names["{tomorrow}"], s.names["{the day after}"] = now.AddDate(0, 0, 1).Format(inForm), now.AddDate(0, 0, 2).Format(inForm)
	return s
}

// sell has a sale that is open, and orders that are held, paid, and partly
// refunded.
func (s *busy) sell() {
	s.Helper()
	ctx := s.Context()
	held, err := s.core.Place(ctx, holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "mug", Quantity: 2}}, Customer: "lin"})
	must(s.T, err)
	sale, err := s.core.PutSale(ctx, holdfast.Key{}, holdfast.SaleInput{SKU: "seat", OpensAt: s.now().Add(-time.Hour), ClosesAt: s.now().Add(time.Hour), Price: 19900, PerCustomer: 2, SoldOutside: true})
	must(s.T, err)
	s.names["{held}"], s.names["{sale}"] = held.Value.ID, sale.Value.ID
	b, phone := s.visitor(s.T, en), s.visitor(s.T, en)
	for _, name := range []string{"{refunded order}", "{order}"} {
		b.buy("mug", "2")
		b.click(way("alipay.precreate"))
		phone.scan("alipay", b.code())
		b.sees(paid[en])
		s.names[name] = b.value(`location.pathname.split("/").pop()`)
	}
	refund, err := s.core.Refund(ctx, holdfast.Key{}, holdfast.RefundInput{Order: s.names["{refunded order}"], Amount: 900, Reason: "a scratch"})
	must(s.T, err)
	payments, err := s.core.Payments(ctx, holdfast.Filter{Owner: s.names["{order}"]})
	must(s.T, err)
	s.names["{refund}"], s.names["{payment}"] = refund.Value.ID, payments[0].ID
}

// payOut has accounts, and money of every kind that moves between them and out.
func (s *busy) payOut() {
	s.Helper()
	ctx := s.Context()
	for id, name := range map[string]string{"seller-1": "老王茶铺", "courier": "Speedy"} {
		_, err := s.core.OpenAccount(ctx, holdfast.Key{}, holdfast.AccountInput{ID: id, Name: name, Terms: []holdfast.Terms{{Currency: "CNY", ApproveAbove: 1}}})
		must(s.T, err)
	}
	_, err := s.core.Deposit(ctx, holdfast.Key{}, "seller-1", "CNY", 500_000, "opening")
	must(s.T, err)
	in := holdfast.TransferInput{From: "seller-1", To: "courier", Currency: "CNY", Amount: 1200, Reason: "parcel 7"}
	moved, err := s.core.Transfer(ctx, holdfast.Key{}, in)
	must(s.T, err)
	hold, err := s.core.Hold(ctx, holdfast.Key{}, holdfast.HoldInput{TransferInput: in})
	must(s.T, err)
	s.names["{transfer}"], s.names["{hold}"] = moved.Value.ID, hold.Value.ID
	for _, name := range []string{"{payout}", "{another payout}"} {
		p, err := s.core.RequestPayout(ctx, holdfast.Key{}, holdfast.PayoutInput{Account: "seller-1", Currency: "CNY", Amount: 12_300, Gateway: "purse", Destination: "wang@example.com", By: "key/somebody"})
		must(s.T, err)
		s.names[name] = p.Value.ID
	}
}

// listens has an endpoint to which an event was delivered.
func (s *busy) listens() {
	s.Helper()
	ctx := s.Context()
	l := s.listen()
	heard := make(chan struct{}, 100)
	srv := s.serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard <- struct{}{} }))
	s.Cleanup(func() { _ = srv.Close() })
	s.names["{url}"] = "http://" + l.Addr().String() + "/hook"
	e, _, err := s.core.CreateEndpoint(ctx, holdfast.Key{}, holdfast.EndpointInput{URL: s.names["{url}"], Types: []string{"order.*"}})
	must(s.T, err)
	_, err = s.core.Place(ctx, holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "mug", Quantity: 1}}})
	must(s.T, err)
	<-heard
	all, err := s.core.Deliveries(ctx, e.ID, "")
	must(s.T, err)
	s.names["{hook}"], s.names["{event}"] = e.ID, strconv.FormatInt(all[0].Event, 10)
}
