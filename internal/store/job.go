package store

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// liveJob is true of a job that may still have processes at its site. The index names it in these very
// words.
const liveJob = "state <> 'ENDED'"

// attemptOver is true of an attempt that has ended. The index names it in these very words.
const attemptOver = "kind = 'pilot' and state = 'ENDED'"

// tells is true of an attempt that has ended and says something of its site: see corral.Job.Tells.
const tells = "(outcome in ('expired', 'lost', 'preempted', 'idle') or outcome = 'failed' and (transient or submitted_at_ms is not null))"

// siteJob is true of a setup or cleanup job. The index names it in these very words.
const siteJob = "kind <> 'pilot'"

var jobs = table[corral.Job]{
	noun: corral.ObjectJob,
	name: "jobs",
	columns: `
	id,
	kind,
	site_id,
	glidein_id,
	number,
	tag,
	site_job_id,
	package_digest,
	state,
	outcome,
	transient,
	exit_status,
	reason,
	asked,
	workers,
	lost,
	queue,
	lease_holder,
	token_digest,
	token_ends_at_ms,
	created_at_ms,
	submitted_at_ms,
	started_at_ms,
	ended_at_ms,
	updated_at_ms`,
	fields: func(j *corral.Job) []any {
		return []any{
			orNull(&j.ID),
			&j.Kind,
			&j.Site,
			orNull(&j.Glidein),
			&j.Number,
			&j.Tag,
			&j.SiteJobID,
			&j.Package,
			&j.State,
			orNull(&j.Outcome),
			&j.Transient,
			&j.ExitStatus,
			&j.Reason,
			&j.Asked,
			&j.Workers,
			asJSON(&j.Lost),
			&j.Queue,
			&j.LeaseHolder,
			&j.TokenDigest,
			at(&j.TokenEndsAt),
			at(&j.CreatedAt),
			at(&j.SubmittedAt),
			at(&j.StartedAt),
			at(&j.EndedAt),
			at(&j.UpdatedAt),
		}
	},
	about: func(j corral.Job) []Subject {
		return []Subject{{corral.ObjectJob, int64(j.ID)}, {corral.ObjectGlidein, int64(j.Glidein)}, {corral.ObjectSite, int64(j.Site)}}
	},
}

// A JobFilter selects jobs; every field that is set narrows the selection. Jobs are never DELETED.
type JobFilter struct {
	Site    corral.SiteID
	Glidein corral.GlideinID
	Kind    corral.JobKind
	Live    bool // only those that have not ENDED
}

// CreateJob stores the intent to run j, before its site is told, and settles its glidein. Its ID,
// Number, State and times are set here; Tag must be new, TokenDigest and TokenEndsAt are kept as given.
//
// A Conflict error if the site is DELETED, if its glidein was asked to go or is over (it may have
// happened since the caller decided), if the attempt would be one above a limit of the site, or if the site
// has a live setup or cleanup job already. The row is the reservation: it counts until the job has ENDED.
func (t *Tx) CreateJob(j corral.Job) (corral.Job, error) {
	site, err := t.Site(j.Site)
	if err != nil {
		return corral.Job{}, err
	}
	if j.Kind == corral.PilotJob {
		j.Queue, err = t.mayAttempt(site, j.Glidein)
	} else {
		err = t.mayServe(site, j.Kind)
	}
	if err != nil {
		return corral.Job{}, err
	}
	if j.Number, err = t.nextNumber(j); err != nil {
		return corral.Job{}, err
	}
	j.ID, j.State, j.CreatedAt, j.UpdatedAt = 0, corral.JobNew, t.now, t.now
	if j, err = jobs.create(t, j, string(j.State)); err != nil {
		return corral.Job{}, err
	}
	return j, t.settleOwner(j)
}

// nextNumber is the number of another job of the same kind for the same owner.
func (t *Tx) nextNumber(j corral.Job) (n int, err error) {
	where, args := "glidein_id = ?", []any{j.Glidein}
	if j.Kind != corral.PilotJob {
		where, args = siteJob+" and site_id = ? and kind = ?", []any{j.Site, j.Kind}
	}
	if err = t.row("select coalesce(max(number), 0) + 1 from jobs where "+where, args, &n); err != nil {
		return 0, fmt.Errorf("numbering a %s job: %w", j.Kind, err)
	}
	return n, nil
}

// mayServe returns a Conflict error if the site cannot have another setup or cleanup job now.
func (t *Tx) mayServe(site corral.Site, kind corral.JobKind) error {
	if site.State.Terminal() {
		return corral.Errorf(corral.Conflict, "site %s is %s", site.Name, site.State)
	}
	live, err := t.Jobs(JobFilter{Site: site.ID, Kind: kind, Live: true})
	if err != nil {
		return err
	}
	if len(live) > 0 {
		return corral.Errorf(corral.Conflict, "%s is still %s", live[0].Name(), live[0].State)
	}
	return nil
}

// mayAttempt returns the batch system's queue for another attempt of a glidein, or a Conflict error if it cannot have
// one now.
func (t *Tx) mayAttempt(site corral.Site, id corral.GlideinID) (queue string, err error) {
	g, err := glideins.one(t, id, "id = ?", id)
	if err != nil {
		return "", err
	}
	load, err := t.load(site.ID)
	if err != nil {
		return "", err
	}
	full := site.Full(load)
	switch {
	case site.State.Terminal():
		return "", corral.Errorf(corral.Conflict, "site %s is %s", site.Name, site.State)
	case g.Asked != corral.AskNothing:
		return "", corral.Errorf(corral.Conflict, "glidein %d was asked to %s", id, g.Asked)
	case g.State.Terminal():
		return "", corral.Errorf(corral.Conflict, "glidein %d is %s", id, g.State)
	case full != "":
		return "", corral.Errorf(corral.Conflict, "%s", full)
	}
	return cmp.Or(g.Queue, site.Queue), nil
}

// load counts the attempts of a site that are alive.
func (t *Tx) load(site corral.SiteID) (l corral.Load, err error) {
	err = t.row("select count(*) filter (where state <> 'RUNNING'), count(*) filter (where state = 'RUNNING') from jobs"+
		" where site_id = ? and kind = 'pilot' and "+liveJob, []any{site}, &l.Queued, &l.Running)
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
	if f.Kind != "" && f.Kind != corral.PilotJob {
		c.add(siteJob)
	}
	return jobs.list(t, c)
}

// Hold returns whether a site's circuit breaker keeps attempts from it. What has yet to end, by a clock that was set back
// since, says nothing.
func (t *Tx) Hold(site corral.SiteID) (corral.Hold, error) {
	c := conditions{order: "ended_at_ms desc", limit: corral.HoldHistory}
	c.add(attemptOver)
	c.add("site_id = ?", site)
	c.add("ended_at_ms <= ?", at(&t.now))
	c.add(tells)
	recent, err := jobs.list(t, c)
	return corral.NewHold(recent), err
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

// AttemptsOverSince lists a site's attempts that have ended since then.
func (t *Tx) AttemptsOverSince(site corral.SiteID, since time.Time) ([]corral.Job, error) {
	var c conditions
	c.add(attemptOver)
	c.add("site_id = ?", site)
	c.add("ended_at_ms >= ?", at(&since))
	return jobs.list(t, c)
}

// LoseHost records that a live attempt goes on without one of its hosts. What is known already may be said again.
func (t *Tx) LoseHost(id corral.JobID, l corral.LostHost) (corral.Job, error) {
	before, err := t.Job(id)
	if err != nil {
		return corral.Job{}, err
	}
	g, err := glideins.one(t, before.Glidein, "id = ?", before.Glidein)
	switch {
	case err != nil:
		return corral.Job{}, err
	case !before.Live():
		return before, corral.Errorf(corral.Conflict, "%s has ended: %s", before.Name(), before.Outcome)
	case l.Host < 0 || l.Host >= g.Hosts:
		return before, corral.Errorf(corral.Invalid, "%s has %d hosts, and none with number %d", before.Name(), g.Hosts, l.Host)
	}
	j := before.Lose(t.now, l)
	if len(j.Lost) == len(before.Lost) {
		return before, nil
	}
	j.UpdatedAt = t.after(j.UpdatedAt)
	if err := jobs.update(t, j); err != nil {
		return corral.Job{}, err
	}
	return j, t.Log(corral.ObjectJob, int64(id), "node failed", fmt.Sprintf("%s; %d of %d hosts are left", l, g.Hosts-len(j.Lost), g.Hosts))
}

// MoveJob applies an event to a job and settles its glidein. The event's time is what a site's clock
// said: it is moved to between the job's last event and Now if it lies outside, and is Now if zero.
func (t *Tx) MoveJob(id corral.JobID, e corral.JobEvent) (corral.Job, error) {
	before, err := t.Job(id)
	if err != nil {
		return corral.Job{}, err
	}
	e.At = t.within(before, e.At)
	j, err := before.Apply(e)
	if err != nil {
		return corral.Job{}, err
	}
	j.UpdatedAt = t.after(before.UpdatedAt)
	return j, t.saveJob(j, corral.Entry{Event: string(e.Move), From: string(before.State), Reason: e.Reason})
}

// within returns when an event that was reported for happened can have happened to j.
func (t *Tx) within(j corral.Job, happened time.Time) time.Time {
	now := t.after(j.UpdatedAt)
	if happened.IsZero() || happened.After(now) {
		return now
	}
	return latest(happened.UTC().Truncate(time.Millisecond), j.CreatedAt, j.SubmittedAt, j.StartedAt)
}

// AskJob records what is asked of a job. An ask only grows, as for AskGlidein; one that does not grow
// changes nothing, nor does any once the job has ENDED.
func (t *Tx) AskJob(id corral.JobID, ask corral.Ask, reason string) (corral.Job, error) {
	j, err := t.Job(id)
	if err != nil || !j.Live() || !grows(j.Asked, ask) {
		return j, err
	}
	j.Asked, j.UpdatedAt = ask, t.after(j.UpdatedAt)
	return j, t.saveJob(j, corral.Entry{Event: string(ask), From: string(j.State), Reason: reason})
}

// LeaseJob gives the attempt's lease to holder, the one pilot process that may start workers. The same
// holder may ask again. A Conflict error if another holds it, or if the job has ENDED: then another
// attempt may have taken its place.
func (t *Tx) LeaseJob(id corral.JobID, holder string) (corral.Job, error) {
	j, err := t.Job(id)
	switch {
	case err != nil:
		return corral.Job{}, err
	case !j.Live():
		return corral.Job{}, corral.Errorf(corral.Conflict, "%s has ended: %s", j.Name(), j.Outcome)
	case j.LeaseHolder == holder && holder != "":
		return j, nil
	case j.LeaseHolder != "":
		return corral.Job{}, corral.Errorf(corral.Conflict, "%s is leased to %s", j.Name(), j.LeaseHolder)
	case holder == "" || j.Kind != corral.PilotJob:
		return corral.Job{}, corral.Errorf(corral.Invalid, "%s cannot be leased to %q", j.Name(), holder)
	}
	j.LeaseHolder, j.UpdatedAt = holder, t.after(j.UpdatedAt)
	return j, t.saveJob(j, corral.Entry{Event: "lease", From: string(j.State), Reason: "by " + holder})
}

// NoteWaits records why a job waits in its site's queue. Its history has no line of it: the reasons change all day. One
// that does not wait, or was asked to go, keeps the reason that it has.
func (t *Tx) NoteWaits(id corral.JobID, why string) (corral.Job, error) {
	j, err := t.Job(id)
	if err != nil || j.State != corral.JobQueued || j.Asked != corral.AskNothing || j.Reason == why {
		return j, err
	}
	j.Reason, j.UpdatedAt = why, t.after(j.UpdatedAt)
	if err := jobs.update(t, j); err != nil {
		return corral.Job{}, err
	}
	return j, t.explainSite(j)
}

// NoteWorkers records that n workers of an attempt are registered; the most at once is kept. Only pilot
// jobs have workers: for others it is an Invalid error.
func (t *Tx) NoteWorkers(id corral.JobID, n int) (corral.Job, error) {
	j, err := t.Job(id)
	if err != nil || n <= j.Workers {
		return j, err
	}
	if j.Kind != corral.PilotJob {
		return corral.Job{}, corral.Errorf(corral.Invalid, "%s has no workers", j.Name())
	}
	j.Workers, j.UpdatedAt = n, t.after(j.UpdatedAt)
	if err := jobs.update(t, j); err != nil {
		return corral.Job{}, err
	}
	return j, t.Log(corral.ObjectJob, int64(id), "workers", fmt.Sprintf("%d registered", n))
}

// saveJob stores j with its line of history, whose event and former state are in e, and settles its
// glidein.
func (t *Tx) saveJob(j corral.Job, e corral.Entry) error {
	if err := jobs.update(t, j); err != nil {
		return err
	}
	e.Object, e.Of, e.To = corral.ObjectJob, int64(j.ID), string(j.State)
	if err := t.record(e); err != nil {
		return err
	}
	return t.settleOwner(j)
}

// settleOwner settles the glidein that j is an attempt of, or has its site say what becomes of j.
func (t *Tx) settleOwner(j corral.Job) error {
	if j.Kind != corral.PilotJob {
		return t.explainSite(j)
	}
	_, err := t.SettleGlidein(j.Glidein, corral.Lack{})
	return err
}
