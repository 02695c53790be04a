package sqlstore

import (
	"errors"
	"fmt"
)

// What to do about errors that every server has.
const (
	hintPassword   = "check the user and the password"
	hintPrivileges = "give the user all privileges on this database"
	hintDatabase   = "make the database first"
)

// advised adds to an error of opening what can be done about it.
func advised(d *dialect, err error) error {
	hint := d.hint(err)
	switch {
	case hint != "":
	case errors.Is(err, errNewer):
		hint = "run that version or a later one"
	case errors.Is(err, errServer):
		hint = "use another server, or change that setting"
	case errors.Is(err, ErrUnsafeDurability):
		hint = "set it so that a commit is on disk before it is answered, or allow unsafe durability"
	case cutOff(err):
		hint = "is the server running, and is this its address?"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}
