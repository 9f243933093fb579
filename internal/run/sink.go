package run

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// A sink is a run's pool.Sink: it writes what the cluster tells into the journal, and only then puts it
// into the mailbox of the driver. It never waits for the driver.
type sink struct {
	lg      *slog.Logger
	journal *journal
	mail    *mailbox
	owed    []record // told to the driver, but refused by the journal; the cluster's calls own it

	mu   sync.Mutex       // guards what follows
	jobs map[int64][]part // :: number of a released job → what it consists of
}

func newSink(lg *slog.Logger, j *journal) *sink {
	return &sink{lg: lg, journal: j, mail: newMailbox(), jobs: make(map[int64][]part)}
}

// released makes jobs known before they are submitted.
func (s *sink) released(jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		s.jobs[j.seq] = j.parts
	}
}

// over forgets jobs that the state has forgotten.
func (s *sink) over(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, seq)
}

// Assigned implements pool.Sink.
func (s *sink) Assigned(worker string, jobs []execution.Key) error {
	at := toMsec(time.Now())
	records := make([]record, len(jobs))
	for k, key := range jobs {
		parts, ok := s.parts(key.Seq)
		if !ok {
			return fmt.Errorf("job %d of run %d is not known", key.Seq, key.Run)
		}
		records[k] = record{At: at, Assigned: &assignment{Seq: key.Seq, Worker: worker, Parts: parts}}
	}
	return s.keep(records)
}

func (s *sink) parts(seq int64) ([]part, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, ok := s.jobs[seq]
	return parts, ok
}

// Finished implements pool.Sink.
func (s *sink) Finished(results []execution.Result) error {
	at := toMsec(time.Now())
	records := make([]record, len(results))
	for k, r := range results {
		records[k] = record{At: at, Finished: toOutcome(r)}
	}
	return s.keep(records)
}

// returnSize bounds the jobs in one record of a return, so that its line stays far below lineMax.
const returnSize = 10_000

// Returned implements pool.Sink. It cannot refuse: if the journal does, the driver is told all the
// same, and the record goes in before the next that is taken. After a restart in between the jobs are
// still as assigned, and will be returned again.
func (s *sink) Returned(jobs []execution.Key, started bool, reason string) {
	at := toMsec(time.Now())
	var records []record
	for part := range slices.Chunk(jobs, returnSize) {
		seqs := make([]int64, len(part))
		for k, key := range part {
			seqs[k] = key.Seq
		}
		records = append(records, record{At: at, Returned: &giveback{Seqs: seqs, Started: started, Reason: reason}})
	}
	if err := s.keep(records); err != nil {
		s.lg.Error("return of jobs is not in the journal yet", "jobs", len(jobs), "error", err)
		s.owed = append(s.owed, records...)
		s.mail.put(records)
	}
}

// keep writes records into the journal, behind those that are owed to it, and hands them on.
func (s *sink) keep(records []record) error {
	if err := s.journal.append(slices.Concat(s.owed, records)...); err != nil {
		return err
	}
	s.owed = nil
	s.mail.put(records)
	return nil
}

// A mailbox is a queue without bound: who puts something in never waits.
type mailbox struct {
	filled chan struct{} // holds a token while there may be mail

	mu   sync.Mutex // guards mail
	mail []record
}

func newMailbox() *mailbox { return &mailbox{filled: make(chan struct{}, 1)} }

func (m *mailbox) put(records []record) {
	m.mu.Lock()
	m.mail = append(m.mail, records...)
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default: // the token is there
	}
}

// empty returns all mail, in the order it came.
func (m *mailbox) empty() []record {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	return mail
}
