package reconcile

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

// A faultySite is a fake site behind an unreliable connection: its queue, its directories, and its clock. It holds the
// true state, of which corrald receives only the answers.
type faultySite struct {
	clock     time.Time // advances steadily, independently of corrald's
	silent    time.Time // until then the site answers no request
	installed bool      // files exist below the site's root
	linked    bool      // its pilots reach corrald, which grants the leases; otherwise directories grant them
	jobs      []*theirJob
	leased    map[string]int // :: tag → the site's job that took the attempt's lease
	flown     []flight       // submissions whose answer is no longer awaited
}

// A theirJob is a job that has arrived at the site.
type theirJob struct {
	id       int // the site's own id
	of       corral.Job
	walltime time.Duration
	arrived  time.Time
	hidden   time.Duration // after its arrival; plus the age of an answer, less than Visibility
	started  time.Time
	ended    time.Time
	deaf     bool // the job does not end on request, for example because a process hangs
	vanished bool // the batch system has forgotten it, and its processes are gone
	killed   Killed
	report   *Report
	works    bool // its pilot has the lease, and has started workers

	// stray states why corrald could not have been aware of the job when it abandoned the job or submitted it again.
	// Only the lease prevents the job's pilot from causing harm.
	stray string
}

// A flight is a submission that is slow to reach the site.
type flight struct {
	of     corral.Job
	arrive time.Time
}

func (j *theirJob) live() bool { return j.ended.IsZero() }

func (j *theirJob) String() string { return fmt.Sprintf("%s (the site's job %d)", calls(j.of), j.id) }

// GoString defines how rapid shows the job in a list of steps.
func (j *theirJob) GoString() string { return j.String() }

// arrive adds a job to the queue.
func (s *faultySite) arrive(of corral.Job, hidden time.Duration, stray string) *theirJob {
	j := &theirJob{id: len(s.jobs) + 1, of: of, walltime: time.Hour, arrived: s.clock, hidden: hidden, stray: stray}
	s.jobs = append(s.jobs, j)
	return j
}

// end ends a job, with the job's own report or by an external cause.
func (s *faultySite) end(j *theirJob, killed Killed, report *Report) {
	j.ended, j.killed, j.report, j.works = s.clock, killed, report, false
}

// live lists the jobs that actually exist at the site.
func (s *faultySite) live(which func(*theirJob) bool) (live []*theirJob) {
	for _, j := range s.jobs {
		if j.live() && (which == nil || which(j)) {
			live = append(live, j)
		}
	}
	return live
}

// poll returns the batch system's state of a tag at the given age: the job that counts, which is the working job or
// otherwise the first job, and the other jobs that have not ended.
func (s *faultySite) poll(tag string, age time.Duration) (seen Sighting, extra []*theirJob) {
	at := s.clock.Add(-age)
	var all []*theirJob
	for _, j := range s.jobs {
		if j.of.Tag == tag && !j.vanished && !j.arrived.Add(j.hidden).After(at) {
			all = append(all, j)
		}
	}
	if len(all) == 0 {
		return Sighting{}, nil
	}
	counts := all[0]
	for _, j := range all {
		if s.leased[tag] == j.id {
			counts = j
		}
	}
	for _, j := range all {
		if j != counts && j.live() {
			extra = append(extra, j)
		}
	}
	return counts.seen(at), extra
}

// seen returns the batch system's view of a job at some time.
func (j *theirJob) seen(at time.Time) Sighting {
	s := Sighting{Known: true, ID: fmt.Sprint(j.id), Phase: Queued}
	if !j.started.IsZero() && !j.started.After(at) {
		s.Phase, s.StartedAt = Running, j.started
	}
	if !j.live() && !j.ended.After(at) {
		s.Phase, s.EndedAt, s.Killed, s.Report = Ended, j.ended, j.killed, j.report
	}
	return s
}

// cancel ends all responsive jobs with a tag.
func (s *faultySite) cancel(tag string) {
	for _, j := range s.live(func(j *theirJob) bool { return j.of.Tag == tag && !j.deaf }) {
		s.end(j, ByCancel, nil)
	}
}

// pass lets time pass: submissions that are on their way arrive, and walltimes end.
func (s *faultySite) pass(d time.Duration) {
	s.clock = s.clock.Add(d)
	s.flown = slices.DeleteFunc(s.flown, func(f flight) bool {
		if f.arrive.After(s.clock) {
			return false
		}
		s.arrive(f.of, 0, "it arrived after its submission was given up").arrived = f.arrive
		return true
	})
	for _, j := range s.live(func(j *theirJob) bool { return j.of.Kind == corral.PilotJob && !j.started.IsZero() }) {
		if s.clock.Sub(j.started) > j.walltime {
			s.end(j, ByWalltime, nil)
		}
	}
}

// start starts a job of the queue. A pilot acquires its lease, from corrald or by a directory, before it starts
// workers, and leaves at once if it does not obtain the lease.
func (f *faulty) start(j *theirJob) {
	s := f.site
	j.started = s.clock
	if j.of.Kind != corral.PilotJob {
		return
	}
	if s.leases(f.rig, j) {
		j.works = true
		_, _ = f.apply(NoteWorkers{j.of.ID, 1}) // corrald may no longer have the attempt
		return
	}
	s.end(j, "", &Report{Outcome: corral.OutcomeDuplicate, Reason: "another pilot has the lease"})
}

func (s *faultySite) leases(r *rig, j *theirJob) bool {
	if s.linked {
		if _, err := r.apply(LeaseJob{Job: j.of.ID, Holder: fmt.Sprint(j.id)}); err != nil {
			return false
		}
	} else if s.leased[j.of.Tag] != 0 {
		return false
	}
	s.leased[j.of.Tag] = j.id
	return true
}

// someEnd draws the end of a job, by itself or by an external cause.
func someEnd(t *rapid.T, kind corral.JobKind) (Killed, *Report) {
	outcomes := []corral.Outcome{corral.OutcomeExpired, corral.OutcomeExpired, corral.OutcomeIdle, corral.OutcomeFailed, corral.OutcomePreempted}
	ways := []Killed{"", "", ByWalltime, ByNode, ByDisappeared, ByPreemption}
	if kind != corral.PilotJob { // otherwise few sites would ever be ready
		outcomes = []corral.Outcome{corral.OutcomeDone, corral.OutcomeDone, corral.OutcomeDone, corral.OutcomeFailed}
		ways = append(ways, "", "", "", "", "", "")
	}
	killed := rapid.SampledFrom(ways).Draw(t, "killed")
	if killed != "" {
		return killed, nil
	}
	o := rapid.SampledFrom(outcomes).Draw(t, "outcome")
	return "", &Report{Outcome: o, Transient: o == corral.OutcomeFailed || o == corral.OutcomePreempted}
}
