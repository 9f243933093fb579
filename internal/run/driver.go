package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/pool"
)

// Rhythm of a driver.
const (
	lookEvery  = time.Second            // for what the cluster has to offer; also the wait after an error
	saveEvery  = 250 * time.Millisecond // at most this often progress goes to the store
	submitSize = 1000                   // jobs are built and submitted in such portions
	actor      = "corrald"              // in the history of runs, for what nobody asked for
)

// A driver drives one run. All its fields belong to the goroutine of drive, except for the channels.
type driver struct {
	lg       *slog.Logger
	db       *store.DB
	clusters Clusters
	row      corral.Run // as the store has it, but for progress not saved yet

	state   *state
	journal *journal
	sink    *sink
	queue   Queue  // nil: the run is not attached yet
	noQueue string // why not

	supply     Supply          // latest known, distinct
	here       map[string]bool // the workers in it that are present
	lookAt     time.Time       // when to look at the supply again
	shortage   string          // what lacks what, as of the last look
	stuckSince time.Time       // since nothing runs or could; zero: something does
	cancelling bool            // the queue was told
	saveAt     time.Time       // not before this

	asks   chan func(*state) // questions to be answered by the goroutine
	cancel chan struct{}     // holds a token once the row is CANCELLING
	gone   chan struct{}     // closed when the run is driven no longer, and the manager knows
}

// drive drives the run until it is over, or until ctx ends: then everything stays as it is for the
// next start.
func (d *driver) drive(ctx context.Context) {
	d.reread(ctx) // it may have been cancelled before this driver could be told
	if err := d.open(ctx); err != nil {
		if ctx.Err() == nil {
			d.abandon(ctx, err)
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
	if err := d.journal.close(); err != nil {
		d.lg.Warn("closing the run's journal", "error", err)
	}
}

// open brings the run's state back.
func (d *driver) open(ctx context.Context) error {
	if err := pool.Sweep(d.row.Dir); err != nil {
		d.lg.Warn("parcels of a corrald before are left", "error", err)
	}
	state, journal, err := openState(ctx, d.lg, d.row, time.Now())
	if err != nil {
		return err
	}
	d.state, d.journal, d.sink = state, journal, newSink(d.lg, journal)
	return nil
}

// detach lets go of the cluster. It is only for a run that is over, because it ends what workers run.
// When corrald stops they go on; the closed journal refuses their results until its next start.
func (d *driver) detach() {
	if d.queue != nil {
		d.queue.Detach(d.row.ID)
	}
}

// step does all there is to do at now and reports whether the run is over.
func (d *driver) step(ctx context.Context, now time.Time) (over bool) {
	d.read()
	looked := !now.Before(d.lookAt) || d.isStalled(now)
	if looked {
		d.look(ctx, now)
	}
	switch {
	case d.row.State == corral.RunCancelling:
		over = d.stepCancelling(ctx)
	case d.state.frontier.Done():
		over = d.finish(ctx)
	default:
		d.submit(now)
		if looked {
			d.judge(now)
		}
		over = d.isStalled(now) && d.end(ctx, corral.RunStall, d.shortage)
	}
	if !over {
		d.save(ctx, now)
	}
	return over
}

// read applies what the cluster told.
func (d *driver) read() {
	for _, rec := range d.sink.mail.empty() {
		d.state.apply(rec)
		switch {
		case rec.Assigned != nil:
			d.stuckSince = time.Time{}
		case rec.Finished != nil:
			d.forget(rec.Finished.Seq)
		case rec.Returned != nil:
			for _, seq := range rec.Returned.Seqs {
				d.forget(seq)
			}
		}
	}
}

// forget lets the sink forget a job that the state has forgotten.
func (d *driver) forget(seq int64) {
	if d.state.jobs[seq] == nil {
		d.sink.over(seq)
	}
}

// look asks what the cluster has to offer, attaches the run if that is still to be done, and compares.
func (d *driver) look(ctx context.Context, now time.Time) {
	d.lookAt = now.Add(lookEvery)
	d.attach()
	supply, err := d.clusters.Supply(ctx, d.row.Cluster)
	if err != nil && corral.KindOf(err) != corral.NotFound { // a cluster that is gone supplies nothing
		d.lg.Warn("asking for the cluster's supply", "error", err)
		return
	}
	d.supply, d.here = supply.distinct(), supply.here()
	var news []record
	for _, shape := range supply.Shapes {
		if name := shape.worker(); name != "" && shape.CPUs > 0 && d.state.cpusOf(name) == 0 {
			news = append(news, record{At: toMsec(now), Met: &meeting{name, shape.CPUs}})
		}
	}
	if supply.CPUs > d.state.tally.cpus {
		news = append(news, record{At: toMsec(now), CPUs: supply.CPUs})
	}
	if len(news) == 0 {
		return
	}
	if err := d.journal.append(news...); err != nil {
		d.lg.Warn("the cluster's supply is not in the journal", "error", err)
	}
	for _, rec := range news {
		d.state.apply(rec)
	}
}

// attach takes the cluster's queue and tells it of the jobs that may be running.
func (d *driver) attach() {
	if d.queue != nil {
		return
	}
	queue, err := d.clusters.Queue(d.row.Cluster)
	if err != nil {
		d.noQueue = fmt.Sprintf("no task can be queued: %v", err)
		return
	}
	d.queue = queue
	queue.Attach(d.row.ID, d.sink)
	for worker, jobs := range d.state.expected() {
		d.sink.released(jobs)
		for _, j := range jobs {
			j.awaited = true
		}
		queue.Expect(d.row.ID, worker, d.build(jobs))
	}
}

func (d *driver) build(jobs []*job) []execution.Job {
	built := make([]execution.Job, len(jobs))
	for k, j := range jobs {
		built[k] = d.state.poolJob(j)
	}
	return built
}

// submit hands the cluster what is ready.
func (d *driver) submit(now time.Time) {
	if d.queue == nil || len(d.state.loose) == 0 {
		return
	}
	jobs := d.state.release(toMsec(now), d.supply)
	d.sink.released(jobs)
	for len(jobs) > 0 {
		n := min(len(jobs), submitSize)
		d.queue.Submit(d.build(jobs[:n]))
		jobs = jobs[n:]
	}
}

// wait sleeps until there may be something to do.
func (d *driver) wait(ctx context.Context, now time.Time) {
	timer := time.NewTimer(d.next().Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-d.sink.mail.filled:
	case ask := <-d.asks:
		d.read()
		ask(d.state)
	case <-d.cancel:
		d.cancelled(ctx)
	}
}

// cancelled takes over that the run's row is CANCELLING, and why.
func (d *driver) cancelled(ctx context.Context) {
	d.row.State = corral.RunCancelling
	d.reread(ctx)
}

// reread takes over what the store says of the run's state, and why.
func (d *driver) reread(ctx context.Context) {
	err := d.db.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Run(d.row.ID)
		if err == nil {
			d.row.State, d.row.Reason = row.State, row.Reason
		}
		return err
	})
	if err != nil {
		d.lg.Warn("reading the state of the run", "error", err)
	}
}

// next returns the earliest time at which something is due.
func (d *driver) next() time.Time {
	next := d.lookAt
	if d.unsaved() {
		next = earlier(next, d.saveAt)
	}
	if d.row.State != corral.RunRunning {
		return next // nothing is released any more
	}
	if at := d.state.nextRelease(); at != 0 && d.queue != nil {
		next = earlier(next, at.time())
	}
	if !d.stuckSince.IsZero() {
		next = earlier(next, d.stuckSince.Add(time.Duration(d.row.Options.Stall)))
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// judge compares what was submitted with what the cluster has to offer, and starts or stops the clock
// of a stall. Without its journal the run gets no further, whatever there is.
func (d *driver) judge(now time.Time) {
	short := shortage{what: d.noQueue}
	if err := d.journal.check(toMsec(now)); err != nil {
		short.what = err.Error()
	} else if d.queue != nil {
		short = d.state.shortage(d.supply, d.here)
	}
	d.shortage = short.what
	switch {
	case short.able || short.what == "":
		d.stuckSince = time.Time{}
	case d.stuckSince.IsZero():
		d.stuckSince = now
	}
}

// isStalled reports whether nothing has run, or could have, for as long as the run allows.
func (d *driver) isStalled(now time.Time) bool {
	return !d.stuckSince.IsZero() && now.Sub(d.stuckSince) >= time.Duration(d.row.Options.Stall)
}

// stepCancelling has the run's jobs killed and ends the run when none is left.
func (d *driver) stepCancelling(ctx context.Context) (over bool) {
	if d.queue != nil && !d.cancelling {
		d.cancelling = true
		d.queue.Cancel(d.row.ID)
	}
	if d.queue != nil && len(d.state.jobs) > 0 {
		return false
	}
	return d.end(ctx, corral.RunCancelEnd, d.row.Reason)
}
