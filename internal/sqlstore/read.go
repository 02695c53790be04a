package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// readTimeout is for one query.
const readTimeout = 30 * time.Second

// reads is the part of ledger.Reader that asks the database: all connections
// of it, or one transaction.
type reads struct {
	db interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	dialect *dialect
	counted *counters // nil = nobody counts
	kept    *kept     // nil = statements are not kept
}

const (
	selectEvents   = `SELECT seq, entry, at, type, subject, body FROM events`
	selectPostings = `SELECT seq, n, from_account, to_account, asset, amount, hold FROM postings`
	selectRecords  = `SELECT kind, id, version, state, owner, ref, due, body FROM records`
)

// Head implements ledger.Reader.
func (r reads) Head(ctx context.Context) (ledger.Head, error) {
	heads, err := list(ctx, r, scanHead, selectHead)
	if err == nil && len(heads) != 1 {
		err = fmt.Errorf("%d rows instead of one", len(heads))
	}
	if err != nil {
		return ledger.Head{}, fmt.Errorf("sqlstore: read the head: %w", err)
	}
	return heads[0], nil
}

// Lines implements ledger.Reader.
func (r reads) Lines(ctx context.Context, q ledger.LineQuery) ([]ledger.Line, error) {
	var w where
	w.and("seq > ?", q.After)
	if q.ID != "" {
		w.and("id = ?", q.ID)
	}
	lines, err := list(ctx, r, scanLine, selectLines+w.String()+" ORDER BY seq LIMIT ?", append(w.args, ledger.Page(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list the journal after %d: %w", q.After, err)
	}
	return lines, nil
}

// Events implements ledger.Reader.
func (r reads) Events(ctx context.Context, q ledger.EventQuery) ([]ledger.Event, error) {
	var w where
	w.and("seq > ?", q.After)
	if q.Subject != "" {
		w.and("subject = ?", q.Subject)
	}
	events, err := list(ctx, r, scanEvent, selectEvents+w.String()+" ORDER BY seq LIMIT ?", append(w.args, ledger.Page(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list events after %d: %w", q.After, err)
	}
	return events, nil
}

// Postings implements ledger.Reader.
func (r reads) Postings(ctx context.Context, q ledger.PostingQuery) ([]ledger.Posted, error) {
	var w where
	order, than := " ORDER BY seq, n LIMIT ?", ">"
	if q.Desc {
		order, than = " ORDER BY seq DESC, n DESC LIMIT ?", "<"
	}
	if q.After != 0 {
		w.and("seq "+than+" ?", q.After)
	}
	if q.Asset != "" {
		w.and("asset = ?", string(q.Asset))
	}
	limit := ledger.Page(q.Limit)
	page, err := r.postings(ctx, q.Account, w, order, limit)
	if err == nil && len(page) == limit {
		// The page may end within an entry: take the rest of it.
		last := page[limit-1]
		w.and("seq = ?", last.Seq)
		w.and("n "+than+" ?", last.N)
		var rest []ledger.Posted
		rest, err = r.postings(ctx, q.Account, w, order, ledger.MaxOps)
		page = append(page, rest...)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list postings after %d: %w", q.After, err)
	}
	return page, nil
}

// postings lists one page. Two accounts of a posting differ, so the postings
// of an account are two lists without doubles, each in the order of its index;
// one list with OR would have to be sorted whole for every page.
func (r reads) postings(ctx context.Context, account ledger.Account, w where, ordered string, limit int) ([]ledger.Posted, error) {
	if account == "" {
		return list(ctx, r, scanPosting, selectPostings+w.String()+ordered, append(w.args, limit)...)
	}
	from, to := w.clone(), w.clone()
	from.and("from_account = ?", string(account))
	to.and("to_account = ?", string(account))
	query := "SELECT * FROM (" + selectPostings + from.String() + ordered + ") AS given" +
		" UNION ALL SELECT * FROM (" + selectPostings + to.String() + ordered + ") AS taken" + ordered
	args := append(from.args, limit)
	args = append(append(args, to.args...), limit, limit)
	return list(ctx, r, scanPosting, query, args...)
}

// Balances implements ledger.Reader.
func (r reads) Balances(ctx context.Context, q ledger.BalanceQuery) ([]ledger.Balance, error) {
	var w where
	if q.Account != "" {
		w.and("account = ?", string(q.Account))
	}
	if q.Asset != "" {
		w.and("asset = ?", string(q.Asset))
	}
	if q.Prefix != "" {
		// Names are printable ASCII: nothing that begins so sorts behind DEL.
		w.and("account >= ? AND account < ?", string(q.Prefix), string(q.Prefix)+"\x7f")
	}
	if q.After != (ledger.Key{}) {
		if r.dialect.seek {
			w.and("account >= ?", string(q.After.Account))
		}
		w.and("(account, asset) > (?, ?)", string(q.After.Account), string(q.After.Asset))
	}
	balances, err := list(ctx, r, scanBalance, selectBalances+w.String()+" ORDER BY account, asset LIMIT ?", append(w.args, ledger.Page(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list balances after %v: %w", q.After, err)
	}
	return balances, nil
}

// Holds implements ledger.Reader.
func (r reads) Holds(ctx context.Context, q ledger.HoldQuery) ([]ledger.Hold, error) {
	var w where
	w.and("id > ?", q.After)
	if q.ID != "" {
		w.and("id = ?", q.ID)
	}
	if q.From != "" {
		w.and("from_account = ?", string(q.From))
	}
	if q.Asset != "" {
		w.and("asset = ?", string(q.Asset))
	}
	switch q.State {
	case "":
	case ledger.Held:
		w.and("state = 'held'") // as a literal: the index of open holds is known by it
	default:
		w.and("state = ?", string(q.State))
	}
	holds, err := list(ctx, r, scanHold, selectHolds+w.String()+" ORDER BY id LIMIT ?", append(w.args, ledger.Page(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list holds after %q: %w", q.After, err)
	}
	return holds, nil
}

// Records implements ledger.Reader.
func (r reads) Records(ctx context.Context, q ledger.RecordQuery) ([]ledger.Record, error) {
	var w where
	for _, f := range []struct{ cond, value string }{
		{"kind = ?", q.Kind},
		{"id = ?", q.ID},
		{"state = ?", q.State},
		{"owner <> '' AND owner = ?", q.Owner}, // the first halves name the partial indexes
		{"ref <> '' AND ref = ?", q.Ref},
	} {
		if f.value != "" {
			w.and(f.cond, f.value)
		}
	}
	order := w.page(q, r.dialect.seek)
	records, err := list(ctx, r, scanRecord, selectRecords+w.String()+order+" LIMIT ?", append(w.args, ledger.Page(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list records after %v: %w", q.After, err)
	}
	return records, nil
}

// page continues a list of records and gives its order.
func (w *where) page(q ledger.RecordQuery, seek bool) (order string) {
	if q.DueBy != 0 {
		w.and("due > 0 AND due <= ?", q.DueBy)
		return " ORDER BY due, id, kind"
	}
	order, than := " ORDER BY kind, id", ">"
	if q.Desc {
		order, than = " ORDER BY kind DESC, id DESC", "<"
	}
	switch {
	case q.After == ledger.RecordKey{}:
	case q.After.Kind == q.Kind:
		w.and("id "+than+" ?", q.After.ID)
	default:
		if seek {
			w.and("kind "+than+"= ?", q.After.Kind)
		}
		w.and("(kind, id) "+than+" (?, ?)", q.After.Kind, q.After.ID)
	}
	return order
}

// maxReads is how often a query is asked: after a server was started again, every
// connection in the pool may be dead, and nobody knows before it is used.
const maxReads = networkReaders + 1

// list reads all rows of a query. Its LIMIT is what bounds it.
func list[R any](ctx context.Context, r reads, scan func(scanner) (R, error), query string, args ...any) (out []R, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if r.counted != nil {
		r.counted.queries.Add(1)
	}
	_, pooled := r.db.(*sql.DB) // a transaction is over when its connection is
	for try := 1; ; try++ {
		out, err = listOnce(ctx, r, scan, query, args)
		if err == nil {
			return out, nil
		}
		if !pooled || try == maxReads || ctx.Err() != nil || !r.dialect.again(err) {
			return nil, r.dialect.away(err)
		}
	}
}

func listOnce[R any](ctx context.Context, r reads, scan func(scanner) (R, error), query string, args []any) (out []R, err error) {
	rows, err := r.query(ctx, r.dialect.bind(query), args)
	if err != nil {
		return nil, err
	}
	err = each(rows, collect(scan, &out))
	return out, err
}

func (r reads) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	if r.kept == nil {
		return r.db.QueryContext(ctx, query, args...)
	}
	stmt, err := r.kept.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return r.db.QueryContext(ctx, query, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

// maxKept is how many statements are kept. There are fewer forms of queries.
const maxKept = 256

// kept are statements that were prepared for queries, by their text: to read a
// query costs SQLite as much as to answer it, and MySQL two more round trips. Safe
// for concurrent use; they end with db.
type kept struct {
	db *sql.DB

	mu     sync.RWMutex
	byText map[string]*sql.Stmt
}

// statement is the one for query; nil = there are too many already.
func (k *kept) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	k.mu.RLock()
	stmt, full := k.byText[query], len(k.byText) >= maxKept
	k.mu.RUnlock()
	if stmt != nil || full {
		return stmt, nil
	}
	stmt, err := k.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.byText[query]; other != nil { // somebody was faster
		return other, stmt.Close()
	}
	if k.byText == nil {
		k.byText = map[string]*sql.Stmt{}
	}
	k.byText[query] = stmt
	return stmt, nil
}

// where is the conditions of a query, all of which hold.
type where struct {
	conds []string
	args  []any
}

func (w *where) and(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

func (w where) clone() where {
	var c where
	c.conds = append(c.conds, w.conds...)
	c.args = append(c.args, w.args...)
	return c
}

// String is the clause, or nothing.
func (w where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

func scanEvent(row scanner) (e ledger.Event, err error) {
	var body []byte
	err = row.Scan(&e.Seq, &e.Entry, &e.At, &e.Type, &e.Subject, &body)
	e.Body = document(body)
	return e, err
}

func scanPosting(row scanner) (p ledger.Posted, err error) {
	err = row.Scan(&p.Seq, &p.N, &p.From, &p.To, &p.Asset, &p.Amount, &p.Hold)
	return p, err
}

func scanRecord(row scanner) (r ledger.Record, err error) {
	var body []byte
	err = row.Scan(&r.Kind, &r.ID, &r.Version, &r.State, &r.Owner, &r.Ref, &r.Due, &body)
	r.Body = document(body)
	return r, err
}

// document is a body as it was given: none is stored as an empty text.
func document(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return body
}
