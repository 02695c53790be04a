package sqlstore

import (
	"database/sql"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// The rows below are right; each case of TestTheSchemaRefusesWrongRows breaks one rule.
const (
	goodLine    = `INSERT INTO journal VALUES (1, 0, 'e', zeroblob(32), '', '{}', zeroblob(32))`
	goodPosting = `INSERT INTO postings VALUES (1, 0, 'a', 'b', 'CNY', 1, '')`
	goodEvent   = `INSERT INTO events VALUES (1, 1, 0, 'made', 'x', '')`
	goodBalance = `INSERT INTO balances (account, asset, posted, held, version) VALUES ('a', 'CNY', 5, 5, 1)`
	goodHold    = `INSERT INTO holds VALUES ('h', 'a', 'b', 'CNY', 5, 1, 1, 'held', 0, 0)`
	goodRecord  = `INSERT INTO records VALUES ('order', 'o', 1, '', '', '', 0, '{}')`
)

func TestTheSchemaRefusesWrongRows(t *testing.T) {
	replace := func(statement, old, with string) string {
		if !strings.Contains(statement, old) {
			t.Fatalf("%q has no %q", statement, old)
		}
		return strings.Replace(statement, old, with, 1)
	}
	cases := []struct {
		rule      string // the name of the constraint, or what the trigger says
		breach    breach
		statement string
	}{
		{"identity_is_one_row", check, `INSERT INTO identity VALUES (2, 'x', zeroblob(32))`},
		{"identity_has_an_id", check, `INSERT INTO identity VALUES (1, '', zeroblob(32))`},
		{"identity_secret_has_32_bytes", check, `INSERT INTO identity VALUES (1, 'x', zeroblob(31))`},
		{"the identity of a ledger never changes", trigger, `UPDATE identity SET secret = zeroblob(32)`},
		{"the identity of a ledger never changes", trigger, `DELETE FROM identity`},

		{"head_is_one_row", check, `INSERT INTO head VALUES (2, 0, 0, 0, zeroblob(32))`},
		{"head_seq_counts", check, `UPDATE head SET seq = -1`},
		{"head_events_count", check, `UPDATE head SET events = -1`},
		{"head_time_is_positive", check, `UPDATE head SET at = -1`},
		{"head_hash_has_32_bytes", check, `UPDATE head SET hash = x'00'`},
		{"the head of the journal cannot be deleted", trigger, `DELETE FROM head`},

		{"journal_seq_counts", check, replace(goodLine, "(1, 0,", "(0, 0,")},
		{"journal_time_is_positive", check, replace(goodLine, "(1, 0,", "(1, -1,")},
		{"journal_has_an_id", check, replace(goodLine, "'e'", "''")},
		{"journal_fingerprint_has_32_bytes", check, replace(goodLine, "zeroblob(32)", "x'00'")},
		{"journal_hash_has_32_bytes", check, replace(goodLine, "zeroblob(32))", "x'00')")},
		{"journal.id", unique, replace(goodLine, "(1, 0, 'e'", "(8, 0, 'kept'")},
		{"journal.seq", unique, replace(goodLine, "(1, 0, 'e'", "(7, 0, 'e'")},
		{"journal is append-only", trigger, `UPDATE journal SET at = 1`},
		{"journal is append-only", trigger, `DELETE FROM journal`},

		{"postings_n_counts", check, replace(goodPosting, "(1, 0,", "(1, -1,")},
		{"postings_amount_in_range", check, replace(goodPosting, "'CNY', 1,", "'CNY', 0,")},
		{"postings_amount_in_range", check, replace(goodPosting, "'CNY', 1,", "'CNY', 9007199254740992,")},
		{"postings_move", check, replace(goodPosting, "'b'", "'a'")},
		{"postings are append-only", trigger, `UPDATE postings SET amount = 2`},
		{"postings are append-only", trigger, `DELETE FROM postings`},

		{"events_seq_counts", check, replace(goodEvent, "(1, 1,", "(0, 1,")},
		{"events_have_an_entry", check, replace(goodEvent, "(1, 1,", "(1, 0,")},
		{"events_time_is_positive", check, replace(goodEvent, "(1, 1, 0,", "(1, 1, -1,")},
		{"events are append-only", trigger, `UPDATE events SET type = 'unmade'`},
		{"events are append-only", trigger, `DELETE FROM events`},

		{"balances_have_an_account", check, replace(goodBalance, "'a'", "''")},
		{"balances_have_an_asset", check, replace(goodBalance, "'CNY'", "''")},
		{"balances_held_is_not_negative", check, replace(goodBalance, "5, 5, 1)", "5, -1, 1)")},
		{"balances_version_counts", check, replace(goodBalance, "5, 5, 1)", "5, 5, 0)")},
		{"balances_are_not_overdrawn", check, replace(goodBalance, "5, 5, 1)", "5, 6, 1)")},
		{"balances.account, balances.asset", unique, replace(goodBalance, "'a'", "'kept'")},
		{"balances.posted", typed, replace(goodBalance, "5, 5, 1)", "'lots', 0, 1)")},
		{"balances.posted", typed, replace(goodBalance, "5, 5, 1)", "1.5, 0, 1)")},
		{"balances.posted", typed, replace(goodBalance, "5, 5, 1)", "9.3e18, 0, 1)")},
		{"balances.posted", null, replace(goodBalance, "5, 5, 1)", "NULL, 0, 1)")},

		{"holds_have_an_id", check, replace(goodHold, "'h'", "''")},
		{"holds_amount_in_range", check, replace(goodHold, "5, 1, 1, 'held'", "0, 0, 0, 'voided'")},
		{"holds_amount_in_range", check, replace(goodHold, "5, 1, 1,", "9007199254740992, 1, 1,")},
		{"holds_committed_is_not_negative", check, replace(goodHold, "5, 1, 1,", "5, -1, 1,")},
		{"holds_released_is_not_negative", check, replace(goodHold, "5, 1, 1,", "5, 1, -1,")},
		{"holds_state_is_known", check, replace(goodHold, "1, 1, 'held'", "4, 1, 'lost'")},
		{"holds_until_is_positive", check, replace(goodHold, "'held', 0,", "'held', -1,")},
		{"holds_cap_is_positive", check, replace(goodHold, "'held', 0, 0)", "'held', 0, -1)")},
		{"holds_move", check, replace(goodHold, "'b'", "'a'")},
		{"holds_give_no_more_than_they_have", check, replace(goodHold, "1, 1, 'held'", "5, 1, 'committed'")},
		{"holds_are_held_while_something_is_left", check, replace(goodHold, "'held'", "'voided'")},
		{"holds_are_held_while_something_is_left", check, replace(goodHold, "1, 1, 'held'", "4, 1, 'held'")},
		{"holds.id", unique, replace(goodHold, "'h'", "'kept'")},

		{"records_have_a_kind", check, replace(goodRecord, "'order'", "''")},
		{"records_have_an_id", check, replace(goodRecord, "'o', 1", "'', 1")},
		{"records_version_counts", check, replace(goodRecord, "'o', 1", "'o', 0")},
		{"records_due_is_positive", check, replace(goodRecord, "'', 0, '{}'", "'', -1, '{}'")},
		{"records.kind, records.id", unique, replace(goodRecord, "'o', 1", "'kept', 1")},
	}
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		tested := map[string]bool{}
		for _, c := range cases {
			tested[c.rule] = true
			if c.breach == typed && s.Kind() != "sqlite" {
				continue // the columns of the others have types, which round
			}
			t.Run(c.rule, func(t *testing.T) {
				_, err := goodRows(t, s).Exec(inSQL(s, c.statement))
				if got := breachOf(err); got != c.breach {
					t.Errorf("%s\ngot %v: %v, want %v", c.statement, got, err, c.breach)
				}
				if byName := c.breach == check || c.breach == trigger; byName && !strings.Contains(err.Error(), c.rule) {
					t.Errorf("%s\ngot %v, want it by %s", c.statement, err, c.rule)
				}
			})
		}
		var schema []byte
		files, err := fs.Glob(migrations, "migrations/"+s.Kind()+"/*.sql")
		for _, name := range files {
			text, err := migrations.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			schema = append(schema, text...)
		}
		if err != nil || len(files) < 2 {
			t.Fatalf("got %q, %v, want all migrations", files, err)
		}
		rules := regexp.MustCompile(`CONSTRAINT (\w+)|(?:RAISE\(ABORT, |MESSAGE_TEXT = |holdfast_refuse\()'([^']+)'`)
		for _, m := range rules.FindAllSubmatch(schema, -1) {
			if rule := string(m[1]) + string(m[2]); !tested[rule] {
				t.Errorf("no case breaks %q", rule)
			}
		}
		if got := len(rules.FindAll(schema, -1)); got < 30 {
			t.Errorf("got %d rules in the schema, want more than that", got)
		}
	})
}

// breach is how a row is wrong.
type breach string

const (
	check   breach = "check"
	trigger breach = "trigger"
	unique  breach = "unique"
	typed   breach = "type"
	null    breach = "null"
)

func breachOf(err error) breach {
	switch {
	case errors.Is(err, sqlite3.CONSTRAINT_UNIQUE), errors.Is(err, sqlite3.CONSTRAINT_PRIMARYKEY):
		return unique
	case errors.Is(err, sqlite3.CONSTRAINT_CHECK):
		return check
	case errors.Is(err, sqlite3.CONSTRAINT_TRIGGER):
		return trigger
	case errors.Is(err, sqlite3.CONSTRAINT_DATATYPE):
		return typed
	case errors.Is(err, sqlite3.CONSTRAINT_NOTNULL):
		return null
	}
	return map[string]breach{"1062": unique, "3819": check, "4025": check, "1644": trigger, "1048": null,
		"23505": unique, "23514": check, "45000": trigger, "23502": null}[code(err)]
}

// inSQL writes a statement for the database of s: they differ in how bytes are
// written.
func inSQL(s *Store, statement string) string {
	bytes := map[string][2]string{
		"sqlite":   {"zeroblob($1)", "x'00'"},
		"mysql":    {"REPEAT(CHAR(0), $1)", "x'00'"},
		"postgres": {"decode(repeat('00', $1), 'hex')", "decode('00', 'hex')"},
	}[s.Kind()]
	statement = regexp.MustCompile(`zeroblob\((\d+)\)`).ReplaceAllString(statement, bytes[0])
	return strings.ReplaceAll(statement, "x'00'", bytes[1])
}

func TestTheSchemaTakesRightRows(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		tx := goodRows(t, s)
		for _, statement := range []string{goodLine, goodPosting, goodEvent, goodBalance, goodHold, goodRecord,
			`INSERT INTO balances (account, asset, posted, held, version) VALUES ('@bank', 'CNY', -5, 5, 1)`,
			`INSERT INTO balances (account, asset, posted, held, version) VALUES ('A', 'CNY', 0, 0, 1)`, // not 'a'
			`UPDATE holds SET committed = 4, state = 'committed' WHERE id = 'h'`,
		} {
			if _, err := tx.Exec(inSQL(s, statement)); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
}

func TestTheRecordsAreSeenAsTables(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		tx := goodRows(t, s)
		for _, statement := range []string{
			`INSERT INTO records VALUES ('order', 'o1', 3, 'paid', 'c1', '', 0, '{"id":"o1","customer":"c1","state":"paid","currency":"CNY","total":5,"paid":5,"refunded":0,"created_at":"2027-01-15T08:00:00Z","expires_at":"2027-01-15T08:15:00Z"}')`,
			`INSERT INTO records VALUES ('payment', 'p1', 1, 'succeeded', '', 'pi_1', 0, '{"id":"p1","order":"o1","gateway":"stripe","method":"card","amount":5,"currency":"CNY","ref":"pi_1"}')`,
			`INSERT INTO records VALUES ('refund', 'r1', 1, 'pending', '', '', 0, '{"id":"r1","order":"o1","payment":"p1","amount":2}')`,
			`INSERT INTO records VALUES ('payout', 'q1', 1, 'paid', 'payouts/ann', '', 0, '{"id":"q1","account":"ann","gateway":"stripe","destination":"acct_1","amount":7,"currency":"CNY","ref":"po_1","created_at":"2027-01-15T08:00:00Z","paid_at":"2027-01-15T09:00:00Z"}')`,
			`INSERT INTO records VALUES ('item', 'tee', 1, '', '', '', 0, '{"sku":"tee","name":"T-shirt","price":5,"currency":"CNY"}')`,
		} {
			if _, err := tx.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		for query, want := range map[string]string{
			`id, state, customer, currency, total + paid + refunded, created_at, expires_at FROM orders WHERE id = 'o1'`: "o1 paid c1 CNY 10 2027-01-15T08:00:00Z 2027-01-15T08:15:00Z",
			`id, order_id, gateway, method, state, amount, currency, ref FROM payments`:                                  "p1 o1 stripe card succeeded 5 CNY pi_1",
			`id, order_id, payment, state, amount FROM refunds`:                                                          "r1 o1 p1 pending 2",
			`id, account, gateway, destination, state, amount + fee, currency, ref, created_at, paid_at FROM payouts`:    "q1 ann stripe acct_1 paid 7 CNY po_1 2027-01-15T08:00:00Z 2027-01-15T09:00:00Z",
			`sku, name, price, currency FROM items`:                                                                      "tee T-shirt 5 CNY",
		} {
			columns, from, _ := strings.Cut(query, " FROM ")
			var got string
			if err := tx.QueryRow("SELECT CONCAT_WS(' ', " + columns + ") FROM " + from).Scan(&got); err != nil || got != want {
				t.Errorf("%s\ngot %q, %v, want %q", query, got, err, want)
			}
		}
	})
}

// goodRows is a transaction on s that keeps a row of each table; it is
// rolled back.
func goodRows(t *testing.T, s *Store) *sql.Tx {
	t.Helper()
	tx, err := s.conns.write.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	for _, statement := range []string{
		`INSERT INTO journal VALUES (7, 0, 'kept', zeroblob(32), '', '{}', zeroblob(32))`,
		`INSERT INTO postings VALUES (7, 0, 'a', 'b', 'CNY', 1, '')`,
		`INSERT INTO events VALUES (7, 7, 0, 'made', 'x', '')`,
		`INSERT INTO balances (account, asset, posted, held, version) VALUES ('kept', 'CNY', 5, 5, 1)`,
		`INSERT INTO holds VALUES ('kept', 'a', 'b', 'CNY', 5, 1, 1, 'held', 0, 0)`,
		`INSERT INTO records VALUES ('order', 'kept', 1, '', '', '', 0, '{}')`,
	} {
		if _, err := tx.Exec(inSQL(s, statement)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return tx
}
