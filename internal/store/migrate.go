package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corral-pilot/corral"
)

// Migrations are numbered from 0001 without a gap and never edited once released: the fixtures in
// testdata hold what each version left behind.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// newest is what all migrations make of an empty database, in the order of its names; a test holds it against them. A
// new database gets it at once: to migrate it took most of the time in which a corrald started for the first time.
//
//go:embed schema.sql
var newest string

// migrations returns the statements of every migration, oldest first.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err // unreachable: the pattern is well-formed
	}
	scripts := make([]string, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("migrations/%04d_", i+1); !strings.HasPrefix(name, want) {
			return nil, fmt.Errorf("migration %s: want a name that begins with %s", name, want)
		}
		b, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			return nil, err
		}
		scripts[i] = string(b)
	}
	return scripts, nil
}

// migrate brings the database up to the newest version, each step in a transaction of its own that also counts the
// version up: a process that dies in between leaves a whole older version, or an empty database.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	scripts, err := migrations()
	if err != nil {
		return err
	}
	version, err := schemaVersion(ctx, db, path)
	if err != nil {
		return err
	}
	if version > len(scripts) {
		return corral.Errorf(corral.Conflict,
			"database %s has schema version %d, this program knows none above %d: use the newer corrald that wrote it",
			path, version, len(scripts))
	}
	if version == 0 {
		if err := step(ctx, db, newest, len(scripts)); err != nil {
			return fmt.Errorf("making database %s: %w", path, err)
		}
		return nil
	}
	for ; version < len(scripts); version++ {
		if err := step(ctx, db, scripts[version], version+1); err != nil {
			return fmt.Errorf("migrating database %s to version %d: %w", path, version+1, err)
		}
	}
	return nil
}

// schemaVersion returns how many migrations the database has seen. One that has seen none must be
// empty: else it belongs to another program.
func schemaVersion(ctx context.Context, db *sql.DB, path string) (int, error) {
	var version, tables int
	err := db.QueryRowContext(ctx, `
		select
			(select user_version from pragma_user_version),
			(select count(*) from sqlite_schema)`).Scan(&version, &tables)
	if err != nil {
		return 0, fmt.Errorf("opening database %s: %w", path, err)
	}
	if version <= 0 && tables > 0 {
		return 0, corral.Errorf(corral.Conflict, "%s is a database of another program", path)
	}
	return version, nil
}

// step runs one migration and counts the version up, both or neither.
func step(ctx context.Context, db *sql.DB, script string, version int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("pragma user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}
