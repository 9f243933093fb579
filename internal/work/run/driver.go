package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A driver drives one run. All its fields belong to the goroutine of drive, except for the channels.
//
// It is a loop of step and wait. A step does all that can be done at one instant: it applies what the cluster
// told, looks once a second at what the cluster offers, releases what may run, and saves progress. Then it waits
// for mail, for a question, or for the next instant at which something is due; an error is retried at the next
// look. What must not be lost is in the journal before a step sees it, so a driver may be killed anywhere.
type driver struct {
	lg       *slog.Logger
	clusters Clusters
	progress *progress

	prepared   *plan // nil: it is read from the run's directory
	state      *state
	sink       *sink
	scripts    *scripter
	queue      Queue           // nil: the run is not attached yet
	noQueue    string          // why not
	cancelling bool            // the queue was told
	rescued    string          // what the reason of its end says of a rescue file
	watch      execution.Watch // over what the cluster offers, and whether the run has stalled

	asks   chan func(*driver) // to be called by the goroutine, once it knows all that the cluster told
	cancel chan struct{}      // holds a token once the row is CANCELLING
	gone   chan struct{}      // closed when the run is driven no longer, and the manager knows
}

// drive drives the run until it is over, or until ctx ends: then everything stays as it is for the
// next start.
func (d *driver) drive(ctx context.Context) {
	d.progress.reread(ctx) // it may have been cancelled before this driver could be told
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

// open brings the run's state back. The queue comes later, with the first look, because a cluster may not have one yet.
func (d *driver) open(ctx context.Context) error {
	row := d.progress.row
	if err := parcel.Sweep(row.Dir); err != nil {
		d.lg.Warn("parcels of a corrald before are left", "error", err)
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

// detach lets go of the cluster. It is only for a run that is over, because it ends what workers run.
// When corrald stops they go on; the closed journal refuses their results until its next start.
func (d *driver) detach() {
	if d.queue != nil {
		d.queue.Detach(d.progress.row.ID)
	}
}

// step does all there is to do at now and reports whether the run is over.
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
		if looked {
			d.split()
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

// read applies what the cluster told and how scripts ended.
func (d *driver) read() {
	mail := d.sink.mail.empty()
	for _, rec := range mail {
		over := d.state.apply(rec)
		d.kill() // first: the sink must know what the cluster may still assign
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

// kill has the jobs killed that are not wanted any more. Before the run is attached they stay where they are.
func (d *driver) kill() {
	if d.queue == nil {
		return
	}
	if jobs := execution.Kills(d.state.x); len(jobs) > 0 {
		d.queue.Cancel(d.progress.row.ID, jobs...)
	}
}

// look asks what the cluster has to offer, attaches the run if that is still to be done, and records what is new. News
// that the journal refuses is applied all the same: it is found out again after a restart. A cluster that cannot be
// asked keeps its last offer.
func (d *driver) look(ctx context.Context, now time.Time) {
	d.watch.Look(now)
	d.attach()
	offer, err := d.clusters.Offer(ctx, d.progress.row.Cluster)
	if err != nil && corral.KindOf(err) != corral.NotFound { // a cluster that is gone offers nothing
		d.lg.Warn("asking what the cluster offers", "error", err)
		return
	}
	d.watch.Offer = offer
	news := d.state.x.News(now, offer)
	if len(news) == 0 {
		return
	}
	if err := d.sink.journal.append(news...); err != nil {
		d.lg.Warn("what the cluster offers is not in the journal", "error", err)
	}
	for _, rec := range news {
		d.state.apply(rec)
	}
}

// attach takes the cluster's queue and tells it of the jobs that may be running since before a restart. A cluster that
// is not ready has no queue; the reason is shown as what the run lacks, and the next look tries again.
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

// submit hands the cluster what is ready. The sink must know the jobs first, because the cluster may assign one before
// Submit returns. A workflow may have 100,000 tasks that are ready at once: they are completed and handed over in
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

// split takes jobs of several tasks back that no worker has the time for any more: what is returned is released again,
// in smaller ones.
func (d *driver) split() {
	if seqs, _ := execution.Misfits(d.state.x, d.watch.Offer); len(seqs) > 0 && d.queue != nil {
		d.queue.Withdraw(d.progress.row.ID, seqs)
	}
}

// wait sleeps until there may be something to do. A question is answered here, by the goroutine that owns the state,
// and only after all mail has been read: whoever asks after the end of a task must see it.
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
		return next // nothing is released
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

// judge compares what was submitted with what the cluster has to offer, and tells when the run is expected to end.
// Without its journal the run gets no further, whatever there is.
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
		d.watch.Move() // an open run waits for workers as it waits for tasks
	} else if short.What == "" {
		end, _ = d.state.x.Ends(now, d.watch.Offer.CPUs)
	}
	d.progress.notes.expect(d.progress.row.ID, end)
}

// stepCancelling has the run's jobs killed and ends the run when none is left.
func (d *driver) stepCancelling(ctx context.Context) (over bool) {
	d.watch.Move() // nothing is released any more, so nothing is stuck
	d.scripts.stop()
	if d.queue != nil && !d.cancelling {
		d.cancelling = true
		d.queue.Cancel(d.progress.row.ID)
	}
	if d.queue != nil && d.state.x.Jobs() > 0 {
		return false
	}
	if execution.Takes(d.state.x) { // a run that was cancelled is closed, also if it is resumed
		if _, err := d.close(); err != nil {
			d.lg.Warn("closing a cancelled run", "error", err)
		}
	}
	return d.end(ctx, corral.RunCancelEnd, d.progress.row.Reason)
}
