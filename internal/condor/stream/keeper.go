package stream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// Intervals of a keeper. The data for the keeper's decisions is in memory, except for the schedd's queue, which must be
// queried.
const (
	breath    = 100 * time.Millisecond // minimum interval between two steps
	tick      = 250 * time.Millisecond // between two steps while there are runs or worker jobs to maintain
	lookFast  = time.Second            // between two queries of the queue while orders are due or jobs are coming
	lookSlow  = 10 * time.Second       // while there are runs or worker jobs
	silentMin = time.Second            // pause after a command without an answer; doubled up to silentMax
	silentMax = 30 * time.Second
)

// A keeper makes sure that a stream has the worker jobs that it can use. All fields belong to the goroutine of run.
type keeper struct {
	lg         *slog.Logger
	cfg        Config
	client     schedd.Client
	note       note
	dispatcher *dispatch.Dispatcher
	roll       *roll

	jobs     []WorkerJob    // jobs in the schedd's queue at the last query
	lookedAt time.Time      // time of HTCondor's last answer; zero: none yet
	sentAt   time.Time      // time of the last submission of worker jobs
	fresh    map[int64]bool // :: submitted worker job that has not connected → HTCondor accepted it
	failures int            // consecutive queries which found that such jobs had ended
	restTill time.Time      // no worker job is submitted before this time
	stuck    time.Time      // since when a task has been stuck; zero: no task is
	silence  time.Duration  // pause after the last command if it was not answered; otherwise 0
	askFrom  time.Time      // HTCondor is not queried before this time
}

// run maintains the worker jobs until ctx ends. New runs and workers wake it.
func (k *keeper) run(ctx context.Context) {
	for retry.For(ctx, breath) {
		k.step(ctx, time.Now())
		var again <-chan time.Time
		if !k.quiet() {
			again = time.After(tick)
		}
		select {
		case <-ctx.Done():
		case <-k.roll.roused:
		case <-again:
		}
	}
}

// quiet reports whether nothing has to be maintained: no run, no worker, and no worker job that might be in the queue.
func (k *keeper) quiet() bool {
	var w World
	k.roll.fill(&w)
	looked := k.note.Last == 0 || k.lookedAt.After(k.sentAt)
	return looked && w.Runs == 0 && len(k.jobs) == 0 && len(k.fresh) == 0 && len(k.dispatcher.Workers()) == 0
}

// step queries the queue if a query is due, and acts on the result.
func (k *keeper) step(ctx context.Context, now time.Time) {
	w := k.world(now)
	k.welcome(w.Workers)
	if now.Before(k.askFrom) || !k.due(now, w) {
		return
	}
	if err := k.look(ctx, now); err != nil {
		k.unanswered(err)
		return
	}
	w.Jobs, w.RestUntil = k.jobs, k.restTill
	if err := k.carryOut(ctx, Decide(now, w)); err != nil {
		k.unanswered(err)
		return
	}
	if k.silence > 0 {
		k.silence = 0
		k.lg.Info("HTCondor answers again")
	}
}

// unanswered delays the next command.
func (k *keeper) unanswered(err error) {
	if k.silence == 0 {
		k.lg.Warn("HTCondor does not answer queries about worker jobs; trying again", "error", err)
	}
	k.silence = min(max(silentMin, 2*k.silence), silentMax)
	k.askFrom = time.Now().Add(k.silence)
}

// world returns the state that is known without querying HTCondor.
func (k *keeper) world(now time.Time) World {
	w := World{Glideins: k.cfg.Glideins(), Workers: k.dispatcher.Workers(), Jobs: k.jobs, RestUntil: k.restTill}
	w.Waiting, _ = k.dispatcher.Load()
	w.Behind, w.Absent = dispatch.Behind(k.dispatcher), dispatch.Absent(k.dispatcher)
	k.roll.fill(&w)
	switch {
	case !w.Stuck(now):
		k.stuck = time.Time{}
	case k.stuck.IsZero():
		k.stuck = now
	}
	w.StuckFrom = k.stuck
	return w
}

// welcome records which worker jobs have connected.
func (k *keeper) welcome(workers []corral.Worker) {
	for _, w := range workers {
		_, digits, _ := strings.Cut(w.ID, jobfiles.StreamMark)
		number, err := strconv.ParseInt(digits, 10, 64)
		if _, fresh := k.fresh[number]; err == nil && fresh {
			delete(k.fresh, number)
			k.failures, k.restTill = 0, time.Time{}
		}
	}
}

// due reports whether a query of the queue is due: sooner if orders are due or jobs are coming, according to the last
// query. If a stream never had a worker job, its queue is known to be empty.
func (k *keeper) due(now time.Time, w World) bool {
	begun, rest := k.note.Last > 0, now.Sub(k.lookedAt)
	switch {
	case k.lookedAt.IsZero() && begun:
		return true
	case len(Decide(now, w)) > 0, begun && k.unsettled(now, w):
		return rest >= lookFast
	}
	return begun && (w.Runs > 0 || len(k.jobs) > 0 || len(w.Workers) > 0) && rest >= lookSlow
}

// unsettled reports whether any worker jobs are starting or ending and the last query does not show the outcome.
func (k *keeper) unsettled(now time.Time, w World) bool {
	return len(k.fresh) > 0 || len(w.Absent) > 0 || k.sentAt.After(k.lookedAt) || w.coming(now) > 0
}

// look reads the schedd's queue.
func (k *keeper) look(ctx context.Context, now time.Time) error {
	if k.note.Last == 0 {
		k.lookedAt = now
		return nil
	}
	ads, err := k.client.Queue(ctx, k.note.Name, jobAttributes...)
	if err != nil {
		return err
	}
	k.lookedAt = now
	before := len(k.jobs)
	k.jobs = nil
	here := map[int64]bool{}
	for _, ad := range ads {
		j := jobOf(ad)
		k.jobs = append(k.jobs, j)
		here[j.Number] = true
	}
	k.missed(here, now)
	if len(k.jobs) < before || before == 0 {
		k.sweep(here)
	}
	return nil
}

// missed records worker jobs that have left the queue without having connected. Jobs that are missed in the same query
// count as one failure, because they most likely have the same cause. A job whose submission was not answered does not
// count, because it may never have been in the queue.
func (k *keeper) missed(here map[int64]bool, now time.Time) {
	before := k.failures
	for number, was := range k.fresh {
		if here[number] {
			k.fresh[number] = true
			continue
		}
		delete(k.fresh, number)
		if !was {
			continue
		}
		k.failures = before + 1
		k.restTill = now.Add(Rest(k.failures))
		said, _ := input.ReadFile(filepath.Join(k.cfg.Dir, complaintFile(number)), maxComplaint)
		k.lg.Warn("a worker job ended before it connected", "number", number, "said", strings.TrimSpace(string(said)))
	}
}

// maxComplaint is the maximum number of bytes that are read of an error output.
const maxComplaint = 64 << 10

// sweep removes the error output of worker jobs that are gone.
func (k *keeper) sweep(here map[int64]bool) {
	files, _ := filepath.Glob(filepath.Join(k.cfg.Dir, "*"+complaintEnd))
	for _, file := range files {
		number, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(file), complaintEnd), 10, 64)
		if err == nil && !here[number] {
			_ = os.Remove(file) // the next sweep tries again
		}
	}
}

// carryOut executes orders. An error means that HTCondor did not answer; the next query shows the result.
func (k *keeper) carryOut(ctx context.Context, orders []Order) error {
	var starts []Order
	var ranks []eventlog.JobID
	leaving := map[eventlog.JobID]bool{}
	failures := k.failures
	for _, o := range orders {
		switch o.Deed {
		case Start:
			starts = append(starts, o)
		case Remove:
			k.lg.Info("removing a worker job", "number", o.Job.Number, "glidein", o.Job.Glidein, "why", o.Why,
				"hold", o.Job.Hold)
			leaving[o.Job.ID] = true
			if _, early := k.fresh[o.Job.Number]; early && o.Job.State == Held { // the next job would also be held
				k.failures = failures + 1
				k.restTill = time.Now().Add(Rest(k.failures))
			}
			delete(k.fresh, o.Job.Number)
		case Rank:
			ranks = append(ranks, o.Job.ID)
		case Retire:
			k.lg.Info("retiring a worker job for a wide task", "number", o.Job.Number, "glidein", o.Job.Glidein)
			dispatch.Retire(k.dispatcher, jobfiles.StreamWorker(o.Job.Glidein, o.Job.Number))
		case Bury:
			dispatch.Bury(k.dispatcher, o.Worker)
		}
	}
	var w World
	k.roll.fill(&w)
	if err := k.client.Rank(ctx, k.note.Name, w.Priority, ranks...); err != nil {
		return err
	}
	if err := k.client.Remove(ctx, leaving); err != nil {
		return err
	}
	return k.submit(ctx, starts)
}

// submit submits worker jobs. It records their numbers first, so that the jobs can be found if the answer is lost.
func (k *keeper) submit(ctx context.Context, starts []Order) error {
	if len(starts) == 0 {
		return nil
	}
	first, err := k.note.reserve(len(starts))
	if err == nil {
		err = k.writeSandbox()
	}
	if err != nil {
		return err
	}
	k.sentAt = time.Now()
	_, err = k.client.Submit(ctx, describe(k.note.Name, k.cfg.Dir, first, starts))
	var no *condor.Refused
	if errors.As(err, &no) || errors.Is(err, condor.ErrUnquotable) {
		k.failures++
		k.restTill = time.Now().Add(Rest(k.failures))
		k.lg.Warn("HTCondor accepts no worker jobs now", "error", err)
		return nil
	}
	for i, o := range starts {
		k.fresh[first+int64(i)] = err == nil
		if err != nil { // the next query shows the result
			continue
		}
		k.lg.Info("worker job submitted", "number", first+int64(i), "glidein", o.Job.Glidein, "cpus", o.Job.CPUs)
	}
	return err
}

// writeSandbox writes the file that is transferred with worker jobs.
func (k *keeper) writeSandbox() error {
	text, err := json.Marshal(jobfiles.Stream{Tag: Tag(k.cfg.Cluster), Token: k.note.Token})
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(k.cfg.Dir, jobfiles.StreamFile), text, 0o600)
}
