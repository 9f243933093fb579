package store_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/google/go-cmp/cmp"
)

// With -update, golden files are rewritten, and the newest version gets a fixture if it has none. An existing fixture
// is never changed: it is the database that its version wrote.
var update = flag.Bool("update", false, "rewrite golden files; make the fixture of a new schema version")

// migrationScripts are the files of migrations/, oldest first.
func migrationScripts(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

func fixture(version int) string { return fmt.Sprintf("testdata/v%04d.sql", version) }

// Each version has a fixture, which this program can open and read. Afterwards its schema equals that of a new
// database.
func TestMigrateEveryVersion(t *testing.T) {
	t.Parallel()
	fresh := filepath.Join(t.TempDir(), "new.db")
	open(t, fresh)
	want := schema(t, raw(t, fresh))
	for i := range migrationScripts(t) {
		version := i + 1
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "corral.db")
			restore(t, path, readFixture(t, version))
			db := open(t, path)
			if diff := cmp.Diff(want, schema(t, raw(t, path))); diff != "" {
				t.Error(diff)
			}
			golden(t, fmt.Sprintf("testdata/v%04d.json", version), contents(t, db))
			checkIntegrity(t, raw(t, path))
		})
	}
}

// The newest version's fixture has a row in each table, so that the next migration is tested on all of them.
func TestNewestFixtureFillsEveryTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	restore(t, path, readFixture(t, len(migrationScripts(t))))
	db := raw(t, path)
	for _, table := range column(t, db, "select name from sqlite_schema where type = 'table'") {
		if rows := column(t, db, "select count(*) from "+table); rows[0] == "0" {
			t.Errorf("table %s is empty: add a row in makeFixture", table)
		}
	}
}

// A released migration is never edited: each fixture's schema equals the result of the migrations up to its version.
func TestMigrationsAreNotEdited(t *testing.T) {
	t.Parallel()
	scripts := migrationScripts(t)
	made := raw(t, filepath.Join(t.TempDir(), "made.db"))
	for i, name := range scripts {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := made.Exec("begin; " + string(b) + " commit"); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "fixture.db")
		restore(t, path, readFixture(t, i+1))
		if diff := cmp.Diff(schema(t, raw(t, path)), schema(t, made)); diff != "" {
			t.Errorf("%s is not what it was: %s", name, diff)
		}
	}
}

func readFixture(t *testing.T, version int) string {
	t.Helper()
	b, err := os.ReadFile(fixture(version))
	if errors.Is(err, fs.ErrNotExist) && *update && version == len(migrationScripts(t)) {
		b = []byte(makeFixture(t))
		err = os.WriteFile(fixture(version), b, 0o644)
	}
	if err != nil {
		t.Fatalf("schema version %d has no fixture; go test -update makes one: %v", version, err)
	}
	return string(b)
}

// makeFixture returns a dump of a database with rows of every kind.
func makeFixture(t *testing.T) string {
	db, w := legal(t)
	g := w.newGlidein()
	g.Labels = map[string]string{"team": "seismo"}
	g.NotBefore, g.Follows, g.FollowsAfter = time.Date(2031, 2, 3, 4, 5, 6, 7e6, time.UTC), 1, corral.Seconds(time.Hour)
	g.FollowsWait, g.Speed = corral.Seconds(time.Minute), 0.5
	g = w.createGlidein(g)
	w.write(func(tx *store.Tx) error {
		return store.Done(tx.CreateToken(corral.Token{Name: "laptop", Owner: actor, Role: corral.RoleUser, Scopes: []string{"read"},
			Grants: []corral.Grant{corral.GrantLocal}, Digest: "sha256:" + strings.Repeat("1", 64), ExpiresAt: g.NotBefore}))
	})
	w.write(func(tx *store.Tx) error {
		return store.Done(tx.CreateToken(corral.Token{Name: "child", Owner: actor, Role: corral.RoleUser, Parent: 1,
			Digest: "sha256:" + strings.Repeat("2", 64)}))
	})
	w.write(func(tx *store.Tx) error { return store.Done(tx.MoveOwner("bob", corral.OwnerSuspend, "on leave")) })
	w.write(func(tx *store.Tx) error { return store.Done(tx.CreateEnsemble(w.newEnsemble("night"))) })
	w.write(func(tx *store.Tx) error {
		return errors.Join(
			tx.AddProbe(w.site.ID, "probe-1"),
			tx.AddPoolToken(corral.PoolToken{ID: "worker-1", Cluster: 2, Attempt: 2, EndsAt: g.NotBefore}),
			tx.SetUsage(2, map[store.UsageKey]store.Taken{{Attempt: 1, Hour: 498_000}: {Used: 1000, Lost: 10}}, true))
	})
	w.write(func(tx *store.Tx) error { _, err := tx.AskGlidein(g.ID, corral.AskDrain, "not needed"); return err })
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(w.site.ID, func(s *corral.Site) {
			s.Package, s.PackageDigest = "embedded-1.0", "sha256:00"
			s.SiteTerms = corral.SiteTerms{Price: "0.04USD/cpu-hour", Billing: "1h", Allocation: "50USD"}
			s.Limits = corral.SiteLimits{MaxQueued: 3, MaxRunning: 10}
			s.BatchOptions = corral.BatchOptions{Queue: "long", SiteOptions: []string{"--exclusive"}}
			s.Facts = &corral.SiteFacts{At: s.CreatedAt, Batch: "slurm 22.05.8", Queues: []corral.SiteQueue{{Name: "long", MaxNodes: 4}}}
			s.Trouble = corral.SiteTrouble{LoginNeeded: true, Why: "no key", Since: s.CreatedAt}
		})
		return err
	})
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetRun(2, corral.RunTasks{Total: 3, Done: 2, Failed: 1}, &corral.RunReport{CPUs: 2})
		return err
	})
	return dump(t, db)
}

// restore creates the database that a dump describes.
func restore(t *testing.T, path, dump string) {
	t.Helper()
	db := raw(t, path)
	if _, err := db.Exec("pragma foreign_keys = off; begin; " + dump + " commit"); err != nil { // in one step, which is much faster
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// dump returns statements that recreate the database.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	var version int
	if err := db.QueryRow("pragma user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "pragma foreign_keys = off;\n%s\npragma user_version = %d;\n", schema(t, db), version)
	for _, table := range column(t, db, "select name from sqlite_schema where type = 'table' order by name") {
		quoted := column(t, db, "select group_concat('quote(' || name || ')', ' || '', '' || ') from pragma_table_info('"+table+"')")
		for _, row := range column(t, db, "select "+quoted[0]+" from "+table) {
			fmt.Fprintf(&b, "insert into %s values (%s);\n", table, row)
		}
	}
	return b.String()
}

// schema returns all statements of the schema.
func schema(t *testing.T, db *sql.DB) string {
	t.Helper()
	statements := column(t, db, "select sql from sqlite_schema where sql is not null and name not like 'sqlite_%' order by type desc, name")
	return strings.Join(statements, ";\n\n") + ";\n"
}

// column returns the single column of a query's result.
func column(t *testing.T, db *sql.DB, query string) (values []string) {
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

// contents returns the objects that the store reads from a database, as JSON.
func contents(t *testing.T, db *store.DB) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "\t")
	all := store.Filter{All: true}
	err := storetest.All(db).View(t.Context(), func(tx *store.Tx) error {
		for _, read := range []func() (any, error){
			func() (any, error) { return tx.Sites(all) },
			func() (any, error) { return tx.Clusters(all) },
			func() (any, error) { return tx.Scales() },
			func() (any, error) { return tx.Glideins(store.GlideinFilter{Filter: all}) },
			func() (any, error) { return tx.Jobs(store.JobFilter{}) },
			func() (any, error) { return tx.Packages(all) },
			func() (any, error) { return tx.Mirrors(all) },
			func() (any, error) { return tx.Runs(store.RunFilter{Filter: all}) },
			func() (any, error) { return tx.Profiles(all) },
			func() (any, error) { return tx.Plans(all) },
			func() (any, error) { return tx.Revisions(2, store.Page{}) },
			func() (any, error) { return tx.Ensembles(all) },
			func() (any, error) { return tx.Owner("bob") },
			func() (any, error) { return tx.Tokens(all) },
			func() (any, error) { return tx.History(corral.ObjectGlidein, 1, store.Page{}) },
		} {
			list, err := read()
			if err == nil {
				err = enc.Encode(list)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// checkIntegrity runs SQLite's check of the whole file.
func checkIntegrity(t *testing.T, db *sql.DB) {
	t.Helper()
	if got := column(t, db, "pragma integrity_check"); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("integrity_check: %v", got)
	}
	if got := column(t, db, "select \"table\" || ' ' || rowid from pragma_foreign_key_check"); len(got) > 0 {
		t.Errorf("foreign_key_check: %v", got)
	}
}
