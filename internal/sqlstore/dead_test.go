package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
)

// dying is a server whose connections die at the first so many queries, as all
// in a pool do after it was started again.
type dying struct{ left int }

func (d *dying) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d *dying) Driver() driver.Driver                        { return nil }
func (d *dying) Prepare(string) (driver.Stmt, error)          { return nil, io.ErrUnexpectedEOF }
func (d *dying) Begin() (driver.Tx, error)                    { return d, nil }
func (d *dying) Commit() error                                { return nil }
func (d *dying) Rollback() error                              { return nil }
func (d *dying) Close() error                                 { return nil }

func (d *dying) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if d.left--; d.left >= 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return noRows{}, nil
}

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

func TestAReadOnDeadConnectionsIsAskedAgain(t *testing.T) {
	ask := func(db *sql.DB) error {
		_, err := list(t.Context(), reads{db: db, dialect: &postgres}, scanVersion, "SELECT 1")
		return err
	}
	for dead, fails := range map[int]bool{0: false, networkReaders: false, networkReaders + 1: true} {
		db := sql.OpenDB(&dying{dead})
		if err := ask(db); (err != nil) != fails || fails && !errors.Is(err, ErrAway) {
			t.Errorf("%d dead connections: got %v, want %v = %v", dead, err, ErrAway, fails)
		}
		db.Close()
	}
	db := sql.OpenDB(&dying{1})
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list(t.Context(), reads{db: tx, dialect: &postgres}, scanVersion, "SELECT 1"); err == nil {
		t.Error("a transaction went on after its connection had died")
	}
}
