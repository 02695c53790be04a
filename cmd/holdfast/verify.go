package main

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func (h *host) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Recompute everything from the journal and say what does not agree",
		Args:  cobra.NoArgs,
	}
	db := h.storeFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			rep, err := h.verify(c.Context(), core)
			if err != nil {
				return err
			}
			if err := h.show(rep, func(w io.Writer) { showReport(w, rep) }); err != nil {
				return err
			}
			if !rep.OK() {
				return fmt.Errorf("verify %s: %d problems", shown(*db), rep.Count)
			}
			return nil
		})
	}
	return c
}

func (h *host) verify(ctx context.Context, core *holdfast.Holdfast) (ledger.Report, error) {
	b := h.progress("verify", 0)
	defer b.end()
	return core.Verify(ctx, b.set)
}

func showReport(w io.Writer, rep ledger.Report) {
	rows(w, table.Row{"entries", "events", "postings", "balances", "holds", "records", "problems"},
		table.Row{rep.Entries, rep.Events, rep.Postings, rep.Balances, rep.Holds, rep.Records, rep.Count})
	if rep.OK() {
		fmt.Fprintln(w, "Everything agrees with the journal.")
		return
	}
	var found []table.Row
	for _, p := range rep.Problems {
		found = append(found, table.Row{p.Seq, p.What, p.Detail})
	}
	rows(w, table.Row{"line", "what", "detail"}, found...)
	if more := rep.Count - int64(len(rep.Problems)); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
