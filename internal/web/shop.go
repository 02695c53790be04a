package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// Limits of the shop's pages.
const (
	shopPage  = 20              // items of a page: three topics of each are listened to
	maxPieces = 10              // of one order
	fewLeft   = 5               // pieces that are said to be the last
	lineWait  = 2 * time.Second // for an order, before the visitor is shown the line
)

func (s *site) shop() {
	s.page("GET /{$}", func(v *visit) error { return v.goTo("/shop/") })
	s.page("GET /shop/{$}", showShop)
	s.page("GET /shop/live", hearShop)
	s.page("POST /shop/buy", buy)
	s.page("GET /shop/orders", showOrders)
	s.page("GET /shop/line/{ticket}", showLine)
	s.page("GET /shop/line/{ticket}/live", hearLine)
}

// ware is an item as the shop shows it.
type ware struct {
	holdfast.Item
	Cost      int64 // of one piece now, minor units
	Available int64
	Most      int64 // pieces that can be chosen
	State     string
	FreeAt    holdfast.Time // with onHold: when a piece may come free; 0 = not known
	Sale      holdfast.Sale // with an ID if one is open or ahead
	Hue       int           // of its picture, degrees
}

// What a ware's State can be.
const (
	forSale = "sale" // pieces can be held
	few     = "few"  // and they are the last
	onHold  = "held" // all that are left are held by somebody
	gone    = "gone"
	soon    = "soon" // its sale opens later
	over    = "over" // its sale has closed
)

// Buyable says whether the button works.
func (w ware) Buyable() bool { return w.State == forSale || w.State == few }

// Choices are the numbers of pieces that can be chosen.
func (w ware) Choices() (choices []int64) {
	for n := int64(1); n <= max(w.Most, 1); n++ {
		choices = append(choices, n)
	}
	return choices
}

// Letter is what the picture shows.
func (w ware) Letter() string { return strings.ToUpper(w.SKU[:1]) }

// Running says whether the price is a sale's.
func (w ware) Running() bool { return w.Sale.ID != "" && w.State != soon }

type shopView struct {
	Wares []ware
	Key   string // of the next order
	After string // this page's query
	More  string // the next page's; "" = none
	Told  string // what the visitor tried in vain; "" = nothing
	About string // the name of what it was
}

func showShop(v *visit) error {
	q := v.r.URL.Query()
	view := shopView{After: q.Get("after"), Key: rand.Text()}
	v.known()
	wares, more, err := v.wares(v.r.Context(), view.After)
	if err != nil {
		return err
	}
	view.Wares, view.More = wares, more
	if told := "shop.told." + q.Get("told"); v.words[told] != "" {
		view.Told = told
		for _, w := range wares {
			if w.SKU == q.Get("sku") {
				view.About = v.name(w.Item)
			}
		}
	}
	return v.show(200, "shop/shop", view)
}

// wares are one page of them.
func (v *visit) wares(ctx context.Context, after string) (wares []ware, more string, err error) {
	p, err := v.shelf.page(ctx, v.core, after)
	if err != nil {
		return nil, "", err
	}
	now, err := v.core.Ledger().Now(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("web: store time: %w", err)
	}
	for i, item := range p.items {
		w, err := v.ware(ctx, item, p.stock[i], holdfast.Time(now))
		if err != nil {
			return nil, "", err
		}
		wares = append(wares, w)
	}
	return wares, p.more, nil
}

func (v *visit) ware(ctx context.Context, item holdfast.Item, a holdfast.Availability, now holdfast.Time) (ware, error) {
	w := ware{Item: item, Cost: item.Price, State: forSale, Hue: hue(item.SKU)}
	sale, err := v.core.CurrentSale(ctx, item.SKU)
	if err != nil {
		return w, err
	}
	w.Available, w.Sale = a.Available, sale
	if a.NextFreeAt > now {
		w.FreeAt = a.NextFreeAt
	}
	w.Most = min(a.Available, maxPieces)
	switch open := sale.OpensAt <= now && now < sale.ClosesAt; {
	case sale.ID == "", !open && sale.SoldOutside && now >= sale.ClosesAt:
		w.Sale = holdfast.Sale{}
	case open:
		w.Cost = sale.Price
		if sale.PerCustomer > 0 {
			w.Most = min(w.Most, sale.PerCustomer)
		}
	case sale.SoldOutside:
	case now < sale.OpensAt:
		w.State = soon
		return w, nil
	default:
		w.State = over
		return w, nil
	}
	switch {
	case a.Available == 0 && a.Held > 0:
		w.State = onHold
	case a.Available == 0:
		w.State = gone
	case a.Available <= fewLeft:
		w.State = few
	}
	return w, nil
}

// hue is a colour that an item keeps.
func hue(sku string) int {
	const prime, circle = 31, 360
	h := 0
	for _, c := range []byte(sku) {
		h = (h*prime + int(c)) % circle
	}
	return h
}

// hearShop streams what may change on a page of the shop.
func hearShop(v *visit) error {
	wares, _, err := v.wares(v.r.Context(), v.r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	topics := []string{}
	for _, w := range wares {
		topics = append(topics, holdfast.TopicStock+"/"+w.SKU, holdfast.TopicItem+"/"+w.SKU)
		if w.Sale.ID != "" {
			topics = append(topics, holdfast.TopicSale+"/"+w.Sale.ID)
		}
	}
	return v.hear(topics...)
}

// hear streams topics to the visitor. With none there is nothing to hear.
func (v *visit) hear(topics ...string) error {
	if v.o.Stream == nil || len(topics) == 0 {
		return errNotFound
	}
	caller := v.customer()
	if caller == "" {
		caller = "web-" + address(v.r)
	}
	v.o.Stream(v.w, v.r, caller, topics)
	return nil
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9]{16,64}$`)

// buy holds what the visitor wants, once for each form that was shown.
func buy(v *visit) error {
	form := v.r.PostFormValue
	sku, key := form("sku"), form("key")
	quantity, err := strconv.ParseInt(form("quantity"), 10, 64)
	if err != nil || quantity < 1 || quantity > maxPieces || !keyForm.MatchString(key) {
		return errForm
	}
	ctx, customer := v.r.Context(), v.known()
	t, err := v.place(ctx, holdfast.Key{Scope: customer, Value: key, Print: fmt.Appendf(nil, "%s %d", sku, quantity)}, holdfast.OrderInput{
		Lines: []holdfast.LineInput{{SKU: sku, Quantity: quantity}}, Customer: customer,
	})
	var no *holdfast.Rejection
	switch {
	case errors.As(err, &no) && v.words["shop.told."+no.Code] != "":
		return v.goTo("/shop/?told=" + no.Code + "&sku=" + url.QueryEscape(sku))
	case err != nil:
		return err
	case t.State == holdfast.TicketHeld:
		return v.goTo("/pay/" + t.Order.ID)
	}
	return v.goTo("/shop/line/" + t.ID)
}

// showLine shows a place in the line until the order is decided.
func showLine(v *visit) error {
	id, err := v.ownTicket()
	if err != nil {
		return err
	}
	t, err := v.core.Ticket(v.r.Context(), id, 0)
	switch {
	case err != nil:
		return err
	case t.State == holdfast.TicketHeld:
		return v.goTo("/pay/" + t.Order.ID)
	case t.State == holdfast.TicketRefused && v.words["shop.told."+t.Refusal.Code] != "":
		return v.goTo("/shop/?told=" + t.Refusal.Code + "&sku=" + url.QueryEscape(t.Refusal.SKU))
	case t.State != holdfast.TicketWaiting:
		return v.goTo("/shop/?told=unknown")
	}
	return v.show(200, "shop/line", t)
}

func hearLine(v *visit) error {
	id, err := v.ownTicket()
	if err != nil {
		return err
	}
	return v.hear(holdfast.TopicTicket + "/" + id)
}

// ownTicket is the ticket of the path, if it is the visitor's.
func (v *visit) ownTicket() (string, error) {
	id := v.r.PathValue("ticket")
	if c := v.customer(); c == "" || !strings.HasPrefix(id, c+".") {
		return "", errNotFound
	}
	return id, nil
}

// shownOrders is how many of his orders a visitor is shown.
const shownOrders = 50

func showOrders(v *visit) error {
	var orders []holdfast.Order
	if c := v.customer(); c != "" {
		var err error
		if orders, err = v.core.Orders(v.r.Context(), holdfast.OrderFilter{Customer: c, Limit: shownOrders}); err != nil {
			return err
		}
	}
	var lines []holdfast.Line
	for _, o := range orders {
		lines = append(lines, o.Lines...)
	}
	if err := v.translate(v.r.Context(), lines); err != nil {
		return err
	}
	names := map[string]string{}
	for _, l := range lines {
		names[l.SKU] = l.Name
	}
	return v.show(200, "shop/orders", struct {
		Orders []holdfast.Order
		Names  map[string]string
	}{orders, names})
}

// translate gives lines the names that their items have in the visitor's
// language.
func (v *visit) translate(ctx context.Context, lines []holdfast.Line) error {
	names := map[string]string{}
	for i := range lines {
		sku := lines[i].SKU
		if names[sku] == "" {
			item, err := v.core.Item(ctx, sku)
			if err != nil {
				return err
			}
			names[sku] = v.name(item)
		}
		lines[i].Name = names[sku]
	}
	return nil
}
