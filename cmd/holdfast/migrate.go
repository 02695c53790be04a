package main

import (
	"fmt"
	"io"

	"github.com/holdfast-pay/holdfast"
	"github.com/spf13/cobra"
)

func (h *host) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Make a store, or bring it to this version's schema",
		Long:  "Make a store, or bring it to this version's schema. serve does so as well.",
		Args:  cobra.NoArgs,
	}
	db := h.storeFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return openStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			health, err := core.Health(c.Context())
			if err != nil {
				return err
			}
			answer := struct {
				Version string `json:"version"`
				holdfast.Health
			}{version().Version, health}
			return h.show(answer, func(w io.Writer) {
				fmt.Fprintf(w, "%s is a %s store at version %s, durability %s, %d entries\n",
					shown(*db), health.Store, answer.Version, health.Durability, health.Entries)
			})
		})
	}
	return c
}
