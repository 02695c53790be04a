package sqlstore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlTrip is the most bytes of arguments that go in one text: quoted, they are
// at most twice as long, and have to fit into mysqlPacket.
const mysqlTrip = 1 << 20

// sendMySQL executes steps as texts of many statements: one for those that read
// and one for those that write, in turns, and more where it would get too long.
func sendMySQL(ctx context.Context, t *tx, steps []step) error {
	for len(steps) > 0 {
		n, reads := oneText(steps), steps[0].row != nil
		var err error
		switch {
		case n == 0: // too long for a text; the driver sends it in parts
			n = 1
			err = t.execute(ctx, steps[0])
		case reads:
			err = readMySQL(ctx, t, steps[:n])
		default:
			err = writeMySQL(ctx, t, steps[:n])
		}
		if err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

// oneText is how many of the first steps make one text; 0 = the first is too long.
func oneText(steps []step) int {
	size := 0
	for n, s := range steps {
		for _, a := range s.args {
			size += length(a)
		}
		if size > mysqlTrip || (s.row != nil) != (steps[0].row != nil) {
			return n
		}
	}
	return len(steps)
}

func length(arg any) int {
	switch a := arg.(type) {
	case string:
		return len(a)
	case []byte:
		return len(a)
	}
	return 8
}

func text(steps []step) (query string, args []any) {
	texts := make([]string, len(steps))
	for i, s := range steps {
		texts[i] = s.text
		args = append(args, s.args...)
	}
	return strings.Join(texts, ";\n"), args
}

func readMySQL(ctx context.Context, t *tx, steps []step) error {
	query, args := text(steps)
	rows, err := t.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for i, s := range steps {
		if i > 0 && !rows.NextResultSet() {
			return fmt.Errorf("%d of %d answers came: %w", i, len(steps), rows.Err())
		}
		for rows.Next() {
			if err := s.row(rows); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

func writeMySQL(ctx context.Context, t *tx, steps []step) error {
	query, args := text(steps)
	values := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return err
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return t.conn.Raw(func(conn any) error {
		res, err := conn.(driver.ExecerContext).ExecContext(ctx, query, values)
		if err != nil {
			return err
		}
		wrote := res.(mysql.Result).AllRowsAffected()
		if len(wrote) != len(steps) {
			return fmt.Errorf("%d answers to %d statements", len(wrote), len(steps))
		}
		for i, s := range steps {
			if err := s.wrote(wrote[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
