package stripesim

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const (
	maxControlBody = 16 << 10 // bytes
	maxShown       = 50       // rows of each table of the control page
)

// routeControl adds the control API. It asks for no key: a simulator is for
// loopback. Other sites' pages are kept out by the routes' outer handler.
func (s *Sim) routeControl(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sim/{$}", s.showControl)
	mux.HandleFunc("GET /_sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.dial()) })
	mux.HandleFunc("PUT /_sim/faults", s.putFaults)
	mux.HandleFunc("GET /_sim/books", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Books()) })
	act := func(do func(id string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := do(r.PathValue("id")); err != nil {
				complain(w, http.StatusConflict, err)
				return
			}
			writeJSON(w, s.Books())
		}
	}
	mux.HandleFunc("POST /_sim/pay/{id}", act(func(id string) error { return s.Pay(id) }))
	mux.HandleFunc("POST /_sim/decline/{id}", act(s.Decline))
	mux.HandleFunc("POST /_sim/refunds/{id}/fail", act(s.FailRefund))
	mux.HandleFunc("POST /_sim/payouts/{id}/pay", act(s.PayPayout))
	mux.HandleFunc("POST /_sim/payouts/{id}/fail", act(s.FailPayout))
	mux.HandleFunc("POST /_sim/transfers/{id}/reverse", act(s.ReverseTransfer))
	mux.HandleFunc("POST /_sim/topups/{id}", act(s.topUp))
}

func (s *Sim) dial() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

func (s *Sim) putFaults(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
	var f Faults
	if err == nil {
		err = json.Unmarshal(body, &f)
	}
	if err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	s.SetFaults(f)
	writeJSON(w, f)
}

func complain(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encode(object{"error": object{"message": err.Error()}}))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// What is left of errors here is a caller that has gone.
	_ = json.NewEncoder(w).Encode(v)
}

// topUp reads an amount and a currency such as 5000usd.
func (s *Sim) topUp(what string) error {
	digits := strings.TrimRight(what, "abcdefghijklmnopqrstuvwxyz")
	amount, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("top up %q: minor units and a currency, such as 5000usd", what)
	}
	return s.TopUp(amount, what[len(digits):])
}

type sessionRow struct {
	ID, Amount, Status, PaymentStatus string
	Open                              bool
}

type paymentRow struct {
	ID, Amount, Status string
	Refunds            []refundRow
}

type refundRow struct{ ID, Amount, Status string }

// outRow is a transfer or payout; Pay, Fail and Reverse are what can happen to it.
type outRow struct {
	ID, Amount, Destination, Status string
	Pay, Fail, Reverse              bool
}

func outRows(b Books) (rows []outRow) {
	for _, t := range latest(b.Transfers) {
		status := "transfer"
		if t.Reversed > 0 {
			status = "reversed " + money(t.Reversed, t.Currency)
		}
		rows = append(rows, outRow{ID: t.ID, Amount: money(t.Amount, t.Currency), Destination: t.Destination, Status: status, Reverse: t.Reversed < t.Amount})
	}
	for _, p := range latest(b.Payouts) {
		under := p.Status == "pending" || p.Status == payoutInTransit
		rows = append(rows, outRow{ID: p.ID, Amount: money(p.Amount, p.Currency), Destination: p.Destination, Status: p.Status, Pay: under, Fail: under || p.Status == payoutPaid})
	}
	return rows
}

func balances(b Books) (rows []string) {
	for _, currency := range slices.Sorted(maps.Keys(b.Balance)) {
		rows = append(rows, money(b.Balance[currency], currency))
	}
	return rows
}

func (s *Sim) showControl(w http.ResponseWriter, r *http.Request) {
	lang, books := dial.Language(r), s.Books()
	var sessions []sessionRow
	for _, x := range latest(books.Sessions) {
		sessions = append(sessions, sessionRow{x.ID, money(x.Amount, x.Currency), x.Status, x.PaymentStatus, x.Status == "open"})
	}
	var payments []paymentRow
	for _, p := range latest(books.Payments) {
		row := paymentRow{ID: p.ID, Amount: money(p.Amount, p.Currency), Status: p.Status}
		for _, re := range p.Refunds {
			row.Refunds = append(row.Refunds, refundRow{re.ID, money(re.Amount, p.Currency), re.Status})
		}
		payments = append(payments, row)
	}
	dial.Render(w, pages, "sim.html", map[string]any{"Lang": lang, "T": words[lang], "Dial": dial.Rows(s.dial()), "Sessions": sessions, "Payments": payments,
		"Out": outRows(books), "Balances": balances(books)})
}

// latest are the last rows, newest first.
func latest[T any](rows []T) []T {
	rows = slices.Clone(rows[max(0, len(rows)-maxShown):])
	slices.Reverse(rows)
	return rows
}
