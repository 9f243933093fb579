package store_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// digestOf returns a digest that consists of one digit 64 times.
func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// TestSchedules: a schedule exists as long as a plan with its digest.
func TestSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scheduled := func(digit string) corral.Plan {
		s, err := w.db.NewSchedule(func(to io.Writer) error { _, err := io.WriteString(to, digit); return err })
		if err != nil {
			t.Fatal(err)
		}
		p := w.newPlan()
		p.Digest = digestOf(digit)
		w.write(func(tx *store.Tx) (err error) {
			if p, err = tx.CreatePlan(p); err == nil {
				err = s.Keep(tx, p)
			}
			return err
		})
		return p
	}
	remove := func(p corral.Plan) {
		w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(p.ID, corral.PlanRemove, ""); return err })
		if err := w.db.SweepSchedules(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want := func(p corral.Plan, text string) {
		t.Helper()
		f, err := w.db.Schedule(p)
		if text == "" {
			if corral.KindOf(err) != corral.NotFound {
				t.Errorf("the schedule of plan %d: %v, want NotFound", p.ID, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); string(got) != text || err != nil {
			t.Errorf("the schedule of plan %d is %q, %v; want %q", p.ID, got, err, text)
		}
	}
	first, same, other := scheduled("a"), scheduled("a"), scheduled("b")
	want(first, "a")
	want(other, "b")
	remove(first)
	want(same, "a")
	remove(same)
	want(same, "")
	want(other, "b")

	failure := errors.New("no space")
	if _, err := w.db.NewSchedule(func(io.Writer) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("a schedule that cannot be written: %v", err)
	}
	abandoned, err := w.db.NewSchedule(func(io.Writer) error { return nil })
	if err != nil || abandoned.Discard(t.Context()) != nil {
		t.Error(err)
	}
	for _, digit := range []string{"b", "c"} { // "b" is also another plan's schedule
		uncommitted, err := w.db.NewSchedule(func(to io.Writer) error { _, err := io.WriteString(to, digit); return err })
		err2 := storetest.All(w.db).Write(t.Context(), "ada", func(tx *store.Tx) error {
			return errors.Join(uncommitted.Keep(tx, corral.Plan{Digest: digestOf(digit)}), failure)
		})
		if err != nil || !errors.Is(err2, failure) || uncommitted.Discard(t.Context()) != nil {
			t.Errorf("a schedule that was kept by a transaction that did not commit: %v, %v", err, err2)
		}
	}
	want(other, "b")
	if files, _ := filepath.Glob(w.path + "-schedules/*"); len(files) != 1 {
		t.Errorf("files %q, want that of one plan", files)
	}
}

// TestSchedulesOfNoPlan: when the database is opened, schedules whose plans a dead process had not created are
// removed.
func TestSchedulesOfNoPlan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corral.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(io.Writer) error { return nil }
	_, err1 := db.NewSchedule(nothing)
	named, err2 := db.NewSchedule(nothing)
	err3 := named.Keep(nil, corral.Plan{Digest: digestOf("c")})
	if err := errors.Join(err1, err2, err3, db.Close()); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if files, err := filepath.Glob(path + "-schedules/*"); len(files) != 0 || err != nil {
		t.Errorf("files %q, %v; want none", files, err)
	}
}
