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

	mu   sync.Mutex                 // guards the fields below
	jobs map[int64][]execution.Task // :: number of a released job → its tasks, shared with the cluster
}

func newSink(lg *slog.Logger, j *journal) *sink {
	return &sink{lg: lg, journal: j, mail: newMailbox(), jobs: make(map[int64][]execution.Task)}
}

// released records jobs before they are submitted.
func (s *sink) released(jobs []execution.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		s.jobs[j.Seq] = j.Tasks
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
		parts, ok := s.parts(key.Seq)
		if !ok {
			return fmt.Errorf("job %d of run %d is not known", key.Seq, key.Run)
		}
		records[k] = execution.Record{
			At: at, Assigned: &execution.Assignment{Seq: key.Seq, Worker: worker, Parts: parts},
		}
	}
	return s.keep(records)
}

// parts lists the parts of a released job in the form of records.
func (s *sink) parts(seq int64) (parts []execution.Part, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks, ok := s.jobs[seq]
	for _, t := range tasks {
		parts = append(parts, execution.Part{Task: int32(t.Index), Attempt: int32(t.Attempt)})
	}
	return parts, ok
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
