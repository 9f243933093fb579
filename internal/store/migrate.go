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

// Migrations are numbered from 0001 without gaps and never edited after a release: the fixtures in testdata hold the
// databases that each version wrote.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// unreleased is the highest user_version of databases that predate the first release, whose migrations this program
// does not contain. Released versions continue the count, so that an old database is not mistaken for a newer one:
// user_version is unreleased plus the schema version, which is the number of the last migration.
const unreleased = 25

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

// migrate brings the database to the version of the last script. Each step is a separate transaction that also
// increments the version: a process that dies in between leaves a complete older version or an empty database.
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

// schemaVersion returns the number of the last migration applied to the database, 0 for an empty one. It returns a
// Conflict error if this program, whose last migration is newest, cannot read the database: it belongs to another
// program, to a newer corrald, or to a version before the first release.
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
			"migrated: use the corrald that wrote it, or remove all of %s* to begin with an empty one",
			path, filepath.Base(path))
	case version > newest:
		return 0, corral.Errorf(corral.Conflict,
			"database %s has schema version %d, this program supports versions up to %d: "+
				"use the newer corrald that wrote it", path, version, newest)
	}
	return version, nil
}

// step runs one migration and increments the version in a single transaction.
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
