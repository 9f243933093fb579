package run

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A sink is a run's dispatch.Sink: it writes the cluster's reports to the journal, and only then puts them into the
// mailbox of the driver. It never waits for the driver, so a slow store does not delay workers.
//
// It keeps the parts of each released job, because an assignment must be recorded with them: after a restart, only the
// record shows which tasks a worker may have.
type sink struct {
	lg      *slog.Logger
	journal *journal
	mail    *mailbox

	order sync.Mutex         // held so that the mail has the order of the journal; guards owed
	owed  []execution.Record // sent to the driver, but refused by the journal

	mu   sync.Mutex        // guards the fields below
	jobs map[int64]release // :: number of a released job → its tasks
}

func newSink(lg *slog.Logger, j *journal) *sink {
	return &sink{lg: lg, journal: j, mail: newMailbox(), jobs: make(map[int64]release)}
}

// A release holds the data of a job for the record of its assignment.
type release struct {
	tasks []execution.Task // shared with the cluster
	more  int              // its memory if that is more than the workflow requests
}

// released records jobs before they are submitted.
func (s *sink) released(jobs []execution.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		r := release{tasks: j.Tasks}
		if j.More {
			r.more = j.MemoryMiB
		}
		s.jobs[j.Seq] = r
	}
}

// over removes jobs that are over.
func (s *sink) over(seqs []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seq := range seqs {
		delete(s.jobs, seq)
	}
}

// Assigned implements dispatch.Sink.
func (s *sink) Assigned(worker string, jobs []execution.Key) error {
	at := execution.ToMsec(time.Now())
	records := make([]execution.Record, len(jobs))
	for k, key := range jobs {
		a, ok := s.assignment(key.Seq)
		if !ok {
			return fmt.Errorf("job %d of run %d is not known", key.Seq, key.Run)
		}
		a.Worker = worker
		records[k] = execution.Record{At: at, Assigned: a}
	}
	return s.keep(records)
}

// assignment returns the record of giving a released job to a worker, except the worker.
func (s *sink) assignment(seq int64) (a *execution.Assignment, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.jobs[seq]
	a = &execution.Assignment{Seq: seq, More: r.more}
	for _, t := range r.tasks {
		a.Parts = append(a.Parts, execution.Part{Task: int32(t.Index), Attempt: int32(t.Attempt)})
	}
	return a, ok
}

// Finished implements dispatch.Sink.
func (s *sink) Finished(results []execution.Result) error {
	at := execution.ToMsec(time.Now())
	records := make([]execution.Record, len(results))
	for k, r := range results {
		records[k] = execution.Record{At: at, Finished: execution.ToOutcome(r)}
	}
	return s.keep(records)
}

// returnSize is the maximum number of jobs in one record of a return, so that its line stays far below lineMax.
const returnSize = 10_000

// Returned implements dispatch.Sink. It cannot refuse: if the journal fails, the record is sent to the driver
// nevertheless, and written before the next record that the journal accepts. After a restart in between, the jobs are
// still assigned, and will be returned again.
func (s *sink) Returned(jobs []execution.Key, started bool, until time.Time, reason string) {
	at := execution.ToMsec(time.Now())
	var records []execution.Record
	for part := range slices.Chunk(jobs, returnSize) {
		seqs := make([]int64, len(part))
		for k, key := range part {
			seqs[k] = key.Seq
		}
		back := &execution.Giveback{Seqs: seqs, Started: started, Until: execution.ToMsec(until), Reason: reason}
		records = append(records, execution.Record{At: at, Returned: back})
	}
	if err := s.keep(records); err != nil {
		s.lg.Error("recording returned jobs in the journal: will retry", "jobs", len(jobs), "error", err)
		s.order.Lock()
		defer s.order.Unlock()
		s.owed = append(s.owed, records...)
		s.mail.put(records)
	}
}

// scripted writes the end of a script to the journal, and passes it to the driver. Scripts end concurrently with each
// other and with reports from the cluster.
func (s *sink) scripted(end *execution.ScriptEnd) error {
	return s.keep([]execution.Record{{At: end.Ended, Script: end}})
}

// keep writes records to the journal, after those that are owed to it, and passes them to the driver.
func (s *sink) keep(records []execution.Record) error {
	s.order.Lock()
	defer s.order.Unlock()
	if err := s.journal.append(slices.Concat(s.owed, records)...); err != nil {
		return err
	}
	s.owed = nil
	s.mail.put(records)
	return nil
}

// note writes a record of the driver to the journal, but not those that are owed. The driver applies it when it reads
// the mail, so that the order is that of a replay.
func (s *sink) note(record execution.Record) error {
	s.order.Lock()
	defer s.order.Unlock()
	if err := s.journal.append(record); err != nil {
		return err
	}
	s.mail.put([]execution.Record{record})
	return nil
}

// A mailbox holds records on their way from the sink to the driver. It is an unbounded queue: adding records never
// blocks.
type mailbox struct {
	filled chan struct{} // holds a token while there may be mail

	mu   sync.Mutex // guards mail
	mail []execution.Record
}

func newMailbox() *mailbox { return &mailbox{filled: make(chan struct{}, 1)} }

// put adds records and wakes the driver without waiting for it.
func (m *mailbox) put(records []execution.Record) {
	m.mu.Lock()
	m.mail = append(m.mail, records...)
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default: // the token is there
	}
}

// empty removes and returns all mail, in the order of arrival.
func (m *mailbox) empty() []execution.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	return mail
}
