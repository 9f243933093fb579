package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// A driver drives one run. All its fields except the channels belong to the goroutine of drive.
//
// Its goroutine alternates step and wait. A step does everything that can be done at one time: it applies the cluster's
// reports, requests the cluster's offer once a second, releases tasks, and saves progress. Then the driver waits for
// mail, for a request, or for the next time at which something is due; an error is retried at the next look. Data that
// must not be lost is in the journal before a step sees it, so a driver may be killed at any time.
type driver struct {
	lg       *slog.Logger
	clusters Clusters
	progress *progress

	prepared   *plan // nil: read it from the run's directory
	state      *state
	sink       *sink
	scripts    *scripter
	queue      Dispatcher      // nil: the run is not yet attached
	noQueue    string          // why queue is nil
	cancelling bool            // the queue has been told to cancel the jobs
	rescued    string          // the mention of a rescue file in the reason for the run's end
	watch      execution.Watch // the cluster's offer, and the stall clock

	asks   chan func(*driver) // functions for the goroutine to call, once it has applied all mail
	cancel chan struct{}      // holds a token once the row is CANCELLING
	gone   chan struct{}      // closed when the driver has ended and the manager has removed it
}

// drive drives the run until it is over or ctx ends. If ctx ends, everything remains unchanged for the next start.
func (d *driver) drive(ctx context.Context) {
	d.progress.reread(ctx) // it may have been cancelled before this driver existed
	if err := d.open(ctx); err != nil {
		if ctx.Err() == nil {
			d.progress.abandon(ctx, err)
		}
		return
	}
	for over := false; !over && ctx.Err() == nil; {
		now := time.Now()
		if over = d.step(ctx, now); over {
			d.detach()
		} else {
			d.wait(ctx, now)
		}
	}
	d.scripts.stop()
	if err := d.sink.journal.close(); err != nil {
		d.lg.Warn("closing the run's journal", "error", err)
	}
}

// open restores the run's state. The first look attaches the queue, because a cluster may not have one yet.
func (d *driver) open(ctx context.Context) error {
	row := d.progress.row
	if err := transfer.Sweep(row.Dir); err != nil {
		d.lg.Warn("removing parcels of an earlier corrald", "error", err)
	}
	state, journal, err := openState(ctx, d.lg, row, d.prepared, time.Now())
	if err != nil {
		return err
	}
	d.state, d.sink = state, newSink(d.lg, journal)
	d.scripts = newScripter(ctx, state.plan, d.sink)
	d.progress.tab.heard = execution.LastRecord(state.x)
	d.watch.Patience = time.Duration(row.Options.Stall)
	if state.plan.grown != nil && !execution.Takes(state.x) {
		d.progress.notes.close(row.ID)
	}
	return nil
}

// detach detaches the run from the cluster. It is only for a run that is over, because it ends the run's tasks on
// workers. When corrald stops, tasks continue; the closed journal refuses their results until the next start.
func (d *driver) detach() {
	if d.queue != nil {
		d.queue.Detach(d.progress.row.ID)
	}
}

// step does everything that is due at now and reports whether the run is over.
func (d *driver) step(ctx context.Context, now time.Time) (over bool) {
	d.read()
	looked := d.watch.Due(now)
	if looked {
		d.look(ctx, now)
	}
	lost := ""
	if looked || d.state.x.Done() {
		lost = d.state.plan.gone()
	}
	switch {
	case d.progress.row.State == corral.RunCancelling:
		over = d.stepCancelling(ctx)
	case lost != "":
		over = d.end(ctx, corral.RunFail, lost)
	case d.state.x.Done():
		over = d.finish(ctx)
	default:
		d.submit(now)
		d.scripts.start(d.state.x, now)
		if looked || execution.Resized(d.state.x) {
			d.split()
		}
		if looked {
			d.judge(now)
			d.state.dropSpent(now)
		}
		over = d.watch.Stalled(now) && d.end(ctx, corral.RunStall, d.watch.Shortage)
	}
	if !over {
		d.progress.save(ctx, now, d.state.x.Counts(), d.watch.Shortage)
		d.progress.account(ctx, now, d.state.x)
	}
	return over
}

// read applies the cluster's reports and the ends of scripts.
func (d *driver) read() {
	mail := d.sink.mail.empty()
	for _, rec := range mail {
		over := d.state.apply(rec)
		d.kill() // before the sink forgets jobs that the cluster may still assign
		d.sink.over(over)
		if rec.Assigned != nil {
			d.watch.Move()
		}
		d.scripts.read(d.state.x, rec.Script)
	}
	if len(mail) > 0 {
		d.state.waits.look(d.state.x)
	}
}

// kill cancels jobs that are no longer wanted. Before the run is attached, they remain pending.
func (d *driver) kill() {
	if d.queue == nil {
		return
	}
	if jobs := execution.Kills(d.state.x); len(jobs) > 0 {
		d.queue.Cancel(d.progress.row.ID, jobs...)
	}
}

// look requests the cluster's offer, attaches the run if necessary, and records news. News that the journal refuses is
// applied nevertheless, because it will be found again after a restart. If the request fails, the last offer remains
// valid.
func (d *driver) look(ctx context.Context, now time.Time) {
	d.watch.Look(now)
	d.attach()
	offer, err := d.clusters.Offer(ctx, d.progress.row.Cluster)
	if err != nil && corral.KindOf(err) != corral.NotFound { // a removed cluster offers nothing
		d.lg.Warn("requesting the cluster's offer", "error", err)
		return
	}
	d.watch.Offer = offer
	news := d.state.x.News(now, offer)
	if len(news) == 0 {
		return
	}
	if err := d.sink.journal.append(news...); err != nil {
		d.lg.Warn("recording the cluster's offer in the journal", "error", err)
	}
	for _, rec := range news {
		d.state.apply(rec)
	}
}

// attach attaches the run to the cluster's queue and reports to it the jobs that may have been running since before a
// restart. A cluster that is not ready does not have a queue; the reason is shown as the run's shortage, and the next
// look tries again.
func (d *driver) attach() {
	if d.queue != nil {
		return
	}
	id := d.progress.row.ID
	queue, err := d.clusters.Queue(d.progress.row.Cluster, d.progress.row.Options)
	if err != nil {
		d.noQueue = fmt.Sprintf("no task can be queued: %v", err)
		return
	}
	d.queue = queue
	queue.Attach(id, d.sink)
	for worker, jobs := range d.state.x.Expected() {
		d.sink.released(jobs)
		queue.Expect(id, worker, d.state.plan.complete(jobs))
	}
	d.kill()
}

// submit submits ready jobs to the cluster. The sink must know the jobs first, because the cluster may assign one
// before Submit returns. A workflow may have 100,000 tasks that are ready at once: they are completed and submitted in
// parts, so that the first ones start while the others are still being prepared.
func (d *driver) submit(now time.Time) {
	if d.queue == nil {
		return
	}
	jobs := d.state.x.Release(now, d.watch.Offer)
	d.sink.released(jobs)
	for len(jobs) > 0 {
		n := min(len(jobs), execution.SubmitSize)
		d.queue.Submit(d.state.plan.complete(jobs[:n]))
		jobs = jobs[n:]
	}
}

// split takes back waiting jobs that are to be released again: in smaller jobs, because no worker has enough time for
// all of their tasks any more, or with more memory, because other tasks of their kind were killed.
func (d *driver) split() {
	if seqs, _ := execution.Misfits(d.state.x, d.watch.Offer); len(seqs) > 0 && d.queue != nil {
		d.queue.Withdraw(d.progress.row.ID, seqs)
	}
}

// wait sleeps until something may be due. It answers requests in the goroutine that owns the state, and only after
// reading all mail: a request made after the end of a task must see that end.
func (d *driver) wait(ctx context.Context, now time.Time) {
	select {
	case <-ctx.Done():
	case <-time.After(d.next().Sub(now)):
	case <-d.sink.mail.filled:
	case ask := <-d.asks:
		d.read()
		ask(d)
	case <-d.cancel:
		d.progress.cancelled(ctx)
	}
}

// next returns the earliest time at which something is due.
func (d *driver) next() time.Time {
	next := d.watch.Next()
	if d.progress.unsaved(d.state.x.Counts(), d.watch.Shortage) {
		next = earlier(next, d.progress.saveAt)
	}
	if d.progress.row.State != corral.RunRunning || d.queue == nil {
		return next // jobs are not released
	}
	if at, ok := d.state.x.Next(); ok {
		next = earlier(next, at)
	}
	return next
}

// earlier returns the first of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// judge compares the submitted jobs with the cluster's offer, and notes the expected end of the run. Without a writable
// journal the run cannot continue, whatever the offer.
func (d *driver) judge(now time.Time) {
	short := execution.Shortage{What: d.noQueue}
	if err := d.sink.journal.check(now); err != nil {
		short.What = err.Error()
	} else if d.queue != nil {
		short = d.state.x.Shortage(d.watch.Offer)
	}
	d.watch.Judge(now, short)
	var end time.Time
	if execution.Takes(d.state.x) {
		d.watch.Move() // an open run may wait for workers, as for tasks
	} else if short.What == "" {
		end, _ = d.state.x.Ends(now, d.watch.Offer.CPUs)
	}
	d.progress.notes.expect(d.progress.row.ID, end)
}

// stepCancelling cancels the run's jobs and ends the run when none is left.
func (d *driver) stepCancelling(ctx context.Context) (over bool) {
	d.watch.Move() // no more jobs are released, so the run cannot stall
	d.scripts.stop()
	if d.queue != nil && !d.cancelling {
		d.cancelling = true
		d.queue.Cancel(d.progress.row.ID)
	}
	if d.queue != nil && d.state.x.Jobs() > 0 {
		return false
	}
	if execution.Takes(d.state.x) { // a cancelled run is closed, and remains so if it is resumed
		if _, err := d.close(); err != nil {
			d.lg.Warn("closing a cancelled run", "error", err)
		}
	}
	return d.end(ctx, corral.RunCancelEnd, d.progress.row.Reason)
}
