package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func (h *host) keysCommand() *cobra.Command {
	return group("keys", "Make, list and revoke API keys", h.keysCreate(), h.keysList(), h.keysRevoke())
}

func (h *host) keysCreate() *cobra.Command {
	c := &cobra.Command{
		Use:   "create",
		Short: "Make an API key and show it, once",
		Args:  cobra.NoArgs,
	}
	db := h.storeFlag(c)
	name := c.Flags().String("name", "", "what the key is for")
	scopes := c.Flags().StringSlice("scope", []string{holdfast.ScopeWrite}, "read, write or admin; may be repeated")
	ttl := c.Flags().Duration("ttl", 0, "how long it is good for; 0 = until it is revoked")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *name == "" {
			return usagef("--name is missing")
		}
		known := []string{holdfast.ScopeRead, holdfast.ScopeWrite, holdfast.ScopeAdmin}
		for _, s := range *scopes {
			if !slices.Contains(known, s) {
				return usagef("scope %q is not one of %s", s, strings.Join(known, ", "))
			}
		}
		if *ttl < 0 {
			return usagef("--ttl is negative")
		}
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			plain, k, err := core.CreateKey(c.Context(), holdfast.Key{}, *name, *scopes, *ttl)
			if err != nil {
				return err
			}
			answer := struct {
				Key string `json:"key"`
				holdfast.APIKey
			}{plain, k}
			return h.show(answer, func(w io.Writer) {
				fmt.Fprintln(w, plain)
				fmt.Fprintf(h.err, "key %s, scopes %s; it is shown only now\n", k.ID, strings.Join(k.Scopes, ", "))
			})
		})
	}
	return c
}

func (h *host) keysList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the API keys", Args: cobra.NoArgs}
	db := h.storeFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			keys, err := core.Keys(c.Context())
			if err != nil {
				return err
			}
			if keys == nil {
				keys = []holdfast.APIKey{}
			}
			return h.show(keys, func(w io.Writer) {
				var list []table.Row
				for _, k := range keys {
					list = append(list, table.Row{k.ID, k.Name, k.Prefix, strings.Join(k.Scopes, " "), day(k.CreatedAt), day(k.ExpiresAt), day(k.RevokedAt)})
				}
				rows(w, table.Row{"id", "name", "begins", "scopes", "created", "expires", "revoked"}, list...)
			})
		})
	}
	return c
}

func day(t holdfast.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(time.DateTime)
}

func (h *host) keysRevoke() *cobra.Command {
	c := &cobra.Command{Use: "revoke ID", Short: "End an API key", Args: cobra.ExactArgs(1)}
	db := h.storeFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			if err := core.RevokeKey(c.Context(), args[0]); err != nil {
				return err
			}
			answer := struct {
				Revoked string `json:"revoked"`
			}{args[0]}
			return h.show(answer, func(w io.Writer) { fmt.Fprintf(w, "key %s is revoked\n", args[0]) })
		})
	}
	return c
}
