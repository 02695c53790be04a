// Package payoutfile reads the CSV files that ask for payouts, and writes the
// reports of what became of them.
package payoutfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/stockfile"
)

// MaxBytes is how long a file may be.
const MaxBytes = 64 << 20

// CodeBad is the code of a row that can't be read.
const CodeBad = "bad_row"

// The columns that must be there, and those that may.
var (
	needed   = []string{"id", "account", "amount", "currency", "destination"}
	optional = []string{"fee", "gateway", "description"}
)

// Read reads a whole file. by is who asks for its payouts. bad are the rows that
// can't be read; an error means that the file can't be read as a whole.
func Read(r io.Reader, by string) (rows []holdfast.PayoutRow, bad []holdfast.PayoutResult, err error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read payouts: %w", err)
	}
	if len(b) > MaxBytes {
		return nil, nil, fmt.Errorf("read payouts: more than %d bytes", MaxBytes)
	}
	if b = bytes.TrimPrefix(b, []byte("\ufeff")); !utf8.Valid(b) {
		return nil, nil, errors.New("read payouts: it is not UTF-8")
	}
	lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("read payouts: %w", err)
	}
	if len(lines) < 2 || len(lines) > holdfast.MaxImport+1 {
		return nil, nil, fmt.Errorf("read payouts: a header and 1 to %d rows", holdfast.MaxImport)
	}
	at, err := columns(lines[0])
	if err != nil {
		return nil, nil, err
	}
	for n, line := range lines[1:] {
		row, err := readRow(func(name string) string {
			if i, ok := at[name]; ok {
				return line[i]
			}
			return ""
		})
		if err != nil {
			bad = append(bad, holdfast.PayoutResult{Row: row.ID, Code: CodeBad, Detail: fmt.Sprintf("row %d: %v", n+1, err)})
			continue
		}
		row.By = by
		rows = append(rows, row)
	}
	return rows, bad, nil
}

func columns(head []string) (map[string]int, error) {
	at := map[string]int{}
	for i, name := range head {
		if _, twice := at[name]; twice || (!slices.Contains(needed, name) && !slices.Contains(optional, name)) {
			return nil, fmt.Errorf("read payouts: column %q is unknown or there twice", name)
		}
		at[name] = i
	}
	for _, name := range needed {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("read payouts: there is no column %s", name)
		}
	}
	return at, nil
}

func readRow(of func(string) string) (row holdfast.PayoutRow, err error) {
	row.ID = of("id")
	row.PayoutInput = holdfast.PayoutInput{Account: of("account"), Currency: of("currency"), Gateway: of("gateway"),
		Destination: of("destination"), Description: of("description")}
	if row.Amount, err = stockfile.ParsePrice(of("amount"), row.Currency); err != nil {
		return row, fmt.Errorf("amount %w", err)
	}
	if fee := of("fee"); fee != "" {
		if row.Fee, err = stockfile.ParsePrice(fee, row.Currency); err != nil {
			return row, fmt.Errorf("fee %w", err)
		}
	}
	return row, nil
}

// Write writes a report. No cell of it is a formula in a spreadsheet.
func Write(w io.Writer, results []holdfast.PayoutResult) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"row", "payout", "state", "again", "code", "detail"}}
	for _, r := range results {
		line := []string{r.Row, "", "", "", r.Code, r.Detail}
		if r.Payout != nil {
			line[1], line[2] = r.Payout.ID, string(r.Payout.State)
		}
		if r.Again {
			line[3] = "yes"
		}
		for i := range line {
			line[i] = plain(line[i])
		}
		lines = append(lines, line)
	}
	return out.WriteAll(lines)
}

// plain keeps a spreadsheet from taking a cell for a formula.
func plain(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
