package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// errMigrate says that the tables could not be made or changed. Two programs
// that start on an empty database both find no tables; the second fails to
// make them, and finds them when it looks again.
var errMigrate = errors.New("migrate")

// errNewer says that a newer program has changed the tables.
var errNewer = errors.New("made by a newer version")

// migrate brings the tables up to date and returns their version.
func migrate(ctx context.Context, d *dialect, db *sql.DB) (int64, error) {
	dir, err := fs.Sub(migrations, "migrations/"+d.name)
	if err != nil {
		return 0, err
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if d.migrate != nil {
		options = append(options, goose.WithSessionLocker(d.migrate))
	}
	p, err := goose.NewProvider(d.goose, db, dir, options...)
	if err != nil {
		return 0, err
	}
	_, failed := p.Up(ctx)
	current, target, err := p.GetVersions(ctx)
	if err == nil && current > target { // it may also be why Up has failed
		return 0, fmt.Errorf("%w: the tables are of version %d, this program knows %d", errNewer, current, target)
	}
	if err := errors.Join(failed, err); err != nil {
		return 0, fmt.Errorf("%w: %w", errMigrate, err)
	}
	return current, nil
}
