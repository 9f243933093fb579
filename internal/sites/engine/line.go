package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// commandsAStep is the maximum number of commands that a step runs at a site, regardless of the number of jobs;
	// the rest is done in later steps. Setting up and cleaning up a site are not counted, because they happen once.
	commandsAStep = 3

	// manyAtOnce is the number of jobs that one command can read, cancel or forget.
	manyAtOnce = 100
)

// A line is shared by all parts of a loop: the connection to the site, the step's remaining budget, and access to the
// store. It tracks the actions of a step, which determine when the next step is due.
type line struct {
	lg    *slog.Logger
	db    store.Owner // of the site's owner
	reach *siteaccess.Reach
	id    corral.SiteID

	access gridsite.Access // without a Head while closed
	pace   pace

	// In the present step:
	commands int  // number of commands run at the site
	more     bool // more work is left than the step has commands for
	recorded bool // something was recorded, so more may be due at once
	polled   bool // the live jobs were polled
}

// begin starts a step.
func (l *line) begin() { l.commands, l.more, l.recorded, l.polled = 0, false, false, false }

// take takes one of the step's commands. The limit protects a site with hundreds of jobs from overload, and keeps a
// step from taking minutes, during which nothing else would be observed. It returns false if no command is left; the
// caller is then served in a later step.
func (l *line) take() bool {
	if l.commands >= commandsAStep {
		l.more = true
		return false
	}
	l.commands++
	return true
}

// some returns as many of the jobs as one command accepts; the rest are left for a later step.
func (l *line) some(jobs []corral.Job) []corral.Job {
	if len(jobs) > manyAtOnce {
		l.more = true
		return jobs[:manyAtOnce]
	}
	return jobs
}

// open connects to the site unless it is already connected.
func (l *line) open(ctx context.Context, site corral.Site) error {
	if l.access.Head != nil {
		return nil
	}
	access, err := l.reach.Open(ctx, site)
	if err == nil {
		l.access = access
	}
	return err
}

// close closes the access that open created. The connection, which others share, stays open. close is called after each
// trouble, so that the next step begins by checking the connection.
func (l *line) close() {
	if l.access.Head != nil {
		_ = l.access.Head.Close() // there was nothing left to write
		l.access = gridsite.Access{}
	}
}

// Time limits for a site's answer to a question about its jobs. A file system or a batch system that hangs gives no
// answer: after slowAfter the trouble is recorded for people, and after answerTime the question is abandoned.
const (
	slowAfter  = 20 * time.Second
	answerTime = 2 * time.Minute
)

// asking limits the time for one question to answerTime, and records a trouble of the site if the answer takes more
// than slowAfter. The caller calls done once it has the answer. Commands of unknown duration, such as those that copy a
// package, do not use it.
func (l *line) asking(ctx context.Context, what string) (limited context.Context, done func()) {
	silent := func(d time.Duration) error {
		return corral.Errorf(corral.Unavailable, "the site has given no answer for %s (%s)", d, what)
	}
	limited, cancel := context.WithTimeoutCause(ctx, answerTime, silent(answerTime))
	told := make(chan struct{})
	slow := time.AfterFunc(slowAfter, func() {
		defer close(told)
		l.lg.Warn("site is slow", "site", l.id, "what", what)
		err := l.db.Write(ctx, store.Actor, func(tx *store.Tx) error { return tellSlow(tx, l.id, silent(slowAfter)) })
		if err != nil && ctx.Err() == nil {
			l.lg.Error("a site's trouble could not be recorded", "site", l.id, "err", err)
		}
	})
	return limited, func() {
		if !slow.Stop() {
			<-told // the step's own report about the site follows it
		}
		cancel()
	}
}

// read returns a file in the job's directory, or nil if there is none.
func (l *line) read(ctx context.Context, job corral.Job, name string) ([]byte, error) {
	ctx, done := l.asking(ctx, "reading a file of "+job.Name())
	defer done()
	b, err := l.access.Batch(job.Kind).Read(ctx, job.Tag, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, wrap.Errorf(err, "reading %s of %s", name, job.Tag)
}

// stopwatch is the only clock of the parts. It returns a function that returns the time since stopwatch was called.
// It measures how long a site takes; decisions use the time of the step.
func (l *line) stopwatch() (took func() time.Duration) {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// acting logs an action. Requests to a job are logged when they are recorded, not at each repetition.
func (l *line) acting(site corral.Site, a reconcile.Action) {
	l.lg.Info("acting", "site", site.Name, "action", fmt.Sprintf("%T", a), "why", a.Why())
}

// write changes the store as corrald. After a record the next step follows soon, because the next decision may depend
// on it.
func (l *line) write(ctx context.Context, fn func(*store.Tx) error) error {
	err := l.db.Write(ctx, store.Actor, fn)
	l.recorded = l.recorded || err == nil
	return err
}

func (l *line) moveSite(ctx context.Context, move corral.SiteMove, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error { return store.Done(tx.MoveSite(l.id, move, reason)) })
}

// noteJob adds an entry to a job's history.
func (l *line) noteJob(ctx context.Context, job corral.Job, event, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error { return tx.Log(corral.ObjectJob, int64(job.ID), event, reason) })
}

// ask records a request to a job unless it was recorded before; the job is then polled soon.
func (l *line) ask(ctx context.Context, w turn, job corral.Job, ask corral.Ask, a reconcile.Action) error {
	if job.Asked == ask {
		return nil
	}
	l.acting(w.Site, a)
	l.pace.busy(w.now)
	return l.write(ctx, func(tx *store.Tx) error { return store.Done(tx.AskJob(job.ID, ask, a.Why())) })
}

// tagsOf lists the tags of jobs.
func tagsOf(jobs []corral.Job) []string {
	tags := make([]string, len(jobs))
	for i, j := range jobs {
		tags[i] = j.Tag
	}
	return tags
}

// find returns the glidein with an id, or nil if there is none.
func find(glideins []corral.Glidein, id corral.GlideinID) *corral.Glidein {
	for i := range glideins {
		if glideins[i].ID == id {
			return &glideins[i]
		}
	}
	return nil
}
