package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// textbookPreset is what the textbook is called among the presets.
const textbookPreset = "textbook"

// textbookTries is how often it tries one order: its transactions may deadlock.
const textbookTries = 10

// pools are the numbers of connections that a preset is measured with. Too many
// make a lock that all of them want slower, and a ratio to that would flatter.
func pools(store, preset string) []int {
	switch {
	case preset != textbookPreset:
		return []int{0} // the store's own
	case scheme(store) == "sqlite":
		return []int{1} // it has one writer; others would only sleep
	}
	return []int{8, 16, 64}
}

// textbook is a seller as it is written first: one transaction for each order that
// locks the stock, writes the order under its key, and takes the piece. It
// shares no code with ours.
type textbook struct {
	db              *sql.DB
	version         string
	stock, orders   string // tables
	find, add, take *sql.Stmt
	last            atomic.Int64 // order id
	full            []string     // SKUs that were given benchStock
}

func openTextbook(ctx context.Context, t heat, full, empty []string) (*textbook, error) {
	version, err := serverVersion(ctx, t.store)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(t.store)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(t.pool)
	db.SetMaxIdleConns(t.pool)
	run := "holdfast_bench_" + strings.ToLower(rand.Text()[:8])
	s := &textbook{db: db, version: version, stock: run + "_stock", orders: run + "_orders", full: full}
	err = s.make(ctx)
	if err == nil {
		err = s.fill(ctx, full, benchStock)
	}
	if err == nil {
		err = s.fill(ctx, empty, 0)
	}
	if err == nil {
		err = s.prepare(ctx, scheme(t.store))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("textbook: %w", err), s.close(ctx))
	}
	return s, nil
}

func (s *textbook) make(ctx context.Context) error {
	for _, table := range []string{
		s.stock + ` (sku VARCHAR(64) NOT NULL PRIMARY KEY, available BIGINT NOT NULL CHECK (available >= 0))`,
		s.orders + ` (id BIGINT NOT NULL PRIMARY KEY, idempotency_key VARCHAR(64) NOT NULL UNIQUE, sku VARCHAR(64) NOT NULL,
			quantity BIGINT NOT NULL, state VARCHAR(16) NOT NULL, expires_at BIGINT NOT NULL)`,
	} {
		if _, err := s.db.ExecContext(ctx, "CREATE TABLE "+table); err != nil {
			return err
		}
	}
	return nil
}

// fillRows is how many SKUs one statement inserts.
const fillRows = 500

// fill writes the stock. The names are ours, and need no quoting.
func (s *textbook) fill(ctx context.Context, skus []string, pieces int64) error {
	for len(skus) > 0 {
		n := min(fillRows, len(skus))
		var rows []string
		for _, sku := range skus[:n] {
			rows = append(rows, fmt.Sprintf("('%s', %d)", sku, pieces))
		}
		if _, err := s.db.ExecContext(ctx, "INSERT INTO "+s.stock+" (sku, available) VALUES "+strings.Join(rows, ", ")); err != nil {
			return err
		}
		skus = skus[n:]
	}
	return nil
}

func (s *textbook) prepare(ctx context.Context, scheme string) error {
	lock := " FOR UPDATE"
	if scheme == "sqlite" {
		lock = "" // BEGIN IMMEDIATE has locked everything
	}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&s.find, "SELECT available FROM " + s.stock + " WHERE sku = ?" + lock},
		{&s.add, "INSERT INTO " + s.orders + " (id, idempotency_key, sku, quantity, state, expires_at) VALUES (?, ?, ?, 1, 'held', ?)"},
		{&s.take, "UPDATE " + s.stock + " SET available = available - 1 WHERE sku = ?"},
	} {
		if strings.HasPrefix(scheme, "postgres") {
			p.query = numbered(p.query)
		}
		var err error
		if *p.to, err = s.db.PrepareContext(ctx, p.query); err != nil {
			return err
		}
	}
	return nil
}

// numbered writes ? as $1, $2 and so on.
func numbered(query string) string {
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", "$"+strconv.Itoa(n), 1)
	}
	return query
}

func (s *textbook) placers(_ context.Context, _ *benching, clients int) (all []placer, stop func(), err error) {
	for range clients {
		all = append(all, s.place)
	}
	return all, func() {}, nil
}

func (s *textbook) place(ctx context.Context, key string, skus []string, fates []placed) {
	for range textbookTries {
		held, err := s.order(ctx, key, skus[0])
		switch {
		case err != nil:
			continue // deadlocked: the key says that a second try is no second order
		case held:
			fates[0] = placeHeld
		default:
			fates[0] = placeSoldOut
		}
		return
	}
}

// textbookHold is how long its orders are held.
const textbookHold = 15 * time.Minute

func (s *textbook) order(ctx context.Context, key, sku string) (held bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // after Commit it does nothing
	var available int64
	if err := tx.StmtContext(ctx, s.find).QueryRowContext(ctx, sku).Scan(&available); err != nil {
		return false, err
	}
	if available < 1 {
		return false, nil
	}
	if _, err := tx.StmtContext(ctx, s.add).ExecContext(ctx, s.last.Add(1), key, sku, time.Now().Add(textbookHold).UnixMilli()); err != nil {
		return false, err
	}
	if _, err := tx.StmtContext(ctx, s.take).ExecContext(ctx, sku); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

func (s *textbook) levels(ctx context.Context) (map[string]level, error) {
	all := map[string]level{}
	err := s.each(ctx, "SELECT sku, available FROM "+s.stock, func(sku string, n int64) {
		all[sku] = level{available: n}
	})
	if err != nil {
		return nil, err
	}
	err = s.each(ctx, "SELECT sku, COUNT(*) FROM "+s.orders+" GROUP BY sku", func(sku string, n int64) {
		v := all[sku]
		v.held = n
		all[sku] = v
	})
	for _, sku := range s.full {
		v := all[sku]
		v.received = benchStock
		all[sku] = v
	}
	return all, err
}

func (s *textbook) each(ctx context.Context, query string, visit func(sku string, n int64)) error {
	rows, err := s.db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("textbook: audit: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var sku string
		var n int64
		if err := rows.Scan(&sku, &n); err != nil {
			return fmt.Errorf("textbook: audit: %w", err)
		}
		visit(sku, n)
	}
	return rows.Err()
}

func (s *textbook) counts() counts { return counts{} }

// verify has nothing to prove: levels are all that it has.
func (s *textbook) verify(context.Context, *host) error { return nil }

func (s *textbook) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeFor)
	defer cancel()
	var err error
	for _, table := range []string{s.stock, s.orders} {
		_, dropped := s.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table)
		err = errors.Join(err, dropped)
	}
	return errors.Join(err, s.db.Close())
}

func (s *textbook) server() string { return s.version }
