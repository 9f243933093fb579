package store

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Some of the conditions below have partial indexes in the migrations. SQLite uses such an index only for a query
// that repeats the index's condition word for word.

// liveJob matches a job that may still have processes at its site. The index uses exactly this text.
const liveJob = "state <> 'ENDED'"

// attemptOver matches an attempt that has ended. The index uses exactly this text.
const attemptOver = "kind = 'pilot' and state = 'ENDED'"

// tells matches an ended attempt whose outcome is evidence about its site: see corral.Job.Tells.
const tells = "(outcome in ('expired', 'lost', 'preempted', 'idle')" +
	" or outcome = 'failed' and failure = '' and (transient or submitted_at_ms is not null))"

// siteJob matches a setup or cleanup job. The index uses exactly this text.
const siteJob = "kind <> 'pilot'"

// Jobs are submitted to sites: the attempts of glideins, of kind pilot, and the setup and cleanup jobs of sites. A
// job's tag is unique and its batch system reports it, so a job can be found again when its submission got no answer.
var jobs = table[corral.Job]{
	noun:  corral.ObjectJob,
	name:  "jobs",
	owner: "(select owner from sites where sites.id = jobs.site_id)",
	columns: func(j *corral.Job) []column {
		return []column{
			{"id", orNull(&j.ID)},
			{"kind", &j.Kind},
			{"site_id", &j.Site},
			{"glidein_id", orNull(&j.Glidein)},
			{"number", &j.Number},
			{"tag", &j.Tag},
			{"site_job_id", &j.SiteJobID},
			{"package_digest", &j.Package},
			{"state", &j.State},
			{"outcome", orNull(&j.Outcome)},
			{"transient", &j.Transient},
			{"failure", &j.Failure},
			{"exit_status", &j.ExitStatus},
			{"reason", &j.Reason},
			{"asked", &j.Asked},
			{"workers", &j.Workers},
			{"lost", asJSON(&j.Lost)},
			{"queue", &j.Queue},
			{"lease_holder", &j.LeaseHolder},
			{"session_digest", &j.Session},
			{"token_digest", &j.TokenDigest},
			{"token_ends_at_ms", at(&j.TokenEndsAt)},
			{"created_at_ms", at(&j.CreatedAt)},
			{"submitted_at_ms", at(&j.SubmittedAt)},
			{"started_at_ms", at(&j.StartedAt)},
			{"ended_at_ms", at(&j.EndedAt)},
			{"updated_at_ms", at(&j.UpdatedAt)},
		}
	},
	about: func(j corral.Job) []Subject {
		return []Subject{
			{corral.ObjectJob, int64(j.ID)},
			{corral.ObjectGlidein, int64(j.Glidein)},
			{corral.ObjectSite, int64(j.Site)},
		}
	},
}

// A JobFilter selects jobs; each field that is set narrows the selection. Jobs are never DELETED.
type JobFilter struct {
	Site    corral.SiteID
	Glidein corral.GlideinID
	Kind    corral.JobKind
	OfSite  bool // only the setup and cleanup jobs
	Live    bool // only those that are not ENDED
}

// CreateJob stores the intent to run j, before anything is sent to the site, and settles its glidein. It sets the ID,
// Number, State and times; Tag must be new, and TokenDigest and TokenEndsAt are stored as given.
// corral.Site.NewAttempt and NewSiteJob decide whether the site can take the job now.
func (t *Tx) CreateJob(j corral.Job) (corral.Job, error) {
	site, err := t.Site(j.Site)
	if err != nil {
		return corral.Job{}, err
	}
	if j, err = t.intend(site, j); err != nil {
		return corral.Job{}, err
	}
	if j, err = jobs.create(t, j, string(j.State)); err != nil {
		return corral.Job{}, err
	}
	return j, t.settleOwner(j)
}

// intend loads the data that the rule for a new job needs and applies the rule. An attempt needs its glidein and the
// site's number of attempts; a setup or cleanup job needs the earlier jobs of its kind.
func (t *Tx) intend(site corral.Site, j corral.Job) (corral.Job, error) {
	if j.Kind != corral.PilotJob {
		earlier, err := t.Jobs(JobFilter{Site: site.ID, Kind: j.Kind})
		if err != nil {
			return corral.Job{}, err
		}
		return site.NewSiteJob(earlier, j, t.now)
	}
	g, err := t.GlideinInBrief(j.Glidein)
	if err != nil {
		return corral.Job{}, err
	}
	load, err := t.Load(site.ID)
	if err != nil {
		return corral.Job{}, err
	}
	return site.NewAttempt(g, load, j, t.now)
}

// Load counts a site's live attempts.
func (t *Tx) Load(site corral.SiteID) (l corral.Load, err error) {
	err = t.row(`
		select
			count(*) filter (where state <> 'RUNNING'),
			count(*) filter (where state = 'RUNNING')
		from jobs
		where site_id = ? and kind = 'pilot' and `+liveJob, []any{site}, &l.Queued, &l.Running)
	return l, wrap.Errorf(err, "counting attempts of site %d", site)
}

// Job returns the job with this id.
func (t *Tx) Job(id corral.JobID) (corral.Job, error) {
	return jobs.one(t, id, "id = ?", id)
}

// JobTagged returns the job with this tag, by which a pilot or worker identifies itself.
func (t *Tx) JobTagged(tag string) (corral.Job, error) {
	return jobs.one(t, tag, "tag = ?", tag)
}

// Recorded reports whether a job or a probe of any owner has a tag. Owners may share an account at a site, so another
// owner's job there is not unknown.
func (t *Tx) Recorded(tag string) (yes bool, err error) {
	err = t.row(`
		select
			exists (select 1 from jobs where tag = ?1)
			or exists (select 1 from probes where tag = ?1)`, []any{tag}, &yes)
	return yes, wrap.Errorf(err, "looking for the job %s", tag)
}

// Jobs lists jobs.
func (t *Tx) Jobs(f JobFilter) ([]corral.Job, error) {
	var c conditions
	if f.Live {
		c.add(liveJob)
	}
	if f.Site != 0 {
		c.add("site_id = ?", f.Site)
	}
	if f.Glidein != 0 {
		c.add("glidein_id = ?", f.Glidein)
	}
	if f.Kind != "" {
		c.add("kind = ?", f.Kind)
	}
	if f.OfSite || f.Kind != "" && f.Kind != corral.PilotJob {
		c.add(siteJob)
	}
	return jobs.list(t, c)
}

// Told lists the last ended attempts whose outcomes are evidence about the site, newest first: as many as a
// corral.Hold considers. Attempts whose end is in the future, because the clock was set back, are left out.
func (t *Tx) Told(site corral.SiteID) ([]corral.Job, error) {
	c := conditions{order: "ended_at_ms desc, id desc", limit: corral.HoldHistory}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	c.add("ended_at_ms <= ?", at(&t.now))
	c.add(tells)
	return jobs.list(t, c)
}

// AttemptsOver lists at most limit of a site's ended attempts, newest first, after skipping the first skip.
func (t *Tx) AttemptsOver(site corral.SiteID, skip, limit int) ([]corral.Job, error) {
	c := conditions{order: "ended_at_ms desc", limit: skip + limit}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	recent, err := jobs.list(t, c)
	return recent[min(skip, len(recent)):], err
}

// AttemptsOverSince lists a site's ended attempts that were requested since the given time, in the order of their
// requests.
func (t *Tx) AttemptsOverSince(site corral.SiteID, since time.Time) ([]corral.Job, error) {
	c := conditions{order: "created_at_ms, id"}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	// An attempt never ends before it was requested, so the first condition only enables the index on end times.
	c.add("ended_at_ms >= ? and created_at_ms >= ?", at(&since), at(&since))
	return jobs.list(t, c)
}

// LoseHost records that a live attempt continues without one of its hosts: see corral.Job.LoseHost.
func (t *Tx) LoseHost(id corral.JobID, l corral.LostHost) (corral.Job, error) {
	return jobs.move(t, id, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		g, err := glideins.one(t, j.Glidein, "id = ?", j.Glidein)
		if err != nil {
			return j, nil, err
		}
		return j.LoseHost(l, g.Hosts, t.now)
	})
}

// MoveJob applies an event to a job and settles its glidein.
func (t *Tx) MoveJob(id corral.JobID, e corral.JobEvent) (corral.Job, error) {
	return t.changeJob(id, func(j corral.Job) (corral.Job, []corral.Entry, error) { return j.Apply(e, t.now) })
}

// AskJob records a request to drain or cancel a job: see corral.Job.Ask.
func (t *Tx) AskJob(id corral.JobID, ask corral.Ask, reason string) (corral.Job, error) {
	return t.changeJob(id, func(j corral.Job) (corral.Job, []corral.Entry, error) { return j.Ask(ask, reason, t.now) })
}

// LeaseJob gives an attempt's lease to holder, whose secret has the digest session: see corral.Job.Lease.
func (t *Tx) LeaseJob(id corral.JobID, holder, session string) (corral.Job, error) {
	return t.changeJob(id, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.Lease(holder, session, t.now)
	})
}

// changeJob changes a job by a rule and then settles its glidein in the same transaction: no reader ever sees a
// glidein that is inconsistent with its attempts.
func (t *Tx) changeJob(id corral.JobID, ask rule[corral.Job]) (corral.Job, error) {
	j, changed, err := jobs.change(t, id, ask)
	if err != nil || !changed {
		return j, err
	}
	return j, t.settleOwner(j)
}

// NoteWaits records why a job waits in its site's queue: see corral.Job.NoteWaits. It adds no history entry, because
// the reasons change all day.
func (t *Tx) NoteWaits(id corral.JobID, why string) (corral.Job, error) {
	j, err := t.Job(id)
	if err != nil {
		return corral.Job{}, err
	}
	j, changed := j.NoteWaits(why, t.now)
	if !changed {
		return j, nil
	}
	if err := jobs.update(t, j); err != nil {
		return corral.Job{}, err
	}
	return j, t.explainSite(j)
}

// NoteWorkers records that n workers of an attempt are registered: see corral.Job.NoteWorkers.
func (t *Tx) NoteWorkers(id corral.JobID, n int) (corral.Job, error) {
	return jobs.move(t, id, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.NoteWorkers(n, t.now)
	})
}

// settleOwner settles the glidein of the attempt j, or updates the site's explanation for any other job.
func (t *Tx) settleOwner(j corral.Job) error {
	if j.Kind != corral.PilotJob {
		return t.explainSite(j)
	}
	_, err := t.SettleGlidein(j.Glidein, corral.Lack{})
	return err
}

// explainSite updates the reason that j's site gives for waiting: see corral.Site.Explain. Users do not see setup and
// cleanup jobs, so the site reports their progress.
func (t *Tx) explainSite(j corral.Job) error {
	s, err := t.Site(j.Site)
	if err != nil {
		return err
	}
	s, changed := s.Explain(j, t.now)
	if !changed {
		return nil
	}
	return sites.update(t, s)
}
