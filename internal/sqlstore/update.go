package sqlstore

import (
	"fmt"
	"regexp"
	"strings"
)

// Each update names the row as it was read: that no row is changed means that
// somebody else was there. An argument is written as {name type}; each occurs
// once, in the order in which it is given, and no table has a column of that name.
const (
	updateHead = `UPDATE head SET seq = {new_seq bigint}, events = {new_events bigint}, at = {new_at bigint}, hash = {new_hash bytea}
		WHERE one = 1 AND seq = {old_seq bigint} AND hash = {old_hash bytea}`
	updateHold = `UPDATE holds SET committed = {new_committed bigint}, released = {new_released bigint},
		state = {new_state text}, until_at = {new_until bigint}
		WHERE id = {this_id text} AND state = 'held' AND committed = {old_committed bigint}
		AND released = {old_released bigint} AND until_at = {old_until bigint}`
	updateRecord = `UPDATE records SET version = {new_version bigint}, state = {new_state text}, owner = {new_owner text},
		ref = {new_ref text}, due = {new_due bigint}, body = {new_body text}
		WHERE kind = {this_kind text} AND id = {this_id text} AND version = {old_version bigint}`
)

var updateArgument = regexp.MustCompile(`\{(\w+) (\w+)\}`)

// updateOne is an update of one row.
func updateOne(update string) string { return updateArgument.ReplaceAllString(update, "?") }

// update is an update of many rows in one statement: it is joined to a table
// of the arguments. A server is spared a round trip for each row; SQLite has none.
func (d *dialect) update(update string, rows int) string {
	if rows == 1 {
		return updateOne(update)
	}
	var names, places []string
	for _, m := range updateArgument.FindAllStringSubmatch(update, -1) {
		place := "?"
		if d.numbered {
			place = "?::" + m[2]
		} else if m[2] == "bigint" {
			place = "CAST(? AS SIGNED)"
		}
		names = append(names, m[1])
		places = append(places, place)
	}
	set, where, _ := strings.Cut(updateArgument.ReplaceAllString(update, "$1"), "WHERE ")
	row := strings.Join(places, ", ")
	if d.numbered {
		return fmt.Sprintf("%s FROM (VALUES (%s)%s) AS arguments (%s) WHERE %s", set,
			row, strings.Repeat(", ("+row+")", rows-1), strings.Join(names, ", "), where)
	}
	first := make([]string, len(names))
	for i := range names {
		first[i] = places[i] + " AS " + names[i]
	}
	target, set, _ := strings.Cut(set, " SET ")
	return fmt.Sprintf("%s JOIN (SELECT %s%s) AS arguments SET %s WHERE %s", target,
		strings.Join(first, ", "), strings.Repeat(" UNION ALL SELECT "+row, rows-1), set, where)
}
