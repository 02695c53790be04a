package main

import (
	"fmt"
	"io"

	"github.com/holdfast-pay/holdfast"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func (h *host) staffCommand() *cobra.Command {
	return group("staff", "Add, change and list the people who may sign in to the console", h.staffPut(), h.staffList())
}

func (h *host) staffPut() *cobra.Command {
	c := &cobra.Command{
		Use:   "put NAME",
		Short: "Add a person, or change one; it ends the person's sessions",
		Args:  cobra.ExactArgs(1),
	}
	db := h.storeFlag(c)
	role := c.Flags().String("role", string(holdfast.RoleViewer), "viewer, operator or admin")
	ask := c.Flags().Bool("password", false, "read another password from the standard input; a new person needs one")
	disabled := c.Flags().Bool("disabled", false, "let the person not sign in any more")
	c.RunE = func(c *cobra.Command, args []string) error {
		in := holdfast.StaffInput{Name: args[0], Role: holdfast.Role(*role), Disabled: *disabled}
		if *ask {
			var err error
			if in.Password, err = readText(h.in); err != nil {
				return fmt.Errorf("the password: %w", err)
			}
		}
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			who, err := core.PutStaff(c.Context(), holdfast.Key{}, in)
			if err != nil {
				return err
			}
			return h.show(who, func(w io.Writer) { fmt.Fprintf(w, "%s is %s\n", who.Name, who.Role) })
		})
	}
	return c
}

func (h *host) staffList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the people who may sign in", Args: cobra.NoArgs}
	db := h.storeFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			all, err := core.StaffMembers(c.Context())
			if err != nil {
				return err
			}
			return h.show(all, func(w io.Writer) {
				var list []table.Row
				for _, s := range all {
					list = append(list, table.Row{s.Name, s.Role, s.Disabled, day(s.CreatedAt)})
				}
				rows(w, table.Row{"name", "role", "disabled", "created"}, list...)
			})
		})
	}
	return c
}
