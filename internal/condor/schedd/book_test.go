package schedd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// task returns a job of one task.
func task(seq int64) execution.Job {
	t := execution.Task{Index: int(seq), ID: fmt.Sprintf("t%d", seq), Attempt: 1}
	return execution.Job{Run: 7, Seq: seq, Dir: "/D", CPUs: 1, Tasks: []execution.Task{t}}
}

// id returns the number that these tests' schedd assigns to job seq.
func id(seq int64) eventlog.JobID { return eventlog.JobID{Cluster: int(seq)} }

// bookOf returns a book with jobs that were claimed, submitted and accepted at noon.
func bookOf(seqs ...int64) *book {
	b := newBook()
	b.claimBy = at(30)
	for _, seq := range seqs {
		b.submitted(b.claim(task(seq), false).key, id(seq), noon)
	}
	return &b
}

// event returns an event of job seq, the given number of seconds after noon.
func event(seq int64, second int, detail any) eventlog.Event {
	return eventlog.Event{Job: id(seq), Time: at(second), Detail: detail}
}

func startEvent(seq int64, second int, worker string) eventlog.Event {
	ad := classad.Ad{"TriggerEventTypeNumber": int64(executeEvent), workerAttribute: worker}
	return event(seq, second, eventlog.JobAd{Ad: ad})
}

// ad returns the ad of job seq in the queue.
func ad(seq, status, starts int64, more classad.Ad) classad.Ad {
	ad := classad.Ad{"ClusterId": seq, "ProcId": int64(0), "JobStatus": status, "NumJobStarts": starts}
	ad[keyAttribute] = keyOf(task(seq))
	maps.Copy(ad, more)
	return ad
}

var hows = []string{"terminated", "cut", "lost", "failed", "removed", "vanished", "cancelled"}

// fates describes the state of each job in a book.
func (b *book) fates() map[int64]string {
	fates := map[int64]string{}
	for _, j := range b.jobs {
		fate := "waits"
		switch {
		case j.end != nil:
			fate = hows[j.end.how] + " " + j.end.reason
		case j.worker != "":
			fate = "runs on " + j.worker
		case j.id != none:
			fate = "idle"
		}
		fates[j.Seq] = fate
	}
	return fates
}

// noWorker is the hold reason of a job whose schedd was killed while the job's shadow started: by then the schedd has
// forgotten the worker whose ad names the executor.
const noWorker = "Cannot expand $$ expression (CorralPilot)."

// A job that HTCondor holds because it used too much memory has failed for that reason; a job that is held for another
// reason has not.
func TestHeldForItsMemory(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]execution.Cause{
		"Error from slot1@g: " + condor.TookMemory + ".": execution.OverMemory, "no disk": "", noWorker: "",
	} {
		j := &job{Job: execution.Job{Run: 1, Seq: 1, Tasks: []execution.Task{{Index: 0, Attempt: 1}}}}
		j.held(time.Unix(1e9, 0), why)
		if got := j.all(execution.Failed, j.end.reason)[0]; got.Cause != want || got.Reason == "" {
			t.Errorf("%s: %+v, want cause %q", why, got, want)
		}
	}
	j := &job{end: &ending{how: removed}}
	if j.held(time.Unix(1e9, 0), condor.TookMemory); j.end.cause != "" {
		t.Error("a job that was removed before has failed for its memory")
	}
}

func TestWhatEventsMean(t *testing.T) {
	type events []eventlog.Event
	var (
		started  = startEvent(1, 1, "g/0")
		evicted  = event(1, 2, eventlog.Evicted{Reason: "Error from slot1@g: it is 12 o'clock."})
		ended    = event(1, 2, eventlog.Terminated{ReturnValue: 0})
		held     = event(1, 2, eventlog.Held{Reason: "no disk"})
		unmade   = event(1, 2, eventlog.Held{Reason: noWorker})
		shadow   = event(1, 2, eventlog.ShadowException{Message: "no"})
		condorRm = event(1, 2, eventlog.Aborted{Reason: "via condor_rm (by user nobody)"})
		killed   = event(1, 2, eventlog.Terminated{Signal: 9})
		gone     = event(1, 2, eventlog.ReconnectFailed{})
	)
	for name, test := range map[string]struct {
		events events
		want   string
	}{
		"nothing":            {nil, "idle"},
		"started":            {events{started}, "runs on g/0"},
		"started twice":      {events{started, startEvent(1, 2, "h/0")}, "runs on g/0"},
		"ended":              {events{ended}, "terminated its executor ended with status 0"},
		"killed":             {events{killed}, "terminated its executor was killed by signal 9"},
		"evicted":            {events{evicted}, "cut its worker had to leave: it is 12 o'clock"},
		"explained":          {events{evicted, gone}, "lost its worker is lost"},
		"the first end":      {events{held, ended}, "failed HTCondor could not run its job: no disk"},
		"without its worker": {events{unmade}, "lost its worker is lost: " + strings.TrimSuffix(noWorker, ".")},
		"never started":      {events{shadow}, "idle"},
		"lost by its shadow": {events{started, shadow}, "lost HTCondor lost it: no"},
		"removed": {
			events{condorRm},
			"removed its job was removed from HTCondor's queue: via condor_rm (by user nobody)",
		},
		"of another job": {events{event(2, 2, eventlog.Terminated{})}, "idle"},
		"of no interest": {events{event(1, 2, eventlog.Submitted{})}, "idle"},
	} {
		b := bookOf(1)
		for range 2 { // a repeated event has no effect
			for _, e := range test.events {
				b.event(e, at(5))
			}
			if got := b.fates()[1]; got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
	}
}

// TestSubmitEvents: the log may be the first source to show that the schedd has a job, because condor_submit did not
// answer or corrald was restarted.
func TestSubmitEvents(t *testing.T) {
	submit := func(key string, n int64) eventlog.Event {
		return event(n, 0, eventlog.JobAd{Ad: classad.Ad{"TriggerEventTypeNumber": int64(submitEvent), keyAttribute: key}})
	}
	b := bookOf()
	j := b.claim(task(1), false)
	b.event(submit(j.key, 1), noon)
	b.event(submit(j.key, 1), noon)
	if b.waits(j) || j.id != id(1) || len(b.leaving) > 0 {
		t.Errorf("job = %+v, leaving %v, want it in the queue once", j, b.leaving)
	}
	b.event(submit(j.key, 5), noon)
	if j.id != id(1) || !b.leaving[id(5)] {
		t.Errorf("leaving %v, want the second submission of %v", b.leaving, j.id)
	}
	b.event(submit(keyOf(task(2)), 2), at(1))
	if again := b.claim(task(2), true); again != nil || b.jobs[keyOf(task(2))].id != id(2) {
		t.Errorf("a job from before a restart is to be submitted: %+v", again)
	}
	b.event(submit(keyOf(task(3)), 3), at(31)) // too late
	if len(b.jobs) != 2 {
		t.Errorf("jobs = %v, want two", b.fates())
	}
}

func TestWhatTheQueueMeans(t *testing.T) {
	late := noon.Add(time.Minute)
	type ads []classad.Ad
	held := ad(1, Held, 1, classad.Ad{"HoldReason": "no pilot"})
	twin := ad(1, Idle, 0, classad.Ad{"ProcId": int64(1)})
	for name, test := range map[string]struct {
		ads  ads
		want string
	}{
		"idle":         {ads{ad(1, Idle, 0, nil)}, "idle"},
		"runs":         {ads{ad(1, Running, 1, classad.Ad{workerAttribute: "g/0"})}, "runs on g/0"},
		"about to run": {ads{ad(1, Running, 0, classad.Ad{workerAttribute: "g/0"})}, "idle"},
		"back in it":   {ads{ad(1, Idle, 1, nil)}, "lost its worker is lost"},
		"held":         {ads{held}, "failed HTCondor could not run its job: no pilot"},
		"held without its worker": {
			ads{ad(1, Held, 0, classad.Ad{"HoldReason": noWorker})},
			"lost its worker is lost: " + strings.TrimSuffix(noWorker, "."),
		},
		"about to leave":  {ads{ad(1, Removed, 1, nil)}, "idle"},
		"not in it":       {nil, "vanished its job is gone from HTCondor's queue"},
		"only one of two": {ads{ad(1, Idle, 0, nil), twin}, "idle"},
	} {
		b := bookOf(1)
		b.missed(b.found(test.ads, late, late), late)
		if got := b.fates()[1]; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if want := name == "only one of two"; b.leaving[eventlog.JobID{Cluster: 1, Proc: 1}] != want {
			t.Errorf("%s: leaving %v", name, b.leaving)
		}
	}
}

// TestLookupAfterARestart: jobs that were started according to the run are not submitted again; unclaimed jobs are
// removed from the queue.
func TestLookupAfterARestart(t *testing.T) {
	b := bookOf()
	b.claim(task(1), true)
	b.claim(task(2), true)
	if b.claim(task(3), false) == nil || !b.unsure {
		t.Fatalf("unsure %v, want that the queue is looked up before job 3 is submitted", b.unsure)
	}
	b.missed(b.found([]classad.Ad{ad(1, Idle, 0, nil), ad(4, Idle, 0, nil)}, noon, noon), noon)
	const vanished = "vanished its job is not in HTCondor's queue any more"
	want := map[int64]string{0: "idle", 1: "idle", 2: vanished, 3: "waits"} // 0 is job 4, which no run has claimed
	if diff := cmp.Diff(want, b.fates()); diff != "" || b.unsure {
		t.Errorf("unsure %v, jobs (-want +got):\n%s", b.unsure, diff)
	}
	b.disown(at(29))
	if len(b.leaving) > 0 {
		t.Errorf("leaving %v before the run had its time to claim them", b.leaving)
	}
	b.disown(at(30))
	if !maps.Equal(b.leaving, map[eventlog.JobID]bool{id(4): true}) {
		t.Errorf("leaving %v, want %v", b.leaving, id(4))
	}
	if b.found([]classad.Ad{ad(5, Idle, 0, nil)}, at(40), at(40)); !b.leaving[id(5)] {
		t.Errorf("leaving %v, want the unknown job among them", b.leaving)
	}
}

// TestMissedJobsAreThoseFromBefore: jobs that were submitted during the query need not be in its result.
func TestMissedJobsAreThoseFromBefore(t *testing.T) {
	b := bookOf(1)
	b.missed(b.found(nil, noon, at(1)), at(1))
	if got := b.fates()[1]; got != "idle" {
		t.Errorf("job = %s, want it idle", got)
	}
}

func TestCancelledJobs(t *testing.T) {
	b := bookOf(1, 2, 3)
	b.event(startEvent(2, 1, "g/0"), at(1))
	b.event(event(3, 1, eventlog.Terminated{}), at(1))
	if waiting := b.cancel(at(2)); len(waiting) != 1 || waiting[0].Seq != 1 {
		t.Errorf("waiting = %+v, want job 1", waiting)
	}
	want := map[int64]string{2: "cancelled cancelled", 3: "terminated its executor ended with status 0"}
	if diff := cmp.Diff(want, b.fates()); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	b.event(event(2, 3, eventlog.Aborted{}), at(3)) // due to our condor_rm
	for _, j := range b.ended(at(3)) {
		b.bury(j)
	}
	if len(b.jobs) > 0 || !maps.Equal(b.leaving, map[eventlog.JobID]bool{id(2): true}) {
		t.Errorf("jobs %v, leaving %v: one that ended left by itself", b.fates(), b.leaving)
	}
	// The run is resumed and repeats the attempts that never started.
	if b.claim(task(1), false) == nil {
		t.Error("a job of a resumed run is not submitted")
	}
}

// TestRemovedJobOfAResumedRun: the log reports the removal of the job either before or after the run was resumed.
func TestRemovedJobOfAResumedRun(t *testing.T) {
	b := bookOf(1)
	b.event(event(1, 1, eventlog.Aborted{}), at(1))
	if fresh := b.claim(task(1), false); fresh == nil || fresh.end != nil {
		t.Errorf("claim() = %+v, want a new job", fresh)
	}
	b = bookOf(1)
	b.event(event(1, 1, eventlog.Aborted{}), at(1))
	if fresh := b.claim(task(1), true); fresh != nil || len(b.ended(at(1))) != 1 {
		t.Errorf("claim() = %+v, want the end of the job that was expected", fresh)
	}
}

func TestAssignments(t *testing.T) {
	b := bookOf(1, 2, 3, 4)
	b.event(startEvent(1, 1, "g/0"), at(1))
	b.event(startEvent(2, 1, "g/0"), at(1))
	b.event(startEvent(3, 1, "h/0"), at(1))
	b.event(event(4, 1, eventlog.Terminated{}), at(1)) // the log did not name the worker
	told := map[string]int{}
	for worker, jobs := range b.assignments(at(1)) {
		told[worker] = len(jobs)
		for _, j := range jobs {
			j.told = worker
		}
	}
	if diff := cmp.Diff(map[string]int{"g/0": 2, "h/0": 1, "unknown": 1}, told); diff != "" {
		t.Errorf("jobs by worker (-want +got):\n%s", diff)
	}
	if again := b.assignments(at(1)); len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}

// TestEndsAreToldOnceTheyAreCertain: an eviction may still be explained.
func TestEndsAreReportedOnceCertain(t *testing.T) {
	b := bookOf(1)
	b.event(event(1, 1, eventlog.Evicted{}), at(1))
	if early := b.ended(at(3)); len(early) > 0 || len(b.touched) != 1 {
		t.Errorf("ended = %v, touched %v, want to wait for %v", early, b.touched, explainTime)
	}
	if ended := b.ended(at(4)); len(ended) != 1 {
		t.Errorf("ended = %v, want the job", ended)
	}
}

func TestSettle(t *testing.T) {
	done := func(index int) execution.Result { return execution.Result{Index: index, Status: execution.Done} }
	one, two := task(1), task(1)
	two.Tasks = append(two.Tasks, task(2).Tasks...)
	all, bad := delivery{results: []execution.Result{done(1)}}, delivery{err: errors.New("bad")}
	none := delivery{err: transfer.ErrNoResult, complaint: "no such file.\n"}
	for name, test := range map[string]struct {
		job    execution.Job
		how    how
		worker string
		back   delivery
		want   string // the status and reason of each result
		why    string
	}{
		"done":                {one, terminated, "w", all, "done ", ""},
		"half done":           {two, terminated, "w", all, "done ", "its executor stopped before its last task"},
		"no result":           {one, terminated, "w", none, "failed why without a result: no such file", ""},
		"vanished":            {one, vanished, "w", none, "", "why"},
		"vanished when done":  {one, vanished, "w", all, "done ", ""},
		"a parcel is damaged": {one, vanished, "w", bad, "failed why without a result", ""},
		"cut":                 {one, cut, "w", delivery{}, "cut why", ""},
		"cut, of two tasks":   {two, cut, "w", delivery{}, "", "why"},
		"cut, nowhere":        {one, cut, "", delivery{}, "", "why"},
		"lost":                {one, lost, "w", delivery{}, "", "why"},
		"failed":              {two, failed, "", delivery{}, "failed why, failed why", ""},
		"removed":             {one, removed, "w", delivery{}, "failed why", ""},
		"cancelled":           {one, cancelled, "w", delivery{}, "cancelled why", ""},
	} {
		j := &job{Job: test.job, worker: test.worker, end: &ending{how: test.how, reason: "why", at: noon}}
		for range 2 { // after a refusal the sink receives the same report again
			results, why := j.settle(test.back)
			var got []string
			for _, r := range results {
				got = append(got, fmt.Sprintf("%s %s", r.Status, r.Reason))
			}
			if got := strings.Join(got, ", "); got != test.want || why != test.why {
				t.Errorf("%s: settle() = %q, %q, want %q, %q", name, got, why, test.want, test.why)
			}
		}
	}
}

func TestKeyNamesTasksAndAttempts(t *testing.T) {
	again, other, same := task(1), task(2), task(1)
	again.Tasks[0].Attempt = 2
	same.Seq, same.Dir = 9, "/elsewhere"
	got := []string{keyOf(again), keyOf(other), keyOf(same)}
	if slices.Contains(got[:2], keyOf(task(1))) || got[2] != keyOf(task(1)) {
		t.Errorf("keys %q, of the first %q", got, keyOf(task(1)))
	}
}

// TestWaysOfFiles: the log shows how long a job's files were in transfer; the times are added to the job's first and
// last task.
func TestWaysOfFiles(t *testing.T) {
	t.Parallel()
	steps := []eventlog.Event{event(1, 10, eventlog.Transferring{}), event(1, 13, eventlog.Transferring{Done: true}),
		event(1, 20, eventlog.Transferring{Output: true}), event(1, 25, eventlog.Transferring{Output: true, Done: true}),
		event(1, 26, eventlog.Terminated{Received: 1000, Sent: 500})}
	for missing := range len(steps) {
		b := bookOf(1)
		for k, e := range steps {
			if k != missing || k == len(steps)-1 {
				b.event(e, at(30))
			}
		}
		j := b.byID[id(1)]
		results, _ := j.settle(delivery{results: make([]execution.Result, 1)})
		want := execution.Travel{}
		if missing == len(steps)-1 { // no event is missing
			want = execution.Travel{In: 3 * time.Second, Out: 5 * time.Second, Bytes: 1500}
		}
		if len(results) != 1 || results[0].Travel != want {
			t.Errorf("without event %d: %+v, want %+v", missing, results, want)
		}
	}
	b := bookOf(1)
	j := b.byID[id(1)]
	for _, e := range steps {
		b.event(e, at(30))
	}
	j.Tasks = make([]execution.Task, 3)
	results, _ := j.settle(delivery{results: make([]execution.Result, 3)})
	if results[0].Travel.In != 3*time.Second || results[1].Travel != (execution.Travel{}) ||
		results[2].Travel.Out != 5*time.Second {
		t.Errorf("of three tasks: %+v, want the inputs with the first and the outputs with the last", results)
	}
}

// TestWithdraw: jobs that no worker has started are forgotten and removed from the queue, even if the schedd does not
// have them yet.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	b := bookOf(1, 2, 3)
	b.event(startEvent(2, 5, "w"), at(5))
	b.claim(task(4), false)
	var seqs []int64
	for _, j := range b.withdraw([]int64{1, 2, 4, 9}) {
		seqs = append(seqs, j.Seq)
	}
	slices.Sort(seqs)
	if !slices.Equal(seqs, []int64{1, 4}) || len(b.leaving) != 1 || !b.leaving[id(1)] || len(b.jobs) != 2 {
		t.Errorf("withdrawn %v, leaving %v, %d jobs left; want 1 and 4, 1, and two", seqs, b.leaving, len(b.jobs))
	}
}
