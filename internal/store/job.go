package store

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// Conditions that are written out below have partial indexes in the migrations, which SQLite uses only for a query that
// repeats them word by word.

// liveJob is true of a job that may still have processes at its site. The index names it in these very
// words.
const liveJob = "state <> 'ENDED'"

// attemptOver is true of an attempt that has ended. The index names it in these very words.
const attemptOver = "kind = 'pilot' and state = 'ENDED'"

// tells is true of an attempt that has ended and says something of its site: see corral.Job.Tells.
const tells = "(outcome in ('expired', 'lost', 'preempted', 'idle')" +
	" or outcome = 'failed' and failure = '' and (transient or submitted_at_ms is not null))"

// siteJob is true of a setup or cleanup job. The index names it in these very words.
const siteJob = "kind <> 'pilot'"

// Jobs are what is submitted to sites: the attempts of glideins, of kind pilot, and the setup and cleanup jobs of
// sites. A job's tag is unique and is shown back by its batch system, so that a job whose submission got no answer is
// found again.
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

// A JobFilter selects jobs; every field that is set narrows the selection. Jobs are never DELETED.
type JobFilter struct {
	Site    corral.SiteID
	Glidein corral.GlideinID
	Kind    corral.JobKind
	OfSite  bool // only the setup and cleanup jobs
	Live    bool // only those that have not ENDED
}

// CreateJob stores the intent to run j, before its site is told, and settles its glidein. Its ID, Number, State and
// times are set here; Tag must be new, TokenDigest and TokenEndsAt are kept as given. Whether the site can have it
// now is for corral.Site.NewAttempt and NewSiteJob to say.
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

// intend loads what the rule for another job wants to know, and asks it: for an attempt its glidein and how many
// attempts the site has, for a setup or cleanup job the earlier ones of its kind.
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

// Load counts the attempts of a site that are alive.
func (t *Tx) Load(site corral.SiteID) (l corral.Load, err error) {
	err = t.row(`
		select
			count(*) filter (where state <> 'RUNNING'),
			count(*) filter (where state = 'RUNNING')
		from jobs
		where site_id = ? and kind = 'pilot' and `+liveJob, []any{site}, &l.Queued, &l.Running)
	if err != nil {
		return l, fmt.Errorf("counting attempts of site %d: %w", site, err)
	}
	return l, nil
}

// Job returns the job with this id.
func (t *Tx) Job(id corral.JobID) (corral.Job, error) {
	return jobs.one(t, id, "id = ?", id)
}

// JobTagged returns the job with this tag: what a pilot or worker calls itself by.
func (t *Tx) JobTagged(tag string) (corral.Job, error) {
	return jobs.one(t, tag, "tag = ?", tag)
}

// Recorded reports whether a job or a probe of any owner has a tag. Accounts at sites may be shared: what is another
// owner's is no stranger there.
func (t *Tx) Recorded(tag string) (yes bool, err error) {
	err = t.row(`
		select
			exists (select 1 from jobs where tag = ?1)
			or exists (select 1 from probes where tag = ?1)`, []any{tag}, &yes)
	if err != nil {
		return false, fmt.Errorf("looking for the job %s: %w", tag, err)
	}
	return yes, nil
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

// Told lists the last attempts of a site that have ended and tell something of it, the last to end first: as many as a
// corral.Hold looks at. What has yet to end, by a clock that was set back since, says nothing.
func (t *Tx) Told(site corral.SiteID) ([]corral.Job, error) {
	c := conditions{order: "ended_at_ms desc, id desc", limit: corral.HoldHistory}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	c.add("ended_at_ms <= ?", at(&t.now))
	c.add(tells)
	return jobs.list(t, c)
}

// AttemptsOver lists at most limit of a site's attempts that have ended, the last to end first, without
// the first skip.
func (t *Tx) AttemptsOver(site corral.SiteID, skip, limit int) ([]corral.Job, error) {
	c := conditions{order: "ended_at_ms desc", limit: skip + limit}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	recent, err := jobs.list(t, c)
	return recent[min(skip, len(recent)):], err
}

// AttemptsOverSince lists a site's attempts that were asked for since then, and have ended, in the order of their
// requests.
func (t *Tx) AttemptsOverSince(site corral.SiteID, since time.Time) ([]corral.Job, error) {
	c := conditions{order: "created_at_ms, id"}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	// An attempt ends no earlier than it was asked for, so the first condition only lets the index of ends be used.
	c.add("ended_at_ms >= ? and created_at_ms >= ?", at(&since), at(&since))
	return jobs.list(t, c)
}

// LoseHost records that a live attempt goes on without one of its hosts: see corral.Job.LoseHost.
func (t *Tx) LoseHost(id corral.JobID, l corral.LostHost) (corral.Job, error) {
	j, _, err := jobs.change(t, id, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		g, err := glideins.one(t, j.Glidein, "id = ?", j.Glidein)
		if err != nil {
			return j, nil, err
		}
		return j.LoseHost(l, g.Hosts, t.now)
	})
	return j, err
}

// MoveJob applies an event to a job and settles its glidein.
func (t *Tx) MoveJob(id corral.JobID, e corral.JobEvent) (corral.Job, error) {
	return t.changeJob(id, func(j corral.Job) (corral.Job, []corral.Entry, error) { return j.Apply(e, t.now) })
}

// AskJob records what is asked of a job: see corral.Job.Ask.
func (t *Tx) AskJob(id corral.JobID, ask corral.Ask, reason string) (corral.Job, error) {
	return t.changeJob(id, func(j corral.Job) (corral.Job, []corral.Entry, error) { return j.Ask(ask, reason, t.now) })
}

// LeaseJob gives an attempt's lease to holder, whose secret has the digest session: see corral.Job.Lease.
func (t *Tx) LeaseJob(id corral.JobID, holder, session string) (corral.Job, error) {
	return t.changeJob(id, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.Lease(holder, session, t.now)
	})
}

// changeJob changes a job by a rule, and settles its glidein after that, in the same transaction: no reader ever sees a
// glidein that does not fit its attempts.
func (t *Tx) changeJob(id corral.JobID, ask rule[corral.Job]) (corral.Job, error) {
	j, changed, err := jobs.change(t, id, ask)
	if err != nil || !changed {
		return j, err
	}
	return j, t.settleOwner(j)
}

// NoteWaits records why a job waits in its site's queue: see corral.Job.NoteWaits. Its history has no line of it,
// because the reasons change all day.
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
	j, _, err := jobs.change(t, id, func(j corral.Job) (corral.Job, []corral.Entry, error) {
		return j.NoteWorkers(n, t.now)
	})
	return j, err
}

// settleOwner settles the glidein that j is an attempt of, or has its site say what becomes of j.
func (t *Tx) settleOwner(j corral.Job) error {
	if j.Kind != corral.PilotJob {
		return t.explainSite(j)
	}
	_, err := t.SettleGlidein(j.Glidein, corral.Lack{})
	return err
}

// explainSite has j's site say why it waits: see corral.Site.Explain. A setup or cleanup job is nothing that users see;
// what becomes of it is the site's to tell.
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
