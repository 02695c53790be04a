package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// maxMigrateTries bounds the tries to bring the tables up to date. Two
// processes that start on an empty database both find no tables; the second
// fails to make them, and finds them when it looks again.
const maxMigrateTries = 3

// migrate brings the tables up to date and returns their version.
func migrate(ctx context.Context, d *dialect, db *sql.DB) (version int64, err error) {
	dir, err := fs.Sub(migrations, "migrations/"+d.name)
	if err != nil {
		return 0, err
	}
	for range maxMigrateTries {
		if version, err = migrateOnce(ctx, d, db, dir); err == nil {
			return version, nil
		}
	}
	return 0, fmt.Errorf("migrate: %w", err)
}

func migrateOnce(ctx context.Context, d *dialect, db *sql.DB, dir fs.FS) (int64, error) {
	p, err := goose.NewProvider(d.goose, db, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, err
	}
	if _, err := p.Up(ctx); err != nil {
		return 0, err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return 0, err
	}
	if current > target {
		return 0, fmt.Errorf("the tables are of version %d, this program knows %d: a newer one made them", current, target)
	}
	return current, nil
}
