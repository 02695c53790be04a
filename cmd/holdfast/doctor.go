package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/doctor"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

// diagnosis is what doctor answers.
type diagnosis struct {
	OK       bool             `json:"ok"` // nothing is wrong; there may be warnings
	Findings []doctor.Finding `json:"findings"`
}

func (h *host) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Prove on your database and Redis what the promises rest on",
		Long: "Prove on your database and Redis what the promises rest on: that rows lock, constraints hold,\n" +
			"commits survive a power cut, clocks agree. It works in a scratch schema that it drops again.\n" +
			"The exit status is 1 when something is wrong.",
		Args: cobra.NoArgs,
	}
	store := c.Flags().String("store", defaultStore, "the `store`: sqlite:PATH, mysql://... or postgres://...; HOLDFAST_DB")
	*store = h.or("HOLDFAST_DB", defaultStore)
	redis := c.Flags().String("redis", "", "a Redis as well, redis://HOST:PORT")
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, err := diagnose(c.Context(), *store, *redis)
		if errors.Is(err, doctor.ErrAddress) {
			return usage{err}
		}
		if err != nil {
			return err
		}
		if err := h.show(d, func(w io.Writer) { showDiagnosis(w, d) }); err != nil {
			return err
		}
		if !d.OK {
			return errors.New("doctor: something is wrong")
		}
		return nil
	}
	return c
}

func diagnose(ctx context.Context, store, redis string) (d diagnosis, err error) {
	if d.Findings, err = doctor.Store(ctx, store); err != nil {
		return d, err
	}
	if redis != "" {
		more, err := doctor.Redis(ctx, redis)
		if err != nil {
			return d, err
		}
		d.Findings = append(d.Findings, more...)
	}
	d.OK = true
	for _, f := range d.Findings {
		d.OK = d.OK && f.Verdict != doctor.Wrong
	}
	return d, nil
}

func showDiagnosis(w io.Writer, d diagnosis) {
	var body []table.Row
	for _, f := range d.Findings {
		body = append(body, table.Row{f.Verdict, f.Server, f.Check, f.Found})
	}
	rows(w, table.Row{"", "server", "check", "found"}, body...)
	for _, f := range d.Findings {
		if f.Advice != "" {
			fmt.Fprintf(w, "%s: %s %s: %s\n", f.Verdict, f.Server, f.Check, f.Advice)
		}
	}
	if d.OK {
		fmt.Fprintln(w, "Nothing is wrong.")
	}
}
