package schedd

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// Intervals of a tracker.
const (
	logEvery    = 100 * time.Millisecond // reads of the event log
	lookupEvery = 30 * time.Second       // queries of the queue, which take at most a twentieth of the time
	lookupShare = 20
)

// A tracker owns one run's jobs from the run's attachment until its jobs and files are gone. All fields except the
// mailbox and the life belong to the goroutine of main.
type tracker struct {
	lg   *slog.Logger
	cfg  Config
	run  corral.RunID
	dir  string // Config.Dir/RUN
	life life
	mail mailbox

	client   Client
	note     note
	log      eventlog.File // the jobs' events
	book     book
	outbox   outbox
	teller   teller
	backoff  backoff
	lookupAt time.Time // time of the next lookup of the queue
}

// newTracker returns a tracker without data about its run; it does not start the tracker's goroutine.
func newTracker(q *Submitter, run corral.RunID, sink dispatch.Sink) *tracker {
	dir := filepath.Join(q.cfg.Dir, strconv.FormatInt(int64(run), 10))
	lg := q.lg.With("run", run)
	return &tracker{
		lg: lg, cfg: q.cfg, run: run, dir: dir,
		life: newLife(), mail: mailbox{filled: make(chan struct{}, 1)},
		client: Client{Tools: q.cfg.Tools, Attribute: runAttribute},
		note:   note{path: filepath.Join(dir, "run.json")},
		log:    eventlog.File{Path: filepath.Join(dir, "log")},
		book:   newBook(),
		outbox: outbox{size: submitSize, patience: q.cfg.Patience},
		teller: teller{lg: lg, sink: sink},
	}
}

// main is the tracker's goroutine.
func (t *tracker) main() {
	t.serve()
	close(t.life.done)
	if t.life.ctx.Err() == nil {
		t.cleanUp()
	}
}

// serve serves the run until it is released.
func (t *tracker) serve() {
	if !t.life.begin(t.life.serving) {
		return
	}
	t.open(time.Now())
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	for t.life.serving.Err() == nil {
		t.step(time.Now())
		select {
		case <-t.life.serving.Done():
		case <-t.mail.filled:
		case <-tick.C:
		}
	}
}

// open restores the earlier data about the run's jobs. The event log is read from the beginning, because processing its
// events again has no effect on facts that are already known.
func (t *tracker) open(now time.Time) {
	t.lookupAt = now.Add(lookupEvery)
	t.book.open(now.Add(t.cfg.Claim), t.note.recall())
}

// step performs the actions due at now. Facts are processed first, so that HTCondor is not queried for known facts; the
// run is informed last, when all news is in the book.
func (t *tracker) step(now time.Time) {
	t.take(now)
	t.read(now)
	if !now.Before(t.backoff.until) && t.noted(now) {
		t.look(now)
		t.submit()
		t.remove(now)
	}
	t.teller.tell(&t.book, now)
}

// take carries out the run's requests.
func (t *tracker) take(now time.Time) {
	for _, r := range t.mail.take() {
		for _, j := range r.submit {
			t.claim(j, false)
		}
		for _, j := range r.expect {
			t.claim(j, true)
		}
		if len(r.withdraw) > 0 {
			t.withdraw(r.withdraw, now)
		}
		if r.cancel {
			t.cancel(now)
		}
		if len(r.kill) > 0 {
			kill(t, now, r.kill)
		}
	}
}

// kill removes single jobs from the queue and returns them to the run. The current step sends the request to the
// schedd.
func kill(t *tracker, now time.Time, jobs []int64) {
	t.read(now)
	t.teller.tell(&t.book, now) // a job that has ended was not killed
	these := make(map[int64]bool, len(jobs))
	for _, seq := range jobs {
		these[seq] = true
	}
	if waiting := t.book.kill(now, func(j *job) bool { return these[j.Seq] }); len(waiting) > 0 {
		t.teller.sink.Returned(keys(waiting), false, time.Time{}, "cancelled")
	}
}

// claim makes j a job that the run waits for, and queues it for submission if the schedd does not have it.
func (t *tracker) claim(j execution.Job, expected bool) {
	t.keepNote(j.Dir)
	if fresh := t.book.claim(j, expected); fresh != nil {
		t.outbox.add(fresh)
	}
}

// keepNote makes sure that there is a note before a job of the run is submitted.
func (t *tracker) keepNote(dir string) {
	if t.note.keep(dir) {
		t.book.doubt() // the note names jobs that are not in the book
	}
}

// cancel removes all jobs from the queue and returns them to the run. If the schedd does not answer now, it is asked
// again when the run is detached.
func (t *tracker) cancel(now time.Time) {
	t.read(now)
	t.teller.tell(&t.book, now) // a job that has ended was not cancelled
	if err := t.client.RemoveAll(t.life.serving, t.note.ID); err != nil {
		t.lg.Warn("the run's jobs could not be removed yet", "error", err)
	}
	t.outbox.clear()
	if waiting := t.book.cancel(time.Now()); len(waiting) > 0 {
		t.teller.sink.Returned(keys(waiting), false, time.Time{}, "cancelled")
	}
}

// withdraw returns to the run the jobs that no worker has started according to the event log, and removes them from the
// queue. If such a job does any work before its removal, that work is discarded.
func (t *tracker) withdraw(seqs []int64, now time.Time) {
	t.read(now)
	t.teller.tell(&t.book, now)
	if waiting := t.book.withdraw(seqs); len(waiting) > 0 {
		t.teller.sink.Returned(keys(waiting), false, time.Time{}, "withdrawn")
	}
}

// read processes new events of the event log.
func (t *tracker) read(now time.Time) {
	if !grown(t.log) {
		return
	}
	for event, err := range t.log.New(now) {
		var bad *eventlog.BadRecord
		switch {
		case errors.As(err, &bad):
			t.lg.Warn("event log is damaged", "error", err)
			t.book.doubt() // an event may be missing
		case err != nil:
			t.lg.Error("reading the event log", "error", err)
			return
		default:
			t.book.event(event, now)
		}
	}
}

// grown reports whether a log has changed since it was read. This check is the only cost of a run without events.
func grown(log eventlog.File) bool {
	info, err := os.Stat(log.Path)
	if err != nil {
		return false
	}
	return info.Size() != log.Place.Offset || info.Sys().(*syscall.Stat_t).Ino != log.Place.Inode
}

// look compares the book with the schedd's queue: before any submission if the book is unsure, and otherwise
// periodically, because events may be missing from the log. The log is read between the two halves of the comparison,
// so that a job which has just ended is not mistaken for a job that vanished.
func (t *tracker) look(now time.Time) {
	if t.note.ID == "" || !t.book.unsure && (now.Before(t.lookupAt) || len(t.book.jobs) == 0) {
		return
	}
	ads, err := t.client.Queue(t.life.serving, t.note.ID, queueAttributes...)
	t.answered(err)
	if err != nil {
		return
	}
	lookup := t.book.found(ads, now, time.Now())
	t.read(time.Now())
	t.book.missed(lookup, time.Now())
	t.lookupAt = now.Add(max(lookupEvery, lookupShare*time.Since(now)))
}

// remove removes from the queue the jobs that the run does not wait for.
func (t *tracker) remove(now time.Time) {
	t.book.disown(now)
	if err := t.client.Remove(t.life.serving, t.book.leaving); err != nil {
		t.answered(err)
		return
	}
	t.book.removed()
}

// answered records the result of a command: if there was no answer, the next command is delayed.
func (t *tracker) answered(err error) {
	switch {
	case err != nil:
		t.wait(silent, err)
	case t.backoff.answered():
		t.lg.Info("HTCondor answers again")
	}
}

// wait delays the next command and logs the reason.
func (t *tracker) wait(why string, err error) {
	if t.backoff.wait(why, time.Now()) {
		t.lg.Warn(why, "error", err)
	}
}

// cleanUp removes the run's jobs and files as soon as HTCondor answers. The note is removed last, with the run's
// folder: if corrald ends before that, the next corrald finds the note and cleans up.
func (t *tracker) cleanUp() {
	ctx := t.life.ctx
	if !t.life.begin(ctx) {
		return
	}
	for {
		err := t.client.RemoveAll(ctx, t.note.ID)
		if err == nil || ctx.Err() != nil {
			break
		}
		t.answered(err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(t.backoff.until)):
		}
	}
	if ctx.Err() != nil {
		return
	}
	var err error
	if t.note.Dir != "" {
		err = os.RemoveAll(filepath.Join(t.note.Dir, jobsDir))
	}
	if err = errors.Join(err, os.RemoveAll(t.dir)); err != nil {
		t.lg.Warn("files of the run's jobs are left", "error", err)
	}
}
