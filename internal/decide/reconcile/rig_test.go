package reconcile

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// A rig runs one world in memory: it performs the decided actions as the engine would, while the test simulates the
// site.
type rig struct {
	tb interface {
		Helper()
		Fatalf(format string, args ...any)
	}
	World
	now         time.Time
	lastJob     corral.JobID
	lastGlidein corral.GlideinID
	jobs        map[string]corral.JobID
	embedded    corral.Cluster
}

// newRig returns a rig with a site that is NEW, at t0.
func newRig(tb interface {
	Helper()
	Fatalf(format string, args ...any)
}, site corral.Site) *rig {
	site.ID, site.State, site.CreatedAt, site.UpdatedAt = 1, corral.SiteNew, t0, t0
	if site.Name == "" {
		site.Name = "hpc"
	}
	return &rig{
		tb: tb, World: World{Site: site}, now: t0, jobs: map[string]corral.JobID{},
		embedded: corral.Cluster{ID: 1, Name: "default", Kind: corral.Embedded, State: corral.ClusterReady},
	}
}

// readyRig returns a rig with a site that is READY.
func readyRig(tb interface {
	Helper()
	Fatalf(format string, args ...any)
}, site corral.Site) *rig {
	r := newRig(tb, site)
	r.must(MoveSite{Move: corral.SiteStage})
	r.must(MoveSite{Move: corral.SiteStaged})
	return r
}

// apply makes a change now.
func (r *rig) apply(c Change) ([]corral.Entry, error) {
	switch named := c.(type) {
	case Submit:
		r.lastJob++
		named.ID, named.Tag = r.lastJob, fmt.Sprintf("job-%d", r.lastJob)
		entries, err := r.Apply(named, r.now)
		if err == nil {
			j := r.find(r.lastJob)
			r.jobs[calls(j)] = j.ID
		}
		return entries, err
	case CreateGlidein:
		r.lastGlidein++
		named.Glidein.ID, named.Cluster = r.lastGlidein, r.embedded
		return r.Apply(named, r.now)
	}
	return r.Apply(c, r.now)
}

// calls returns the name of a job in transcripts, such as setup.1, or 2.3 for the third attempt of glidein 2.
func calls(j corral.Job) string {
	if j.Kind == corral.PilotJob {
		return fmt.Sprintf("%d.%d", j.Glidein, j.Number)
	}
	return fmt.Sprintf("%s.%d", j.Kind, j.Number)
}

// must makes a change that the world must not refuse.
func (r *rig) must(c Change) []corral.Entry {
	r.tb.Helper()
	entries, err := r.apply(c)
	if err != nil {
		r.tb.Fatalf("%T%+v: %v", c, c, err)
	}
	return entries
}

// perform performs one action, without the site's answer. As in production, the site's answers to earlier actions may
// have changed the world.
func (r *rig) perform(a Action) []corral.Entry {
	r.tb.Helper()
	switch a := a.(type) {
	case Change:
		entries, err := r.apply(a)
		if kind := corral.KindOf(err); err != nil && kind != corral.Conflict && kind != corral.NotFound {
			r.tb.Fatalf("%T%+v: %v", a, a, err)
		}
		return entries
	case Renew:
		r.Tokens[a.Job.ID] = Token{Ends: r.now.Add(1000 * time.Hour), Since: r.now}
	case Sweep:
		return r.must(MoveSite{Move: corral.SiteUnstaged})
	}
	return nil // the site answers Resume
}

// sees makes the site report a job.
func (r *rig) sees(j corral.Job, s Sighting) (entries []corral.Entry) {
	r.tb.Helper()
	s.Overdue, s.Hopeless = r.Overdue(j)
	for _, e := range Events(j, s, r.now) {
		entries = append(entries, r.must(MoveJob{j.ID, e})...)
	}
	return entries
}

// find returns a job that is in the world.
func (r *rig) find(id corral.JobID) corral.Job {
	j, err := r.World.job(id)
	if err != nil {
		r.tb.Fatalf("%v", err)
	}
	return *j
}

// live returns all live jobs.
func (r *rig) live() []corral.Job {
	var live []corral.Job
	for j := range r.attempts() {
		live = append(live, *j)
	}
	for _, j := range r.Jobs {
		if j.Live() {
			live = append(live, j)
		}
	}
	return live
}
