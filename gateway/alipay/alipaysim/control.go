package alipaysim

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

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
	mux.HandleFunc("GET /_sim/bill/{date}", s.takeBill)
	mux.HandleFunc("GET /_sim/app.key.pem", give(DefaultAppKey))
	mux.HandleFunc("GET /_sim/alipay.pub.pem", give(DefaultPublicKey))
	mux.HandleFunc("GET /_sim/app.cert.pem", give(defaultAppCert))
	mux.HandleFunc("GET /_sim/root.cert.pem", give(defaultRootCert))
	mux.HandleFunc("GET /_sim/alipay.cert.pem", give(defaultCert))
	act := func(do func(number string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := do(r.PathValue("number")); err != nil {
				complain(w, http.StatusConflict, err)
				return
			}
			writeJSON(w, s.Books())
		}
	}
	mux.HandleFunc("POST /_sim/visit/{number}", act(s.Visit))
	mux.HandleFunc("POST /_sim/pay/{number}", act(s.Pay))
	mux.HandleFunc("POST /_sim/decline/{number}", act(s.Decline))
	mux.HandleFunc("POST /_sim/transfers/{number}/settle", act(s.SettleTransfer))
	mux.HandleFunc("POST /_sim/transfers/{number}/fail", act(s.FailTransfer))
	mux.HandleFunc("POST /_sim/transfers/{number}/return", act(s.ReturnTransfer))
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

// takeBill gives a day's bill at once, today's too.
func (s *Sim) takeBill(w http.ResponseWriter, r *http.Request) {
	day, err := time.ParseInLocation(dayForm, r.PathValue("date"), beijing)
	if err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	doc, err := s.Bill(day)
	if err != nil {
		complain(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	// What is left of errors here is a caller that has gone.
	_, _ = w.Write(doc)
}

// give answers with a key of the sandbox, so that a shop can be set up with it.
func give(key string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		// What is left of errors here is a caller that has gone.
		_, _ = io.WriteString(w, key)
	}
}

func complain(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"error": map[string]string{"message": err.Error()}})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// What is left of errors here is a caller that has gone.
	_ = json.NewEncoder(w).Encode(v)
}

type transferRow struct {
	Number, Receiver, Amount, Status string
	Dealing, Arrived                 bool
}

func transferRows(all []Transfer) (rows []transferRow) {
	for _, t := range all[max(0, len(all)-maxShown):] {
		rows = append(rows, transferRow{t.Number, t.Receiver, "¥" + yuan(t.Amount), t.Status, t.Status == dealing, t.Status == arrived})
	}
	slices.Reverse(rows)
	return rows
}

type tradeRow struct {
	Number, No, Amount, Status, Refunded string
	Open                                 bool
}

func (s *Sim) showControl(w http.ResponseWriter, r *http.Request) {
	lang, books := dial.Language(r), s.Books()
	var rows []tradeRow
	for _, t := range books.Trades[max(0, len(books.Trades)-maxShown):] {
		rows = append(rows, tradeRow{t.Number, t.No, "¥" + yuan(t.Amount), t.Status, yuan(t.Refunded), t.Status == waiting})
	}
	slices.Reverse(rows)
	dial.Render(w, pages, "sim.html", map[string]any{
		"Lang": lang, "T": words[lang], "Dial": dial.Rows(s.dial()), "Trades": rows, "Transfers": transferRows(books.Transfers),
	})
}
