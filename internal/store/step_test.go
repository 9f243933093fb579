package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// A made-up migration after the newest one: a table, a column, and a changed check, which requires recreating the
// table.
const nextMigration = `
	create table shelves (site_id integer primary key references sites (id), width integer not null) strict;
	insert into shelves (site_id, width) select id, length(name) from sites;
	alter table runs add column shelf_id integer references shelves (site_id);
	create table history_2 (
		id integer primary key autoincrement, at_ms integer not null, actor text not null, object text not null,
		object_id integer not null, event text not null, from_state text not null, to_state text not null,
		reason text not null) strict;
	insert into history_2 (id, at_ms, actor, object, object_id, event, from_state, to_state, reason)
	select id, at_ms, actor, object, object_id, event, from_state, to_state, reason from history;
	drop table history;
	alter table history_2 rename to history;
	create index history_object on history (object, object_id);`

// stepping opens the newest fixture's database, or an empty one without a fixture, like Open.
func stepping(t *testing.T, fixture bool) (db *sql.DB, scripts []string) {
	t.Helper()
	scripts, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	db = pool(filepath.Join(t.TempDir(), "corral.db"), 1, "_txlock=immediate")
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if !fixture {
		return db, scripts
	}
	names, err := filepath.Glob("testdata/v*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	dump, err := os.ReadFile(names[len(names)-1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("pragma foreign_keys = off; begin; " + string(dump) + " commit; pragma foreign_keys = on"); err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), db, "fixture", scripts); err != nil { // does nothing, except for a version without a fixture
		t.Fatal(err)
	}
	return db, scripts
}

// read returns the single column of a query's result as text.
func read(t *testing.T, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

// The next migration keeps all rows, is applied once, and makes an old database equal to a new one. A program without
// it refuses the result.
func TestMigrateToTheNextVersion(t *testing.T) {
	t.Parallel()
	old, scripts := stepping(t, true)
	next := append(slices.Clone(scripts), nextMigration)
	const kept = "select id || at_ms || actor || object || object_id || event || from_state || to_state || reason from history"
	before := read(t, old, kept)
	for range 2 {
		if err := migrate(t.Context(), old, "old", next); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, read(t, old, kept)); diff != "" || len(before) == 0 {
		t.Errorf("%d entries of history (-before +after):\n%s", len(before), diff)
	}
	if diff := cmp.Diff([]string{"1 5", "2 5"}, read(t, old, "select site_id || ' ' || width from shelves")); diff != "" {
		t.Error(diff)
	}
	if broken := read(t, old, `select "table" from pragma_foreign_key_check`); len(broken) > 0 {
		t.Errorf("rows of %q refer to rows that are missing", broken)
	}

	made, _ := stepping(t, false)
	if err := migrate(t.Context(), made, "made", next); err != nil {
		t.Fatal(err)
	}
	const schema = "select sql from sqlite_schema where sql is not null order by name"
	if diff := cmp.Diff(read(t, made, schema), read(t, old, schema)); diff != "" {
		t.Errorf("schema (-new +migrated):\n%s", diff)
	}
	for name, db := range map[string]*sql.DB{"old": old, "made": made} {
		version, err := schemaVersion(t.Context(), db, name, len(next))
		if err != nil || version != len(next) {
			t.Errorf("%s: version %d, want %d (%v)", name, version, len(next), err)
		}
		err = migrate(t.Context(), db, name, scripts)
		if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "use the newer corrald") {
			t.Errorf("%s, without the migration: %v, want a conflict", name, err)
		}
	}
}

// A failed migration leaves the previous version intact, and it can be migrated later.
func TestMigrationThatFails(t *testing.T) {
	t.Parallel()
	db, scripts := stepping(t, true)
	const all = "select sql from sqlite_schema where sql is not null order by name"
	before := read(t, db, all)
	for name, broken := range map[string]string{
		"at its end":    nextMigration + "insert into missing (id) values (1);",
		"at its commit": nextMigration + "pragma defer_foreign_keys = on; update shelves set site_id = 99 where site_id = 1;",
	} {
		if err := migrate(t.Context(), db, "db", append(slices.Clone(scripts), broken)); err == nil {
			t.Errorf("%s: the migration did not fail", name)
		}
		version, err := schemaVersion(t.Context(), db, "db", len(scripts))
		if err != nil || version != len(scripts) {
			t.Errorf("%s: version %d, want %d (%v)", name, version, len(scripts), err)
		}
		if diff := cmp.Diff(before, read(t, db, all)); diff != "" {
			t.Errorf("%s: schema (-before +after):\n%s", name, diff)
		}
	}
	if err := migrate(t.Context(), db, "db", append(slices.Clone(scripts), nextMigration)); err != nil {
		t.Error(err)
	}
}
