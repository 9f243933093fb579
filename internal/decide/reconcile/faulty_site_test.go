package reconcile

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

// A faultySite is a made-up site behind a bad line: its queue, its directories, and its clock. It knows what is true;
// corrald has only what its answers say.
type faultySite struct {
	clock     time.Time // goes on steadily, whatever corrald's does
	silent    time.Time // until then nothing is answered
	installed bool      // something is below its root
	linked    bool      // its pilots reach corrald, which gives out the leases; else directories do
	jobs      []*theirJob
	leased    map[string]int // :: tag → the site's job that took the attempt's lease
	flown     []flight       // submissions whose answer nobody waits for any more
}

// A theirJob is one that has arrived at the site.
type theirJob struct {
	id       int // the site's own
	of       corral.Job
	walltime time.Duration
	arrived  time.Time
	hidden   time.Duration // after its arrival; with the age of an answer less than Visibility
	started  time.Time
	ended    time.Time
	deaf     bool // it does not end when it is asked to: a process hangs, say
	vanished bool // the batch system has forgotten it, and its processes are gone
	killed   Killed
	report   *Report
	works    bool // its pilot has the lease, and has started workers

	// stray says why corrald could not know of it when it gave the job up or submitted it again. Of its pilot only the
	// lease is left to see to it that it does no harm.
	stray string
}

// A flight is a submission on a slow way to the site.
type flight struct {
	of     corral.Job
	arrive time.Time
}

func (j *theirJob) live() bool { return j.ended.IsZero() }

func (j *theirJob) String() string { return fmt.Sprintf("%s (the site's job %d)", calls(j.of), j.id) }

// GoString is how rapid shows it in a list of steps.
func (j *theirJob) GoString() string { return j.String() }

// arrive puts a job into the queue.
func (s *faultySite) arrive(of corral.Job, hidden time.Duration, stray string) *theirJob {
	j := &theirJob{id: len(s.jobs) + 1, of: of, walltime: time.Hour, arrived: s.clock, hidden: hidden, stray: stray}
	s.jobs = append(s.jobs, j)
	return j
}

// end ends a job, by its own report or by somebody else's hand.
func (s *faultySite) end(j *theirJob, killed Killed, report *Report) {
	j.ended, j.killed, j.report, j.works = s.clock, killed, report, false
}

// live lists the jobs that the site really has.
func (s *faultySite) live(which func(*theirJob) bool) (live []*theirJob) {
	for _, j := range s.jobs {
		if j.live() && (which == nil || which(j)) {
			live = append(live, j)
		}
	}
	return live
}

// poll says what the batch system knew of a tag so long ago: of the one job that counts, which works, or else was there
// first; and the further ones that have not ended.
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

// seen is what the batch system said of a job at some time.
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

// cancel ends all jobs under a tag that listen.
func (s *faultySite) cancel(tag string) {
	for _, j := range s.live(func(j *theirJob) bool { return j.of.Tag == tag && !j.deaf }) {
		s.end(j, ByCancel, nil)
	}
}

// pass lets time go by: submissions that are on their way arrive, and walltimes end.
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

// start starts a job of the queue. A pilot takes its lease, from corrald or by a directory, before it starts workers,
// and one that does not get it leaves at once.
func (f *faulty) start(j *theirJob) {
	s := f.site
	j.started = s.clock
	if j.of.Kind != corral.PilotJob {
		return
	}
	if s.leases(f.rig, j) {
		j.works = true
		_, _ = f.apply(NoteWorkers{j.of.ID, 1}) // corrald may know the attempt no more
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

// someEnd draws how a job ends, by itself or by what befalls it.
func someEnd(t *rapid.T, kind corral.JobKind) (Killed, *Report) {
	outcomes := []corral.Outcome{corral.OutcomeExpired, corral.OutcomeExpired, corral.OutcomeIdle, corral.OutcomeFailed, corral.OutcomePreempted}
	ways := []Killed{"", "", ByWalltime, ByNode, ByDisappeared, ByPreemption}
	if kind != corral.PilotJob { // else few sites would ever be ready
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
