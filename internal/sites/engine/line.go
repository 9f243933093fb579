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
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// commandsAStep is how many commands a step runs at a site at most, however many jobs are there; what is left is
	// done in the next steps. Setting up a site, and cleaning it up, is not counted: it happens once.
	commandsAStep = 3

	// manyAtOnce is how many jobs are read, cancelled or forgotten with one command.
	manyAtOnce = 100
)

// A line is what all parts of a loop share: the way to the site, how much of it a step may still use, and the way to
// the store. It counts what the step does, from which the loop takes when the next one is due.
type line struct {
	lg    *slog.Logger
	db    store.Owner // the site's
	reach *siteaccess.Reach
	id    corral.SiteID

	access gridsite.Access // without Head while closed
	pace   pace

	// Of the present step:
	commands int  // that were run at the site
	more     bool // is to be done than the step has commands for
	recorded bool // something was, so that more may be due at once
	polled   bool // the live jobs were
}

// begin begins a step.
func (l *line) begin() { l.commands, l.more, l.recorded, l.polled = 0, false, false, false }

// take takes one of the step's commands. The bound keeps a site with hundreds of jobs from being pressed, and a step
// from taking minutes, in which nothing else would be seen. It returns false if none is left: whoever wanted it is
// served in a later step.
func (l *line) take() bool {
	if l.commands >= commandsAStep {
		l.more = true
		return false
	}
	l.commands++
	return true
}

// some returns as many of the jobs as one command takes; the rest is for a later step.
func (l *line) some(jobs []corral.Job) []corral.Job {
	if len(jobs) > manyAtOnce {
		l.more = true
		return jobs[:manyAtOnce]
	}
	return jobs
}

// open reaches the site unless that is done.
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

// close ends what open began. The connection, which others use too, stays. It is closed after each trouble, so that the
// next step begins with a look at what is there.
func (l *line) close() {
	if l.access.Head != nil {
		_ = l.access.Head.Close() // nothing was left to be written
		l.access = gridsite.Access{}
	}
}

// How long a site may take to answer a question about its jobs. A file system or a batch system that hangs gives no
// answer at all: after slowAfter people are told, after answerTime the question is given up.
const (
	slowAfter  = 20 * time.Second
	answerTime = 2 * time.Minute
)

// asking gives the site answerTime for one question, and has people told, by the site's trouble, if it takes more than
// slowAfter. The caller calls done once it has the answer. A command of which we do not know how long it may take, such
// as one that brings a package, is not asked in this way.
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
			l.lg.Error("the trouble of a site is not recorded", "site", l.id, "err", err)
		}
	})
	return limited, func() {
		if !slow.Stop() {
			<-told // the step's own words about the site come after it
		}
		cancel()
	}
}

// read returns a file of the job's directory, nil if there is none.
func (l *line) read(ctx context.Context, job corral.Job, name string) ([]byte, error) {
	ctx, done := l.asking(ctx, "reading a file of "+job.Name())
	defer done()
	b, err := l.access.Batch(job.Kind).Read(ctx, job.Tag, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", name, job.Tag, err)
	}
	return b, nil
}

// stopwatch is the only clock of the parts. It returns a function that says how long ago stopwatch was called. It
// measures what a site takes; what is decided goes by the time of the step.
func (l *line) stopwatch() (took func() time.Duration) {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// acting logs what is done. What is asked of a job goes into the log when it is recorded, not each time.
func (l *line) acting(site corral.Site, a reconcile.Action) {
	l.lg.Info("acting", "site", site.Name, "action", fmt.Sprintf("%T", a), "why", a.Why())
}

// write changes the store as corrald. That something was recorded makes the next step come soon: it may be what the
// next decision waits for.
func (l *line) write(ctx context.Context, fn func(*store.Tx) error) error {
	err := l.db.Write(ctx, store.Actor, fn)
	l.recorded = l.recorded || err == nil
	return err
}

func (l *line) moveSite(ctx context.Context, move corral.SiteMove, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error { return store.Done(tx.MoveSite(l.id, move, reason)) })
}

// noteJob writes a line into a job's history.
func (l *line) noteJob(ctx context.Context, job corral.Job, event, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error { return tx.Log(corral.ObjectJob, int64(job.ID), event, reason) })
}

// ask records what a job is asked, if it was not before; it is polled soon then.
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

// find returns the glidein with an id, nil if it is none of them.
func find(glideins []corral.Glidein, id corral.GlideinID) *corral.Glidein {
	for i := range glideins {
		if glideins[i].ID == id {
			return &glideins[i]
		}
	}
	return nil
}
