package queuemodel_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
)

const (
	m = corral.Seconds(time.Minute)

	minute, hour = time.Minute, time.Hour
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// nodes returns the backlog of an idle queue of 8 nodes with 8 cpus and 4000 MiB each.
func nodes() corral.Backlog {
	b := corral.Backlog{Queue: "normal", At: noon, Processors: 64}
	for i := range 8 {
		b.Nodes = append(b.Nodes, corral.QueueNode{Name: fmt.Sprint("n", i+1), CPUs: 8, MemoryMiB: 4000,
			Queues: []string{"normal"}})
	}
	return b
}

// whole returns a job that shares no node, as sbatch --exclusive -N NODES -t LIMIT.
func whole(nodes int, limit corral.Seconds) corral.QueuedJob {
	return corral.QueuedJob{Processors: nodes, Nodes: nodes, Limit: limit, Whole: true, MemoryMiB: 100}
}

// busy is the queue of a real Slurm after sbatch --exclusive of -N4 -t10, -N4 -t20, -N6 -t15, -N2 -t10 and -N8 -t5: the
// first two jobs run.
func busy() corral.Backlog {
	b := nodes()
	for i, limit := range []corral.Seconds{10 * m, 20 * m} {
		j := whole(4, limit)
		j.Processors = 32
		for k := range 4 {
			n := &b.Nodes[4*i+k]
			n.Held, j.On = 8, append(j.On, n.Name)
		}
		b.Running = append(b.Running, j)
	}
	b.Waiting = []corral.QueuedJob{whole(6, 15*m), whole(2, 10*m), whole(8, 5*m)}
	return b
}

// Jobs on whole nodes start when the real Slurm starts them, and hold all cpus of their nodes.
func TestWholeNodes(t *testing.T) {
	t.Parallel()
	q := queuemodel.Of(busy())
	if got, want := q.Starts(), []time.Duration{20 * minute, 10 * minute, 35 * minute}; !slices.Equal(got, want) {
		t.Errorf("they start at %v, want %v", got, want)
	}
	var steps []any
	for at, free := range q.Room().Steps() {
		steps = append(steps, at, free)
	}
	want := []any{time.Duration(0), 0, 10 * minute, 16, 35 * minute, 0, 40 * minute, 64}
	if !slices.Equal(steps, want) {
		t.Errorf("free are %v, want %v", steps, want)
	}
	for _, tc := range []struct {
		pilot queuemodel.Request
		want  time.Duration
	}{
		{queuemodel.Request{Hosts: 1, CPUs: 8, Walltime: 15 * minute}, 20 * minute},
		{queuemodel.Request{Hosts: 2, CPUs: 8, Walltime: 10 * minute}, 10 * minute},
		{queuemodel.Request{Hosts: 1, CPUs: 3, Walltime: 30 * minute}, 40 * minute},
		{queuemodel.Request{Hosts: 2, CPUs: 8, Walltime: 24 * hour}, 40 * minute},
	} {
		if got, ok := q.Start(0, tc.pilot); !ok || got != tc.want {
			t.Errorf("%+v starts at %s, %t; want %s", tc.pilot, got, ok, tc.want)
		}
	}
	if _, ok := q.Start(0, queuemodel.Request{Hosts: 1, CPUs: 9, Walltime: hour}); ok {
		t.Error("a host of 9 cpus starts on nodes of 8")
	}
}

// Maintenance in 30 minutes, as the look shows it, delays the pilots that would reach it, and no others.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	b := nodes()
	r := corral.QueueReservation{Name: "m", From: noon.Add(30 * minute), To: noon.Add(30*minute + 4*hour), Maintenance: true}
	for _, n := range b.Nodes {
		r.Nodes = append(r.Nodes, n.Name)
	}
	b.Reservations = []corral.QueueReservation{r}
	q := queuemodel.Of(b)
	for walltime, want := range map[time.Duration]time.Duration{20 * minute: 0, 30 * minute: 0, hour: 4*hour + 30*minute} {
		if got, ok := q.Start(0, queuemodel.Request{Hosts: 8, CPUs: 8, Walltime: walltime}); !ok || got != want {
			t.Errorf("a pilot of %s starts at %s, %t; want %s", walltime, got, ok, want)
		}
	}
	b.Reservations[0].Nodes = r.Nodes[:7] // the eighth node stays
	if got, _ := queuemodel.Of(b).Start(0, queuemodel.Request{Hosts: 1, CPUs: 8, Walltime: hour}); got != 0 {
		t.Errorf("the free node is used at %s", got)
	}
}

// Memory, begin times, dependencies, arrays with a limit, and queues with some of the nodes delay jobs.
func TestEligibility(t *testing.T) {
	t.Parallel()
	job := func(change func(*corral.QueuedJob)) corral.QueuedJob {
		j := corral.QueuedJob{ID: "w", Processors: 1, Nodes: 1, Limit: 10 * m, MemoryMiB: 100}
		change(&j)
		return j
	}
	b := nodes()
	b.Nodes = b.Nodes[:1]
	b.Nodes[0].Held = 2
	b.Running = []corral.QueuedJob{{ID: "r", Array: "a", Processors: 2, Limit: 30 * m, MemoryMiB: 3000, On: []string{"n1"}}}
	b.Waiting = []corral.QueuedJob{
		job(func(j *corral.QueuedJob) { j.MemoryMiB = 1500 }),
		job(func(j *corral.QueuedJob) { j.ID = "x"; j.After = []string{"y"} }),
		job(func(j *corral.QueuedJob) { j.ID = "y"; j.NotBefore = noon.Add(5 * minute) }),
		job(func(j *corral.QueuedJob) { j.After = []string{"r"} }),
		job(func(j *corral.QueuedJob) { j.Array = "a" }),
		job(func(j *corral.QueuedJob) { j.Array = "a" }),
		job(func(j *corral.QueuedJob) { j.Queue = "gpu" }),
		job(func(j *corral.QueuedJob) { j.Processors = 9 }),
		job(func(*corral.QueuedJob) {}),
	}
	want := []time.Duration{30 * minute, 15 * minute, 5 * minute, 30 * minute, 30 * minute, 40 * minute, -1, -1, 0}
	if got := queuemodel.Of(b).Starts(); !slices.Equal(got, want) {
		t.Errorf("they start at %v, want %v", got, want)
	}
}

// A job that may not start yet does not delay a pilot that starts before it may, and delays a later one.
func TestLaterJobs(t *testing.T) {
	t.Parallel()
	b := nodes()
	j := whole(8, 10*m)
	j.NotBefore = noon.Add(5 * minute)
	b.Waiting = []corral.QueuedJob{j}
	q := queuemodel.Of(b)
	p := queuemodel.Request{Hosts: 8, CPUs: 8, Walltime: hour}
	if at, ok := q.Start(0, p); !ok || at != 0 {
		t.Errorf("a pilot of an hour starts at %s, %t", at, ok)
	}
	if at, ok := q.Start(6*minute, p); !ok || at != 15*minute {
		t.Errorf("a pilot that is wanted after 6 minutes starts at %s, %t", at, ok)
	}
}

// A quote counts the additional waits of others: a pilot of two nodes from 10 minutes on delays the job of two nodes
// and the job of eight.
func TestQuotes(t *testing.T) {
	t.Parallel()
	const price = 1_000_000
	p := queuemodel.Request{Hosts: 4, CPUs: 8, Walltime: 20 * minute}
	q := queuemodel.Of(busy())
	if one, ok := q.Quote(10*minute, p, price); !ok || one.Fee == 0 {
		t.Errorf("%+v, %t", one, ok)
	}
	if _, ok := q.Quote(5*minute, p, price); ok {
		t.Error("it starts while all nodes run other jobs")
	}
	all := q.Quotes(0, p, price, 50)
	if n := len(all); n < 2 || all[0].Start != 10*minute || all[n-1].Fee != 0 || all[n-1].Start != 40*minute {
		t.Errorf("%+v", all)
	}
	if thin := q.Quotes(0, p, price, 2); len(thin) != 2 || thin[1].Fee != 0 {
		t.Errorf("%+v", thin)
	}
}

// A look without nodes is planned by numbers of processors, and the model says so.
func TestCounted(t *testing.T) {
	t.Parallel()
	b := busy()
	b.Nodes, b.Reservations = nil, []corral.QueueReservation{{From: noon, To: noon.Add(hour)}}
	q := queuemodel.Of(b)
	if at, ok := q.Start(0, queuemodel.Request{Hosts: 2, CPUs: 8, Walltime: hour}); !ok || at != 10*minute || len(q.Notes) != 1 {
		t.Errorf("at %s, %t, %q", at, ok, q.Notes)
	}
}

// A queue of too many jobs for its nodes is planned by numbers of processors, with its maintenance.
func TestHugeQueue(t *testing.T) {
	t.Parallel()
	b := nodes()
	for range 30_000 {
		b.Waiting = append(b.Waiting, corral.QueuedJob{Processors: 8, Nodes: 1, Limit: 8 * m})
	}
	b.Reservations = []corral.QueueReservation{{From: noon, To: noon.Add(hour), Nodes: []string{"n1", "n2"}}}
	q := queuemodel.Of(b)
	// 6 jobs at once during the reservation, until 64 minutes after its beginning; then 8.
	want := (30_000-8*6+7)/8*8*minute + 8*8*minute
	if at, ok := q.Start(0, queuemodel.Request{Hosts: 8, CPUs: 8, Walltime: hour}); !ok || at != want || len(q.Notes) != 1 {
		t.Errorf("all cpus are free at %s, %t, want %s: %q", at, ok, want, q.Notes)
	}
}
