package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// figures is one contender's line. The figures are left out when the last three
// are not all zero: a wrong answer is not fast.
type figures struct {
	Preset     string   `json:"preset"`
	Store      string   `json:"store"`
	Server     string   `json:"server"` // product and version of the database
	Clients    int      `json:"clients"`
	SKUs       int      `json:"skus"`
	Seed       int      `json:"seed,omitempty"`  // orders that were placed before
	Pool       int      `json:"pool,omitempty"`  // connections, of the textbook
	Redis      bool     `json:"redis,omitempty"` // the preset uses one
	HTTP       bool     `json:"http,omitempty"`
	Payouts    bool     `json:"payouts,omitempty"` // instead of orders
	Bulk       int      `json:"bulk,omitempty"`    // orders of one request
	Rate       float64  `json:"rate,omitempty"`    // requests started each second; 0 = closed loop
	Spread     string   `json:"spread,omitempty"`
	Accepted   *float64 `json:"accepted_per_s,omitempty"` // orders
	Refused    *float64 `json:"refused_per_s,omitempty"`
	P50        *float64 `json:"p50_ms,omitempty"` // of the requests with an accepted order
	P99        *float64 `json:"p99_ms,omitempty"`
	BatchAvg   *float64 `json:"batch_avg,omitempty"`         // entries of one commit
	TriesAvg   *float64 `json:"tries_avg,omitempty"`         // decisions of one batch until one could be written
	SQLTx      *float64 `json:"sql_tx_per_accept,omitempty"` // writing transactions begun for each accepted order
	CPU        *float64 `json:"cpu_us_per_accept,omitempty"` // processor time of this process with its clients, without a database server
	Ratios     *ratios  `json:"ratios,omitempty"`
	NotStarted int64    `json:"not_started,omitempty"` // requests that were due when too many were under way
	TurnedAway int64    `json:"turned_away,omitempty"` // told to come back, and not counted as answered
	Oversold   int64    `json:"oversold"`
	Undersold  int64    `json:"undersold"`
	Unanswered int64    `json:"unanswered"` // orders whose outcome the caller never learned, or learned wrongly
}

func (f figures) ok() bool { return f.Oversold|f.Undersold|f.Unanswered == 0 }

// ratios are accepted_per_s divided by the floors: they travel from machine to
// machine better than the figures do.
type ratios struct {
	Fsync        *float64 `json:"of_fsyncs,omitempty"`
	Empty        *float64 `json:"of_empty_handler,omitempty"`
	RefusedEmpty *float64 `json:"refused_of_empty_handler,omitempty"` // refused_per_s instead, over HTTP
	Lua          *float64 `json:"of_lua_calls,omitempty"`             // of a call of a small script in Redis
	Textbook     *float64 `json:"of_textbook,omitempty"`              // with the same clients and SKUs on the same server
	TextbookP99  *float64 `json:"p99_of_textbook,omitempty"`          // p99_ms divided by the textbook's
}

// compare works out the ratios of all that have figures.
func compare(all []figures, floor *floors) {
	type race struct {
		server        string
		clients, skus int
	}
	textbooks := map[race]figures{}
	for _, f := range all {
		if f.Preset == textbookPreset && f.Accepted != nil {
			textbooks[race{f.Server, f.Clients, f.SKUs}] = f
		}
	}
	for i := range all {
		f := &all[i]
		if f.Accepted == nil {
			continue
		}
		empty := floor.empty[f.Clients].perSecond()
		f.Ratios = &ratios{Fsync: ratio(f.Accepted, floor.fsync()), Empty: ratio(f.Accepted, empty)}
		if f.HTTP {
			f.Ratios.RefusedEmpty = ratio(f.Refused, empty)
		}
		if lua, ok := floor.calls[f.Clients]; ok {
			f.Ratios.Lua = ratio(f.Accepted, lua.perSecond())
		}
		if t, ok := textbooks[race{f.Server, f.Clients, f.SKUs}]; ok {
			f.Ratios.Textbook, f.Ratios.TextbookP99 = ratio(f.Accepted, *t.Accepted), ratio(f.P99, *t.P99)
		}
	}
}

// ratio is nil where there is nothing to divide by.
func ratio(v *float64, by float64) *float64 {
	if by == 0 {
		return nil
	}
	of := thousandth(*v / by)
	return &of
}

func thousandth(v float64) float64 { return math.Round(v*1000) / 1000 }

// column is one of a bench's table.
type column struct {
	name string
	cell func(figures) string // "" = nothing to show
}

var benchColumns = []column{
	{"store", func(f figures) string { return f.Server }},
	{"preset", func(f figures) string { return f.Preset }},
	{"clients", func(f figures) string { return fmt.Sprint(f.Clients) }},
	{"SKUs", func(f figures) string { return fmt.Sprint(f.SKUs) }},
	{"placed before", func(f figures) string { return nonzero(int64(f.Seed)) }},
	{"orders a request", func(f figures) string { return nonzero(int64(f.Bulk)) }},
	{"requests due/s", func(f figures) string { return nonzero(int64(f.Rate)) }},
	{"connections", func(f figures) string { return nonzero(int64(f.Pool)) }},
	{"accepted/s", func(f figures) string { return number("%.0f", f.Accepted) }},
	{"of fsyncs", func(f figures) string { return f.ratio("%.2f", func(r ratios) *float64 { return r.Fsync }) }},
	{"of textbook", func(f figures) string { return f.ratio("%.2f", func(r ratios) *float64 { return r.Textbook }) }},
	{"of empty handler", func(f figures) string { return f.ratio("%.2f", func(r ratios) *float64 { return r.Empty }) }},
	{"of Lua calls", func(f figures) string { return f.ratio("%.2f", func(r ratios) *float64 { return r.Lua }) }},
	{"p50 ms", func(f figures) string { return number("%.1f", f.P50) }},
	{"p99 ms", func(f figures) string { return number("%.1f", f.P99) }},
	{"p99 of textbook", func(f figures) string { return f.ratio("%.3f", func(r ratios) *float64 { return r.TextbookP99 }) }},
	{"refused/s", func(f figures) string { return number("%.0f", f.Refused) }},
	{"refused of empty", func(f figures) string { return f.ratio("%.2f", func(r ratios) *float64 { return r.RefusedEmpty }) }},
	{"batch", func(f figures) string { return number("%.1f", f.BatchAvg) }},
	{"tries", func(f figures) string { return number("%.2f", f.TriesAvg) }},
	{"SQL tx/order", func(f figures) string { return number("%.3f", f.SQLTx) }},
	{"CPU us/order", func(f figures) string { return number("%.0f", f.CPU) }},
	{"not started", func(f figures) string { return nonzero(f.NotStarted) }},
	{"turned away", func(f figures) string { return nonzero(f.TurnedAway) }},
	{"oversold", func(f figures) string { return nonzero(f.Oversold) }},
	{"undersold", func(f figures) string { return nonzero(f.Undersold) }},
	{"unanswered", func(f figures) string { return nonzero(f.Unanswered) }},
}

func (f figures) ratio(format string, pick func(ratios) *float64) string {
	if f.Ratios == nil {
		return ""
	}
	return number(format, pick(*f.Ratios))
}

func number(format string, v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, *v)
}

func nonzero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// benchTable is the table of all contenders, without the columns that have
// nothing to show.
func benchTable(all []figures) (head table.Row, body []table.Row) {
	body = make([]table.Row, len(all))
	for _, c := range benchColumns {
		cells, filled := make([]string, len(all)), false
		for i, f := range all {
			cells[i] = c.cell(f)
			filled = filled || cells[i] != ""
		}
		if !filled {
			continue
		}
		head = append(head, c.name)
		for i := range all {
			body[i] = append(body[i], cells[i])
		}
	}
	return head, body
}

func showBench(w io.Writer, b *benching, all []figures, floor *floors) {
	head, body := benchTable(all)
	if b.markdown {
		t := table.NewWriter()
		t.AppendHeader(head)
		t.AppendRows(body)
		fmt.Fprintf(w, "%s\n\n", t.RenderMarkdown())
	} else {
		rows(w, head, body...)
	}
	for _, line := range notes(all, floor) {
		fmt.Fprintln(w, line)
	}
}

// notes are what to know about the table.
func notes(all []figures, floor *floors) []string {
	lines := floor.lines()
	if !slices.ContainsFunc(all, func(f figures) bool { return !f.ok() }) {
		lines = append(lines, "Nothing was oversold, undersold or left unanswered. Every answer came after its commit was durable.")
	}
	return append(lines, machine())
}
