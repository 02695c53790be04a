package wechatpaysim

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const (
	maxControlBody = 16 << 10 // bytes
	maxShown       = 50       // rows of the control page's table
)

// routeControl adds the control API. It asks for no key: a simulator is for
// loopback. Other sites' pages are kept out by the routes' outer handler.
func (s *Sim) routeControl(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sim/{$}", s.showControl)
	mux.HandleFunc("GET /_sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.dial()) })
	mux.HandleFunc("PUT /_sim/faults", s.putFaults)
	mux.HandleFunc("GET /_sim/books", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Books()) })
	mux.HandleFunc("GET /_sim/keys/{name}", showKey)
	act := func(do func(id string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := do(r.PathValue("id")); err != nil {
				complain(w, http.StatusConflict, err)
				return
			}
			writeJSON(w, s.Books())
		}
	}
	mux.HandleFunc("POST /_sim/pay/{id}", act(s.Pay))
	mux.HandleFunc("POST /_sim/decline/{id}", act(s.Decline))
	mux.HandleFunc("POST /_sim/refunds/{id}/close", act(s.CloseRefund))
	mux.HandleFunc("POST /_sim/refunds/{id}/break", act(s.BreakRefund))
	mux.HandleFunc("POST /_sim/refunds/{id}/repair", act(s.RepairRefund))
	mux.HandleFunc("POST /_sim/transfers/{id}/confirm", act(s.ConfirmTransfer))
	mux.HandleFunc("POST /_sim/transfers/{id}/lapse", act(s.LapseTransfer))
	mux.HandleFunc("POST /_sim/rotate", act(func(string) error { s.Rotate(); return nil }))
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

func showKey(w http.ResponseWriter, r *http.Request) {
	text := KeyFile(r.PathValue("name"))
	if text == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	w.Write(text)
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

type orderRow struct {
	Order
	Amount string
	Open   bool
	Rows   []refundRow
}

type transferRow struct {
	Transfer
	Shown   string
	Waiting bool
}

func transferRows(all []Transfer) (rows []transferRow) {
	for _, t := range all[max(0, len(all)-maxShown):] {
		rows = append(rows, transferRow{t, money(t.Amount), t.State == transferWaiting})
	}
	slices.Reverse(rows)
	return rows
}

type refundRow struct {
	Number, Amount, Status string
	Failable, Abnormal     bool
}

func (s *Sim) showControl(w http.ResponseWriter, r *http.Request) {
	lang, books := dial.Language(r), s.Books()
	var orders []orderRow
	for _, o := range books.Orders[max(0, len(books.Orders)-maxShown):] {
		row := orderRow{Order: o, Amount: money(o.Total), Open: o.State == notPaid}
		for _, re := range o.Refunds {
			row.Rows = append(row.Rows, refundRow{re.OutRefundNo, money(re.Amount), re.Status, re.Status == refundDone || re.Status == refundProcessing, re.Status == refundAbnormal})
		}
		orders = append(orders, row)
	}
	slices.Reverse(orders)
	dial.Render(w, pages, "sim.html", map[string]any{
		"Lang": lang, "T": words[lang], "Dial": dial.Rows(s.dial()), "Orders": orders, "Transfers": transferRows(books.Transfers), "Fooled": books.Fooled,
		"Keys": []string{MerchantKeyFile, PublicKeyFile, CertificateFile, NextCertificateFile},
	})
}

func money(fen int64) string { return "¥" + yuan(fen) }
