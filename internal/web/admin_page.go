package web

import (
	"crypto/rand"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bojanz/currency"

	"github.com/holdfast-pay/holdfast"
)

// cell is one value on a page of the console. The zero cell is empty.
type cell struct {
	As       string // how it is shown: "" = Text, "word" = the words of Text, state, time, money or number
	Text     string
	N        int64 // of number and money, in minor units of Currency
	Currency string
	Time     holdfast.Time
	Href     string
	Mood     string // of a state: good, warn, bad or ""
}

func said(text string) cell { return cell{Text: text} }

func link(text, href string) cell { return cell{Text: text, Href: href} }

// to links to the page of a document; without an id there is none.
func to(things, id string) cell {
	if id == "" {
		return cell{}
	}
	return cell{Text: id, Href: "/admin/" + things + "/" + url.PathEscape(id), As: "id"}
}

func count(n int64) cell { return cell{As: "number", N: n} }

func moneyOf(minor int64, code string) cell { return cell{As: "money", N: minor, Currency: code} }

func moment(t holdfast.Time) cell {
	if t == 0 {
		return cell{}
	}
	return cell{As: "time", Time: t}
}

// moods are those of states that are not neutral.
var moods = map[string]string{
	"paid": "good", "fulfilled": "good", "done": "good", "applied": "good", "open": "good", "active": "good", "running": "good", "delivered": "good", "enabled": "good", "pending": "warn",
	"held": "warn", "paying": "warn", "closing": "warn", "refunding": "warn", "pending_approval": "warn", "unknown": "warn",
	"submitted": "warn", "requested": "warn", "accepted": "warn", "parked": "warn", "ready": "warn", "waiting": "warn", "retrying": "warn",
	"stuck": "bad", "quarantined": "bad", "failed": "bad", "refused": "bad", "frozen": "bad", "returned": "bad", "disabled": "bad", "revoked": "bad",
}

func state(s string) cell { return cell{As: "state", Text: s, Mood: moods[s]} }

// table is rows under their columns; the words of a column are admin.col.<name>.
type table struct {
	ID      string
	Columns []string
	Rows    [][]cell
	Empty   string // the words when there are no rows, and with .text what to do
}

// field is one of a form; its words are admin.field.<name>.
type field struct {
	Name     string
	Kind     string // of input, or select, or textarea; "" = text
	Value    string
	Choices  []string // of select; their words are admin.choice.<choice>, if there are any
	Required bool
	Hint     string // words
	Min      string
}

// form is a deed that the visitor may do. Its words are Word; it is folded until
// it is opened, so that nothing is done by one careless click.
type form struct {
	Action string
	Word   string
	Key    string
	Back   string
	Fields []field
	Danger bool
	Open   bool // not folded
}

// may is a form for a deed, if the visitor may do it.
func (d *desk) may(role holdfast.Role, f form) []form {
	if !d.who.Role.Allows(role) {
		return nil
	}
	f.Key, f.Back = rand.Text(), d.r.URL.Path
	return []form{f}
}

var reason = field{Name: "reason", Required: true, Hint: "admin.hint.reason"}

// card is a page about one thing.
type card struct {
	Title    string // of the thing itself; "" = the page's
	Lead     string // words
	State    cell
	Facts    []fact
	Note     note
	Sections []section
	Steps    []step // an order's timeline
	NextStep string // of the timeline; "" = that is all
	Forms    []form
}

// fact is a value with its name, admin.col.<name>.
type fact struct {
	Name string
	cell
}

// note is something to notice; Text is said as it is.
type note struct{ Word, Mood, Text string }

// section is a table with words above it.
type section struct {
	Word string
	table
}

// Limits of lists, in rows.
const (
	pageRows = 50
	csvRows  = 10_000
)

// listing is a list of the console: its words are admin.<name>, those of its
// filter's states admin.state.<state>.
type listing struct {
	name    string
	role    holdfast.Role
	columns []string
	states  []string // that can be chosen; nil = there is no such filter
	by      string   // what can be looked for; "" = nothing: its words are admin.by.<by>
	// rows are at most n, behind the row whose id is after; next is the id of the
	// last row if there are more.
	rows  func(d *desk, q query, n int) (rows [][]cell, next string, err error)
	forms func(d *desk) []form // nil = none
}

// query is what a list is asked for.
type query struct{ State, By, After string }

// listed is a listing on its page.
type listed struct {
	Name   string
	Lead   string
	States []string
	By     string
	Query  query
	Table  table
	Next   string // address of the next page; "" = this is the last
	CSV    string
	Forms  []form
}

func (d *desk) query() (query, error) {
	v := d.r.URL.Query()
	q := query{State: v.Get("state"), By: strings.TrimSpace(v.Get("by")), After: v.Get("after")}
	for _, s := range []string{q.State, q.By, q.After} {
		if len(s) > maxFind || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return q, errForm
		}
	}
	return q, nil
}

// maxFind is how many bytes can be looked for.
const maxFind = 255

func (q query) path(name string) string {
	v := url.Values{}
	for key, value := range map[string]string{"state": q.State, "by": q.By, "after": q.After} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if len(v) == 0 {
		return "/admin/" + name
	}
	return "/admin/" + name + "?" + v.Encode()
}

func (d *desk) list(l listing) error {
	q, err := d.query()
	if err != nil {
		return err
	}
	rows, next, err := l.rows(d, q, pageRows)
	if err != nil {
		return err
	}
	in := listed{Name: l.name, Lead: "admin." + l.name + ".lead", States: l.states, By: l.by, Query: q, CSV: query{State: q.State, By: q.By}.path(l.name + ".csv"),
		Table: table{ID: "rows", Columns: l.columns, Rows: rows, Empty: "admin." + l.name + ".none"}}
	if q.State != "" || q.By != "" {
		in.Table.Empty = "admin.none_match"
	}
	if next != "" {
		in.Next = query{q.State, q.By, next}.path(l.name)
	}
	if l.forms != nil {
		in.Forms = l.forms(d)
	}
	return d.sheet("admin."+l.name, in)
}

// paged makes rows of one document more than a page has.
func paged[T any](all []T, err error, n int, id func(T) string, row func(T) []cell) ([][]cell, string, error) {
	next := ""
	if len(all) > n {
		all, next = all[:n], id(all[n-1])
	}
	rows := make([][]cell, len(all))
	for i, v := range all {
		rows[i] = row(v)
	}
	return rows, next, err
}

// csv answers with the whole list, up to csvRows, for a spreadsheet.
func (d *desk) csv(l listing) error {
	q, err := d.query()
	if err != nil {
		return err
	}
	var out strings.Builder
	out.WriteString("\ufeff") // so that spreadsheets read UTF-8
	head := make([]string, 0, len(l.columns))
	for _, c := range l.columns {
		if head = append(head, quoted(c)); ofMoney[c] {
			head = append(head, quoted(c+"_currency"))
		}
	}
	out.WriteString(strings.Join(head, ",") + "\r\n")
	for n := 0; n < csvRows; {
		rows, next, err := l.rows(d, q, pageRows)
		if err != nil {
			return err
		}
		for _, row := range rows {
			cells := make([]string, len(row))
			for i, c := range row {
				cells[i] = c.csv(ofMoney[l.columns[i]])
			}
			out.WriteString(strings.Join(cells, ",") + "\r\n")
		}
		n += len(rows)
		if q.After = next; next == "" {
			break
		}
	}
	h := d.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="holdfast-`+l.name+`.csv"`)
	_, _ = d.w.Write([]byte(out.String()))
	return nil
}

// ofMoney are the columns with an amount and its currency.
var ofMoney = map[string]bool{"price": true, "total": true, "amount": true, "fee": true, "balance": true, "here": true, "there": true}

// csv writes a cell: numbers as numbers, words as what they stand for, everything
// else as text that no spreadsheet takes for a formula. An amount is two cells.
func (c cell) csv(money bool) string {
	switch {
	case money && c.As != "money":
		return ","
	case money:
		a, err := currency.NewAmountFromInt64(c.N, c.Currency)
		if err != nil {
			return "," + quoted(c.Currency)
		}
		return a.Number() + "," + quoted(c.Currency)
	case c.As == "number":
		return strconv.FormatInt(c.N, 10)
	case c.As == "time":
		return quoted(c.Time.Std().Format(atExact))
	case c.As == "word":
		parts := strings.SplitN(c.Text, ".", 3) // admin.event.order.paid is for people
		return quoted(parts[len(parts)-1])
	}
	return quoted(harmless(c.Text))
}

// formula are the characters with which spreadsheets begin one.
const formula = "=+-@\t\r\n\x00＝＋－＠"

// harmless is text that spreadsheets show as it is.
func harmless(s string) string {
	if s != "" && strings.ContainsRune(formula, []rune(s)[0]) {
		s = "'" + s
	}
	return strings.ReplaceAll(s, "\x00", "")
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// number reads a form's whole number.
func (d *desk) number(name string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(d.r.PostFormValue(name)), 10, 64)
	if err != nil {
		return 0, &holdfast.Rejection{Code: "not_a_number", Detail: name}
	}
	return n, nil
}

// sum reads a form's amount of money, in the currency's own notation, as minor
// units; nothing is zero.
func (d *desk) sum(name, code string) (int64, error) {
	text := strings.TrimSpace(d.r.PostFormValue(name))
	if text == "" {
		return 0, nil
	}
	a, err := currency.NewAmount(text, code)
	if err != nil {
		return 0, &holdfast.Rejection{Code: "not_an_amount", Detail: name}
	}
	n, err := a.Int64()
	if err != nil || !exact(a) {
		return 0, &holdfast.Rejection{Code: "not_an_amount", Detail: name}
	}
	return n, nil
}

// exact says that an amount has no more decimals than its currency.
func exact(a currency.Amount) bool { return a.Round().Equal(a) }
