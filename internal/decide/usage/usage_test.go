package usage_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/usage"
)

var begin = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

const hour = usage.CoreTime(3_600_000)

func at(h float64) time.Time { return begin.Add(time.Duration(h * float64(time.Hour))) }

// The time of tasks is attributed to their run; idle time is attributed to the pilot's user and plan.
func TestSum(t *testing.T) {
	t.Parallel()
	attempts := []usage.Attempt{
		{ID: 1, User: "ann", Site: "hpc", Workflow: "", Cores: 4, From: at(0), To: at(10)},
		{ID: 2, User: "bob", Site: "grid", Workflow: "map", Cores: 2, From: at(1), To: at(2)},
	}
	work := []usage.Work{
		{Attempt: 1, User: "ann", Site: "hpc", Workflow: "fold", Used: 20 * hour, Lost: 4 * hour},
		{Attempt: 1, User: "bob", Site: "hpc", Workflow: "map", Used: 6 * hour},
		{Attempt: 2, User: "bob", Site: "grid", Workflow: "map", Used: 3 * hour}, // by its own clock; 2 hours were held
		{Attempt: 3, User: "bob", Site: "grid", Workflow: "map", Used: 9 * hour}, // its start was not observed
		{Attempt: 0, User: "ann", Workflow: "fold", Used: hour},
	}
	all := usage.Window{Since: at(-1), Until: at(24)}
	for _, tt := range []struct {
		name string
		in   usage.Window
		by   []usage.By
		want []usage.Row
	}{
		{"by all", all, usage.Bys, []usage.Row{
			{Key: usage.Key{User: "ann", Workflow: "fold"}, Used: hour},
			{Key: usage.Key{User: "ann", Site: "hpc"}, Idle: 10 * hour},
			{Key: usage.Key{User: "ann", Site: "hpc", Workflow: "fold"}, Used: 20 * hour, Lost: 4 * hour},
			{Key: usage.Key{User: "bob", Site: "grid", Workflow: "map"}, Used: 2 * hour},
			{Key: usage.Key{User: "bob", Site: "hpc", Workflow: "map"}, Used: 6 * hour},
		}},
		{"by site", all, []usage.By{usage.BySite}, []usage.Row{
			{Key: usage.Key{}, Used: hour},
			{Key: usage.Key{Site: "grid"}, Used: 2 * hour},
			{Key: usage.Key{Site: "hpc"}, Used: 26 * hour, Idle: 10 * hour, Lost: 4 * hour},
		}},
		{"a part of the time", usage.Window{Since: at(9), Until: at(24)}, []usage.By{usage.ByUser}, []usage.Row{
			// The 30 hours of work are reduced to the 4 hours that were held, except for the one hour on cores without
			// a pilot.
			{Key: usage.Key{User: "ann"}, Used: hour + 4*hour*20/30, Lost: 4 * hour * 4 / 30},
			{Key: usage.Key{User: "bob"}, Used: 4 * hour * 6 / 30},
		}},
	} {
		if diff := cmp.Diff(tt.want, usage.Sum(tt.in, attempts, work, tt.by...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	// Someone else's tasks used all of a pilot: the user who requested it has no row.
	bobs := []usage.Work{{Attempt: 2, User: "ann", Site: "grid", Workflow: "fold", Used: 2 * hour}}
	want := []usage.Row{{Key: usage.Key{User: "ann"}, Used: 2 * hour}}
	if diff := cmp.Diff(want, usage.Sum(all, attempts[1:], bobs, usage.ByUser)); diff != "" {
		t.Errorf("of a pilot without idle time (-want +got):\n%s", diff)
	}
	if rows := usage.Sum(all, nil, nil); len(rows) != 0 {
		t.Errorf("of nothing: %v", rows)
	}
}

// Times that are too large to be added count for no more than the pilot held.
func TestFalseTimes(t *testing.T) {
	t.Parallel()
	pilot := []usage.Attempt{{ID: 1, User: "ann", Cores: 2, From: at(0), To: at(1)}}
	forever := usage.CoreTime(math.MaxInt64)
	for _, work := range [][]usage.Work{
		{{Attempt: 1, User: "ann", Used: forever, Lost: forever}},
		{{Attempt: 1, User: "ann", Used: hour, Lost: forever}, {Attempt: 1, User: "ann", Used: forever}},
		{{Attempt: 1, User: "ann", Used: forever}, {Attempt: 1, User: "ann", Used: 1, Lost: forever}},
		{{Attempt: 1, User: "ann", Used: forever - 1}, {Attempt: 1, User: "ann", Used: 1}, {Attempt: 1, User: "ann", Lost: -hour}},
	} {
		for _, row := range usage.Sum(usage.Window{Since: at(0), Until: at(24)}, pilot, work) {
			if row.Allocated() != 2*hour || row.Used < 0 || row.Lost < 0 || row.Idle < 0 {
				t.Errorf("%+v gives %+v, want 2 hours", work, row)
			}
		}
	}
	others := []usage.Work{{Used: forever, Lost: 1}, {Used: forever, Lost: -hour}} // on cores that no pilot provided
	if got := usage.Sum(usage.Window{}, nil, others); len(got) != 1 || got[0].Used != forever || got[0].Lost != 1 {
		t.Errorf("of others: %+v", got)
	}
}

func TestHours(t *testing.T) {
	t.Parallel()
	if got := (36 * hour / 8).Hours(); got != 4.5 {
		t.Errorf("%v hours, want 4.5", got)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	now := at(5.5)
	for _, tt := range []struct {
		name         string
		since, until time.Time
		want         usage.Window
	}{
		{"until now", at(1.25), time.Time{}, usage.Window{Since: at(1), Until: now}},
		{"whole hours", at(1), at(3), usage.Window{Since: at(1), Until: at(3)}},
		{"parts of hours", at(1.9), at(3.1), usage.Window{Since: at(1), Until: at(4)}},
		{"the present hour", at(1), at(5.2), usage.Window{Since: at(1), Until: now}},
		{"the future", at(1), at(100), usage.Window{Since: at(1), Until: now}},
	} {
		if got := usage.NewWindow(tt.since, tt.until, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	from, to := usage.NewWindow(at(1), time.Time{}, now).Hours()
	if want := begin.Unix() / 3600; from != want+1 || to != want+6 {
		t.Errorf("hours %d to %d, want %d to %d", from, to, want+1, want+6)
	}
	if from, to := usage.NewWindow(at(1), at(3), now).Hours(); from != begin.Unix()/3600+1 || to != begin.Unix()/3600+3 {
		t.Errorf("whole hours %d to %d", from, to)
	}
	if from, _ := usage.NewWindow(time.Time{}, time.Time{}, now).Hours(); from != 0 {
		t.Errorf("the beginning is hour %d", from)
	}
}

// However rows are grouped, every core-hour that was held is in exactly one row, as used, idle or lost, and no other
// hour is in any row, whatever times tasks are claimed to have taken.
func TestEveryHourIsInOneRow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b"})
		w := usage.Window{Since: at(0), Until: at(rapid.Float64Range(0, 48).Draw(t, "until"))}
		var attempts []usage.Attempt
		var held usage.CoreTime
		heldBy := map[corral.JobID]usage.CoreTime{}
		for i := range rapid.IntRange(0, 5).Draw(t, "attempts") {
			from := rapid.Float64Range(0, 48).Draw(t, "from")
			a := usage.Attempt{ID: corral.JobID(i + 1), User: name.Draw(t, "user"), Site: name.Draw(t, "site"),
				Cores: rapid.IntRange(1, 64).Draw(t, "cores"), From: at(from), To: at(from + rapid.Float64Range(0, 48).Draw(t, "for"))}
			attempts = append(attempts, a)
			end := a.To
			if end.After(w.Until) {
				end = w.Until
			}
			heldBy[a.ID] = usage.CoreTime(a.Cores) * usage.CoreTime(max(0, end.Sub(a.From)).Milliseconds())
			held += heldBy[a.ID]
		}
		var work []usage.Work
		var others usage.CoreTime // not provided by a pilot
		took := map[corral.JobID]usage.CoreTime{}
		most := rapid.SampledFrom([]int64{1, 1e9, 1e17}).Draw(t, "most")
		for range rapid.IntRange(0, 8).Draw(t, "work") {
			v := usage.Work{Attempt: corral.JobID(rapid.IntRange(0, 5).Draw(t, "of")), User: name.Draw(t, "user"),
				Workflow: name.Draw(t, "flow"), Used: usage.CoreTime(rapid.Int64Range(0, most).Draw(t, "used")),
				Lost: usage.CoreTime(rapid.Int64Range(0, most).Draw(t, "lost"))}
			work = append(work, v)
			took[v.Attempt] += v.Used + v.Lost
			if v.Attempt == 0 {
				others += v.Used + v.Lost
			}
		}
		var total, busy usage.CoreTime
		for _, r := range usage.Sum(w, attempts, work) {
			total += r.Allocated()
			busy += r.Used + r.Lost
		}
		if total != held+others {
			t.Fatalf("%d allocated, want the %d held and the %d of others", total, held, others)
		}
		least := others // of each attempt, the time held or used, except for rounding
		for id, c := range heldBy {
			least += max(0, min(c, took[id])-usage.CoreTime(2*len(work)))
		}
		if busy < least || busy > held+others {
			t.Fatalf("%d used and lost, want from %d to %d", busy, least, held+others)
		}
		by := rapid.SliceOfDistinct(rapid.SampledFrom(usage.Bys), func(b usage.By) usage.By { return b }).Draw(t, "by")
		var grouped usage.CoreTime
		seen := map[usage.Key]bool{}
		for _, r := range usage.Sum(w, attempts, work, by...) {
			grouped += r.Allocated()
			if seen[r.Key] || r.Used < 0 || r.Idle < 0 || r.Lost < 0 {
				t.Fatalf("row %+v is there twice, or negative", r)
			}
			seen[r.Key] = true
		}
		if grouped != total {
			t.Fatalf("grouped by %v it is %d, else %d", by, grouped, total)
		}
	})
}
