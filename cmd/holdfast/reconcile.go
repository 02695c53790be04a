package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/holdfast-pay/holdfast"
)

func (h *host) reconcileCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "Hold a gateway's statement of a day against the books",
		Long: "Reads a day's statement of a gateway, from the gateway itself or from a file, and matches every\n" +
			"line with the clearing account. Fees and settlements of lines that agree are booked, once: to\n" +
			"reconcile a day again changes nothing. Every difference is listed, with what to do. The exit\n" +
			"status is 1 when there are differences.",
		Args: cobra.NoArgs,
	}
	db := h.storeFlag(c)
	gateways := h.gatewayFlags(c.Flags())
	var in holdfast.ReconcileInput
	c.Flags().StringVar(&in.Gateway, "gateway", "", "whose statement; may be left out when there is one gateway")
	c.Flags().StringVar(&in.Day, "date", "", "the day, YYYY-MM-DD, in the gateway's own zone")
	file := c.Flags().String("file", "", "the statement as a `file`: Alipay's or WeChat Pay's bill, or Stripe's balance transactions as JSON with their sources expanded; none = ask the gateway")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if in.Day == "" {
			return usagef("--date is missing")
		}
		if *file != "" {
			var err error
			if in.File, err = readStatement(*file); err != nil {
				return fmt.Errorf("read the statement: %w", err)
			}
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
		return errors.Join(h.reconcile(c, core, in), closeStore(c.Context(), core))
	}
	return c
}

func (h *host) reconcile(c *cobra.Command, core *holdfast.Holdfast, in holdfast.ReconcileInput) error {
	b := h.progress("reconcile", 0)
	r, err := core.Reconcile(c.Context(), in, b.set)
	b.end()
	if err != nil {
		return err
	}
	if err := h.show(r, func(w io.Writer) { showReconciliation(w, r) }); err != nil {
		return err
	}
	if n := len(r.Differences); n > 0 {
		return fmt.Errorf("reconcile %s %s: %d differences", r.Gateway, r.Day, n)
	}
	return nil
}

func readStatement(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, holdfast.MaxStatement+1)) // Reconcile refuses one byte more
	if err == nil && len(b) == 0 {
		err = errors.New("it is empty")
	}
	return b, err
}

func showReconciliation(w io.Writer, r holdfast.Reconciliation) {
	var sums []table.Row
	for _, s := range r.Sums {
		sums = append(sums, table.Row{s.Currency, s.There, s.Here})
	}
	rows(w, table.Row{"currency", "on the statement", "in the books"}, sums...)
	fmt.Fprintf(w, "%d lines, %d agree, %d of them booked now. Amounts are minor units.\n", r.Lines, r.Matched, r.Booked)
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "The books agree with the statement.")
		return
	}
	var list []table.Row
	for _, d := range r.Differences {
		list = append(list, table.Row{d.Kind, d.About, d.Number, d.Ref, d.There, d.Here, d.Currency, d.Detail, d.Todo})
	}
	rows(w, table.Row{"difference", "about", "number", "reference", "there", "here", "", "why", "what to do"}, list...)
}
