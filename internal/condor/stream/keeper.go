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
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// Rhythm of a keeper. What it decides from is in memory; only the schedd's queue has to be asked for.
const (
	breath    = 100 * time.Millisecond // at least, between two steps
	tick      = 250 * time.Millisecond // between two steps while there is something to keep
	lookFast  = time.Second            // between two looks at the queue while something is to be done or to come
	lookSlow  = 10 * time.Second       // while there are runs or worker jobs
	silentMin = time.Second            // after a command without an answer; doubled up to silentMax
	silentMax = 30 * time.Second
)

// A keeper sees to it that a stream has the worker jobs that it can use. All of it belongs to the goroutine of run.
type keeper struct {
	lg         *slog.Logger
	cfg        Config
	client     schedd.Client
	note       note
	dispatcher *dispatch.Dispatcher
	roll       *roll

	jobs     []Job          // in the schedd's queue at the last look
	lookedAt time.Time      // when HTCondor answered last; zero: not yet
	sentAt   time.Time      // when worker jobs were submitted last
	fresh    map[int64]bool // :: worker job that was submitted and has not dialled in → HTCondor took it
	failures int            // looks in a row at which some had ended so
	restTill time.Time      // nothing is submitted before
	stuck    time.Time      // since when a task is stuck; zero: none is
	silence  time.Duration  // the pause after the last command, if that had no answer; else 0
	askFrom  time.Time      // HTCondor is not asked before
}

// run keeps the worker jobs until ctx ends. Runs and workers that come rouse it.
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

// quiet reports whether there is nothing to keep: no run, no worker, and no worker job that might be in the queue.
func (k *keeper) quiet() bool {
	var w World
	k.roll.fill(&w)
	looked := k.note.Last == 0 || k.lookedAt.After(k.sentAt)
	return looked && w.Runs == 0 && len(k.jobs) == 0 && len(k.fresh) == 0 && len(k.dispatcher.Workers()) == 0
}

// step looks at the queue if it is time to, and does what follows.
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

// unanswered has the next command wait.
func (k *keeper) unanswered(err error) {
	if k.silence == 0 {
		k.lg.Warn("HTCondor does not answer about worker jobs; it is asked again", "error", err)
	}
	k.silence = min(max(silentMin, 2*k.silence), silentMax)
	k.askFrom = time.Now().Add(k.silence)
}

// world is what is known without asking HTCondor.
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

// welcome notes which worker jobs have dialled in.
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

// due reports whether it is time to look at the queue: soon if there is something to do or something comes, by what was
// there at the last look. A stream that never had a worker job has none there.
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

// unsettled reports whether worker jobs come or go of which the last look does not tell the end.
func (k *keeper) unsettled(now time.Time, w World) bool {
	return len(k.fresh) > 0 || len(w.Absent) > 0 || k.sentAt.After(k.lookedAt) || w.coming(now) > 0
}

// look takes in what the queue has.
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

// missed takes in that worker jobs have left the queue without ever having dialled in, which is one failure if they are
// missed at one look: most likely they had one cause. One whose submission had no answer may never have been there.
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
		k.lg.Warn("a worker job ended before it dialled in", "number", number, "said", strings.TrimSpace(string(said)))
	}
}

// maxComplaint is how much of a complaint is read.
const maxComplaint = 64 << 10

// sweep removes what worker jobs have complained about that are gone.
func (k *keeper) sweep(here map[int64]bool) {
	files, _ := filepath.Glob(filepath.Join(k.cfg.Dir, "*"+complaintEnd))
	for _, file := range files {
		number, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(file), complaintEnd), 10, 64)
		if err == nil && !here[number] {
			_ = os.Remove(file) // another sweep comes
		}
	}
}

// carryOut does what was decided. The error says that HTCondor gave no answer: the next look tells what came of it.
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
			k.lg.Info("a worker job is removed", "number", o.Job.Number, "glidein", o.Job.Glidein, "why", o.Why,
				"hold", o.Job.Hold)
			leaving[o.Job.ID] = true
			if _, early := k.fresh[o.Job.Number]; early && o.Job.State == Held { // the next would be held, too
				k.failures = failures + 1
				k.restTill = time.Now().Add(Rest(k.failures))
			}
			delete(k.fresh, o.Job.Number)
		case Rank:
			ranks = append(ranks, o.Job.ID)
		case Retire:
			k.lg.Info("a worker job is retired for a wide task", "number", o.Job.Number, "glidein", o.Job.Glidein)
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

// submit submits worker jobs. Their numbers are noted before, so that they are found if the answer is lost.
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
		k.lg.Warn("HTCondor takes no worker jobs now", "error", err)
		return nil
	}
	for i, o := range starts {
		k.fresh[first+int64(i)] = err == nil
		if err != nil { // the next look tells
			continue
		}
		k.lg.Info("a worker job is submitted", "number", first+int64(i), "glidein", o.Job.Glidein, "cpus", o.Job.CPUs)
	}
	return err
}

// writeSandbox writes what worker jobs take with them.
func (k *keeper) writeSandbox() error {
	text, err := json.Marshal(jobfiles.Stream{Tag: Tag(k.cfg.Cluster), Token: k.note.Token})
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(k.cfg.Dir, jobfiles.StreamFile), text, 0o600)
}
