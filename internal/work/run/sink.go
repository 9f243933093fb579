package run

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A sink is a run's dispatch.Sink: it writes what the cluster tells into the journal, and only then puts it
// into the mailbox of the driver. It never waits for the driver, so a slow store holds up no worker.
//
// It keeps what each released job consists of, because an assignment must be recorded with its parts: after a
// restart the record alone says which tasks a worker may have.
type sink struct {
	lg      *slog.Logger
	journal *journal
	mail    *mailbox

	order sync.Mutex         // held from a record's place in the journal to the same place in the mail; guards owed
	owed  []execution.Record // told to the driver, but refused by the journal

	mu   sync.Mutex                 // guards what follows
	jobs map[int64][]execution.Task // :: number of a released job → its tasks, which the cluster has, too
}

func newSink(lg *slog.Logger, j *journal) *sink {
	return &sink{lg: lg, journal: j, mail: newMailbox(), jobs: make(map[int64][]execution.Task)}
}

// released makes jobs known before they are submitted.
func (s *sink) released(jobs []execution.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		s.jobs[j.Seq] = j.Tasks
	}
}

// over forgets jobs that are over.
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

// parts lists what a released job consists of, as records have it.
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

// returnSize bounds the jobs in one record of a return, so that its line stays far below lineMax.
const returnSize = 10_000

// Returned implements dispatch.Sink. It cannot refuse: if the journal does, the driver is told all the
// same, and the record goes in before the next that is taken. After a restart in between the jobs are
// still as assigned, and will be returned again.
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
		s.lg.Error("return of jobs is not in the journal yet", "jobs", len(jobs), "error", err)
		s.order.Lock()
		defer s.order.Unlock()
		s.owed = append(s.owed, records...)
		s.mail.put(records)
	}
}

// scripted writes the end of a script into the journal, and hands it on. Scripts end side by side, and beside what the
// cluster tells.
func (s *sink) scripted(end *execution.ScriptEnd) error {
	return s.keep([]execution.Record{{At: end.Ended, Script: end}})
}

// keep writes records into the journal, behind those that are owed to it, and hands them on.
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

// note is keep of a record of the driver's own: the driver applies it when it comes to it in the mail, in the order in
// which a replay would.
func (s *sink) note(record execution.Record) error {
	s.order.Lock()
	defer s.order.Unlock()
	if err := s.journal.append(record); err != nil {
		return err
	}
	s.mail.put([]execution.Record{record})
	return nil
}

// A mailbox holds records on their way from the sink to the driver. It is a queue without bound: putting
// something in never waits.
type mailbox struct {
	filled chan struct{} // holds a token while there may be mail

	mu   sync.Mutex // guards mail
	mail []execution.Record
}

func newMailbox() *mailbox { return &mailbox{filled: make(chan struct{}, 1)} }

// put adds records and wakes the driver, without waiting for it.
func (m *mailbox) put(records []execution.Record) {
	m.mu.Lock()
	m.mail = append(m.mail, records...)
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default: // the token is there
	}
}

// empty returns all mail, in the order it came.
func (m *mailbox) empty() []execution.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	return mail
}
