package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/payoutfile"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func (h *host) payoutCommand() *cobra.Command {
	return group("payout", "Pay money out of accounts", h.payoutImport())
}

// payoutsAsked is the answer of an import of payouts.
type payoutsAsked struct {
	Batch    string `json:"batch"`
	Rows     int    `json:"rows"`
	Held     int    `json:"held"`     // money is held, or on its way
	Approval int    `json:"approval"` // wait for a second person
	Again    int    `json:"again"`    // of both: an earlier import had asked for them
	Refused  int    `json:"refused"`
	Bad      int    `json:"bad"` // then nothing was asked for
	Report   string `json:"report"`
}

// payoutAsk is how payout import was asked to run.
type payoutAsk struct {
	file, batch, by, report string
}

func (h *host) payoutImport() *cobra.Command {
	var ask payoutAsk
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Ask for many payouts from a CSV file",
		Long: `Ask for the payouts of a CSV file in UTF-8, with a header:

  id,account,amount,currency,destination[,fee][,gateway][,description]

amount and fee are in major units, as 12.50. Every row is checked first, and
nothing is asked for if one is bad, or if an account has less than its rows take
together. Then each payout is held on its own; holdfast serve sends them.

A row of a batch is asked for once: importing again under the same --batch goes
on where it broke off. What became of each row is in the report file.`,
		Args: cobra.ExactArgs(1),
	}
	db := h.storeFlag(c)
	f := c.Flags()
	f.StringVar(&ask.batch, "batch", "", "the `name` of the batch: letters, digits, - and _")
	f.StringVar(&ask.by, "by", "import", "who asks: somebody else approves")
	f.StringVar(&ask.report, "report", "", "the report `file`; FILE.report.csv")
	gateways := h.gatewayFlags(f)
	c.RunE = func(c *cobra.Command, args []string) error {
		if ask.batch == "" {
			return usagef("give the batch a name: --batch")
		}
		if ask.file = args[0]; ask.report == "" {
			ask.report = ask.file + ".report.csv"
		}
		list, err := h.gateways(gateways)
		if err != nil {
			return err
		}
		if err := present(*db); err != nil {
			return err
		}
		core, err := holdfast.Open(c.Context(), *db, holdfast.Options{Passive: true, Gateways: list})
		if err != nil {
			return err
		}
		return errors.Join(h.importPayouts(c.Context(), core, ask), closeStore(c.Context(), core))
	}
	return c
}

func (h *host) importPayouts(ctx context.Context, core *holdfast.Holdfast, ask payoutAsk) error {
	in, err := os.Open(ask.file)
	if err != nil {
		return err
	}
	defer in.Close()
	rows, bad, err := payoutfile.Read(in, ask.by)
	if err != nil {
		return fmt.Errorf("import %s: %w", ask.file, err)
	}
	answer := payoutsAsked{Batch: ask.batch, Rows: len(rows) + len(bad), Report: ask.report}
	results := bad
	if len(rows) > 0 {
		found, err := core.CheckPayouts(ctx, ask.batch, rows)
		if err != nil {
			return fmt.Errorf("import %s: %w", ask.file, err)
		}
		results = append(results, found...)
	}
	if answer.Bad = len(results); answer.Bad == 0 {
		if results, err = h.askForPayouts(ctx, core, ask.batch, rows); err != nil {
			return fmt.Errorf("import %s: %w; import again under the same --batch", ask.file, err)
		}
		answer.count(results)
	}
	if err := writeReport(ask.report, results); err != nil {
		return err
	}
	if err := h.show(answer, func(w io.Writer) { showPayouts(w, answer, results) }); err != nil {
		return err
	}
	switch {
	case answer.Bad > 0:
		return fmt.Errorf("import %s: %d bad rows; nothing was asked for; see %s", ask.file, answer.Bad, ask.report)
	case answer.Refused > 0:
		return fmt.Errorf("import %s: %d rows were refused; see %s", ask.file, answer.Refused, ask.report)
	}
	return nil
}

func (h *host) askForPayouts(ctx context.Context, core *holdfast.Holdfast, batch string, rows []holdfast.PayoutRow) ([]holdfast.PayoutResult, error) {
	total := int64(len(rows))
	b := h.progress("payouts", total)
	defer b.end()
	var done atomic.Int64
	return core.RequestPayouts(ctx, batch, rows, func() { b.set(done.Add(1), total) })
}

func (a *payoutsAsked) count(results []holdfast.PayoutResult) {
	for _, r := range results {
		switch {
		case r.Payout == nil:
			a.Refused++
			continue
		case r.Payout.State == "pending_approval":
			a.Approval++
		default:
			a.Held++
		}
		if r.Again {
			a.Again++
		}
	}
}

// writeReport writes the report in one piece: the old one stays until the new is
// whole.
func writeReport(name string, results []holdfast.PayoutResult) error {
	whole := name + ".part"
	out, err := os.Create(whole)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	err = errors.Join(payoutfile.Write(out, results), out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(whole, name)
	}
	if err != nil {
		return fmt.Errorf("write report %s: %w", name, err)
	}
	return nil
}

// showRefused is how many refused rows are shown; all are in the report.
const showRefused = 20

func showPayouts(w io.Writer, a payoutsAsked, results []holdfast.PayoutResult) {
	fmt.Fprintf(w, "%s: %d rows, %d held, %d wait for approval, %d of them asked for before, %d refused, %d bad\n",
		a.Batch, a.Rows, a.Held, a.Approval, a.Again, a.Refused, a.Bad)
	var list []table.Row
	for _, r := range results {
		if r.Payout == nil && len(list) < showRefused {
			list = append(list, table.Row{r.Row, r.Code, r.Detail})
		}
	}
	if len(list) > 0 {
		rows(w, table.Row{"row", "code", "why"}, list...)
	}
	fmt.Fprintf(w, "report    %s\n", a.Report)
}
