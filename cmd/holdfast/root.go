package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usage is an error of whoever wrote the command line.
type usage struct{ error }

func usagef(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

// run runs one command line and returns the exit status.
func run(ctx context.Context, args []string, h *host) int {
	root := h.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var wrong usage
	switch {
	case err == nil:
		return exitOK
	case !h.started || errors.As(err, &wrong):
		fmt.Fprintf(h.err, "holdfast: %v\nsee '%s --help'\n", err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(h.err, "holdfast: %v\n", err)
	return exitFailed
}

func (h *host) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "A self-hosted checkout core: no oversell, no double charge, nothing lost",
		Long: "Holdfast holds stock while a buyer pays and books goods and money together.\n" +
			"Begin with 'holdfast demo', which needs nothing else.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			h.started = true
		},
	}
	root.SetIn(h.in)
	root.SetOut(h.out)
	root.SetErr(h.err)
	root.PersistentFlags().BoolVar(&h.json, "json", false, "answer in JSON")
	root.AddCommand(
		h.serveCommand(), h.demoCommand(), h.sandboxCommand(), h.benchCommand(),
		h.stockCommand(), h.payoutCommand(), h.keysCommand(), h.staffCommand(), h.secretCommand(), h.reconcileCommand(), h.verifyCommand(), h.doctorCommand(), h.migrateCommand(), h.versionCommand(),
	)
	return root
}

// group is a command that only has others below it. Without one it fails,
// rather than to look as if something had been done.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return usagef("%s needs a command", c.CommandPath())
	}}
	c.AddCommand(below...)
	return c
}

// show prints an answer: v as one line of JSON, or what human writes.
func (h *host) show(v any, human func(w io.Writer)) error {
	if !h.json {
		human(h.out)
		return nil
	}
	if err := json.NewEncoder(h.out).Encode(v); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// rows prints a table.
func rows(w io.Writer, head table.Row, body ...table.Row) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(head)
	t.AppendRows(body)
	fmt.Fprintln(w, t.Render())
}

// or is the environment's value, or another when that is empty.
func (h *host) or(name, other string) string {
	if v := strings.TrimSpace(h.env(name)); v != "" {
		return v
	}
	return other
}
