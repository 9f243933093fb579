package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral"
)

// Migrations are numbered from 0001 without a gap and never edited once released: the fixtures in testdata hold the
// database that each version left behind.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// unreleased is the highest user_version of databases from before the first release, whose migrations this program does
// not have. The user_version counts on from there, so that such a database is not taken for a later one: it is
// unreleased plus the schema version, which is the number of the last migration.
const unreleased = 22

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

// migrate brings the database up to the version of the last script, each step in a transaction of its own that also
// counts the version up: a process that dies in between leaves a whole older version, or an empty database.
func migrate(ctx context.Context, db *sql.DB, path string, scripts []string) error {
	version, err := schemaVersion(ctx, db, path, len(scripts))
	if err != nil {
		return err
	}
	for ; version < len(scripts); version++ {
		if err := step(ctx, db, scripts[version], version+1); err != nil {
			return fmt.Errorf("migrating database %s to version %d: %w", path, version+1, err)
		}
	}
	return nil
}

// schemaVersion returns the number of the last migration that the database has had, 0 for an empty one. A Conflict
// error if this program, whose last migration is newest, cannot read it: it is another program's, a newer corral's, or
// one from before the first release.
func schemaVersion(ctx context.Context, db *sql.DB, path string, newest int) (int, error) {
	var counted, tables int
	err := db.QueryRowContext(ctx, `
		select
			(select user_version from pragma_user_version),
			(select count(*) from sqlite_schema)`).Scan(&counted, &tables)
	if err != nil {
		return 0, fmt.Errorf("opening database %s: %w", path, err)
	}
	version := counted - unreleased
	switch {
	case counted <= 0 && tables > 0:
		return 0, corral.Errorf(corral.Conflict, "%s is a database of another program", path)
	case counted <= 0:
		return 0, nil
	case version <= 0:
		return 0, corral.Errorf(corral.Conflict, "database %s is from before the first release and cannot be "+
			"migrated: "+
			"use the corrald that wrote it, or remove all of %s* to begin with an empty one", path, filepath.Base(path))
	case version > newest:
		return 0, corral.Errorf(corral.Conflict,
			"database %s has schema version %d, this program knows none above %d: use the newer corrald that wrote it",
			path, version, newest)
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
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("pragma user_version = %d", unreleased+version)); err != nil {
		return err
	}
	return tx.Commit()
}
