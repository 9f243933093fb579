package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

// one opens a database with one connection.
func one(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector{"file:" + filepath.Join(t.TempDir(), "db")})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.ExecContext(t.Context(), "create table numbers (n integer); insert into numbers values (1), (2), (3)"); err != nil {
		t.Fatal(err)
	}
	return db
}

// kept returns the number of statements that the one connection keeps.
func kept(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err == nil {
		err = c.Raw(func(raw any) error { n = len(raw.(*connection).kept); return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// While a statement's rows are being read, the same text can run a second time, independently.
func TestStatementWithinItself(t *testing.T) {
	t.Parallel()
	db := one(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	const query = "select n from numbers where n >= ? order by n"
	sums := map[int]int{}
	for range 2 {
		outer, err := tx.QueryContext(t.Context(), query, 1)
		if err != nil {
			t.Fatal(err)
		}
		for outer.Next() {
			var n int
			if err := outer.Scan(&n); err != nil {
				t.Fatal(err)
			}
			inner, err := tx.QueryContext(t.Context(), query, n)
			if err != nil {
				t.Fatal(err)
			}
			for inner.Next() {
				var m int
				if err := inner.Scan(&m); err != nil {
					t.Fatal(err)
				}
				sums[n] += m
			}
			if err := inner.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := outer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := fmt.Sprint(map[int]int{1: 12, 2: 10, 3: 6}); fmt.Sprint(sums) != want {
		t.Errorf("the sums are %v, want %s", sums, want)
	}
}

// Regardless of the number of texts, the number of statements kept is limited, and each statement works.
func TestStatementsKept(t *testing.T) {
	t.Parallel()
	db := one(t)
	for round := range 2 {
		for i := range 2 * statementsKept {
			var n int
			err := db.QueryRowContext(t.Context(), fmt.Sprintf("select count(*) + %d from numbers", i)).Scan(&n)
			if err != nil || n != i+3 {
				t.Fatalf("round %d: text %d answers %d, %v", round, i, n, err)
			}
		}
	}
	if n := kept(t, db); n != statementsKept {
		t.Errorf("%d are kept, want %d", n, statementsKept)
	}
}

// A statement that was interrupted, or whose table has changed meanwhile, works like a new one.
func TestStatementAfterTrouble(t *testing.T) {
	t.Parallel()
	db := one(t)
	const endless = "with recursive up (n) as (select 1 union all select n + 1 from up where n < ?) select max(n) from up"
	count := func(most int) (n int, err error) {
		err = db.QueryRowContext(t.Context(), endless, most).Scan(&n)
		return n, err
	}
	if n, err := count(10); err != nil || n != 10 {
		t.Fatalf("it counts to %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := db.QueryContext(ctx, "select n from numbers")
	if err != nil || !rows.Next() {
		t.Fatalf("the first row: %v", err)
	}
	cancel()
	for rows.Next() {
	}
	_ = rows.Close()
	if n, err := count(20); err != nil || n != 20 {
		t.Errorf("then it counts to %d, %v", n, err)
	}
	var columns string
	const all = "select group_concat(name) from pragma_table_info('numbers')"
	for _, want := range []string{"n", "n,m"} {
		if err := db.QueryRowContext(t.Context(), all).Scan(&columns); err != nil || columns != want {
			t.Errorf("the columns are %s, %v, want %s", columns, err, want)
		}
		if want == "n" {
			if _, err := db.ExecContext(t.Context(), "alter table numbers add column m integer"); err != nil {
				t.Fatal(err)
			}
		}
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "select n from numbers").Scan(&n); err != nil || n != 1 {
		t.Errorf("what was given up answers %d, %v", n, err)
	}
}
