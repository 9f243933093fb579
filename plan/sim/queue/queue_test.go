package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/plan/sim/queue"
)

const minute, hour = time.Minute, time.Hour

// rigid returns a job that runs for its requested time.
func rigid(user int, submit time.Duration, processors int, length time.Duration) queue.Job {
	return queue.Job{User: user, Submit: submit, Processors: processors, Requested: length, Runtime: length}
}

// starts simulates jobs and returns the start of each.
func starts(m queue.Machine, jobs ...queue.Job) (all []time.Duration) {
	for _, h := range queue.Replay(m, jobs) {
		all = append(all, h.Start)
	}
	return all
}

// An example that distinguishes the policies: on a machine with 4 processors a job runs on 3 of them for 4 hours; a job
// on all 4 and a job on 3 processors wait; two short jobs and a long one arrive after them.
func TestPolicies(t *testing.T) {
	t.Parallel()
	jobs := []queue.Job{
		rigid(1, 0, 3, 4*hour),
		rigid(2, 0, 4, hour),        // the first waiting job
		rigid(3, 0, 3, 2*hour),      // the second
		rigid(4, minute, 1, 2*hour), // fits beside the first job, and delays no other
		rigid(5, minute, 1, 4*hour), // would delay the wide job
		rigid(6, 3*hour, 1, hour),   // fits before the wide job
	}
	for _, tt := range []struct {
		policy queue.Discipline
		want   []time.Duration
	}{
		{queue.FCFS, []time.Duration{0, 4 * hour, 5 * hour, 5 * hour, 7 * hour, 7 * hour}},
		{queue.EASY, []time.Duration{0, 4 * hour, 5 * hour, minute, 5 * hour, 3 * hour}},
		{queue.Conservative, []time.Duration{0, 4 * hour, 5 * hour, minute, 5 * hour, 3 * hour}},
	} {
		if diff := cmp.Diff(tt.want, starts(queue.Machine{Processors: 4, Policy: tt.policy}, jobs...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.policy, diff)
		}
	}
}

// EASY may delay the second waiting job, conservative backfilling may not. The last job fits beside the first waiting
// job, which leaves one processor free, and occupies the processor that the second would need an hour later.
func TestEASYDelaysTheSecond(t *testing.T) {
	t.Parallel()
	jobs := []queue.Job{
		rigid(1, 0, 3, 2*hour), rigid(2, 0, 3, hour), rigid(3, 0, 4, hour), rigid(4, 0, 1, 5*hour),
	}
	for policy, want := range map[queue.Discipline][]time.Duration{
		queue.EASY:         {0, 2 * hour, 5 * hour, 0},
		queue.Conservative: {0, 2 * hour, 3 * hour, 4 * hour},
	} {
		if diff := cmp.Diff(want, starts(queue.Machine{Processors: 4, Policy: policy}, jobs...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", policy, diff)
		}
	}
}

// A job that ends early makes room: the first of the two waiting jobs moves forward, and the second with it.
func TestReservationsMoveForward(t *testing.T) {
	t.Parallel()
	early := rigid(1, 0, 4, 4*hour)
	early.Runtime = hour
	got := starts(queue.Machine{Processors: 4, Policy: queue.Conservative}, early, rigid(2, 0, 3, hour), rigid(3, 0, 4, hour))
	if want := []time.Duration{0, hour, 2 * hour}; !slices.Equal(got, want) {
		t.Errorf("starts %v, want %v", got, want)
	}
}

// Limits of a site (Juve 2012, §2.8.3): each user may have a maximum number of running jobs, and further jobs of the
// user do not block other users; a job that requests more than the maximum walltime is refused; passes happen at
// intervals.
func TestLimits(t *testing.T) {
	t.Parallel()
	mine := rigid(1, 0, 1, hour)
	for _, policy := range queue.Policies {
		m := queue.Machine{Processors: 8, Policy: policy, MaxUserRun: 2, Walltime: 24 * hour, Interval: 10 * minute}
		got := starts(m, mine, mine, mine, rigid(2, 5*minute, 1, hour), rigid(2, 5*minute, 1, 25*hour), mine)
		if want := []time.Duration{0, 0, hour, 10 * minute, -1, hour}; !slices.Equal(got, want) {
			t.Errorf("%s: starts %v, want %v", policy, got, want)
		}
	}
	if why := (queue.Machine{Processors: 4, Policy: queue.FCFS}).Refuses(rigid(1, 0, 5, hour)); why == "" {
		t.Error("5 processors of 4 are not refused")
	}
}

// A job that exceeds its requested time is killed.
func TestKilledAtItsRequestedTime(t *testing.T) {
	t.Parallel()
	long := rigid(1, 0, 1, hour)
	long.Runtime = 3 * hour
	held := queue.Replay(queue.Machine{Processors: 1, Policy: queue.FCFS}, []queue.Job{long, rigid(2, 0, 1, hour)})
	if held[0].End != hour || held[1].Start != hour || held[1].Wait() != hour {
		t.Errorf("%+v", held)
	}
}

// Open jobs wait among the jobs of the background, hold their processors until they are finished, and may be withdrawn.
func TestOpenJobs(t *testing.T) {
	t.Parallel()
	for _, policy := range queue.Policies {
		q := queue.New(queue.Machine{Processors: 4, Policy: policy}, []queue.Job{rigid(1, 0, 4, hour), rigid(1, 3*hour, 4, hour)})
		started := map[int]time.Duration{}
		note := func(j queue.Job, at time.Duration) { started[j.ID] = at }
		q.Advance(0, note)
		for id := 1; id <= 3; id++ {
			if why := q.Submit(queue.Job{ID: id, User: 2, Processors: 2, Requested: 10 * hour, Runtime: queue.Open}); why != "" {
				t.Fatal(why)
			}
		}
		q.Advance(2*hour, note)
		q.Finish(1) // running
		q.Finish(3) // would start now
		q.Finish(3)
		q.Advance(3*hour, note)
		q.Finish(2)
		q.Finish(2)
		q.Advance(queue.Open, note)
		want := map[int]time.Duration{0: 3 * hour, 1: hour, 2: hour} // 0: jobs of the background
		if diff := cmp.Diff(want, started); diff != "" {
			t.Errorf("%s (-want +got):\n%s", policy, diff)
		}
		if why := q.Submit(queue.Job{ID: 4, Processors: 5, Requested: hour, Runtime: queue.Open}); why == "" {
			t.Errorf("%s: 5 processors of 4 are not refused", policy)
		}
	}
}

// Jobs are planned around a reservation, and at most the free processors can be reserved.
func TestReserve(t *testing.T) {
	t.Parallel()
	for _, policy := range queue.Policies {
		q := queue.New(queue.Machine{Processors: 4, Policy: policy}, nil)
		if !q.Reserve(hour, 2*hour, 3) || q.Reserve(hour, 2*hour, 2) || q.Reserve(hour, hour, 1) {
			t.Fatalf("%s: 3 of 4 processors, and then no 2 more", policy)
		}
		for id, j := range []queue.Job{rigid(1, 0, 2, 2*hour), rigid(1, 0, 4, hour), rigid(1, 0, 1, 3*hour)} {
			j.ID = id
			q.Submit(j)
		}
		var got []time.Duration
		q.Advance(queue.Open, func(j queue.Job, at time.Duration) { got = append(got, time.Duration(j.ID), at) })
		want := []time.Duration{1, 0, 2, hour, 0, 2 * hour} // the second before the reservation, the third beside it
		if policy == queue.FCFS {
			want = []time.Duration{0, 2 * hour, 1, 4 * hour, 2, 5 * hour}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: jobs and their starts %v, want %v", policy, got, want)
		}
	}
}
