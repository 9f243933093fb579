package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// answerTime is the duration of a simulated command: a round trip through ssh and a quick answer.
const answerTime = 20 * time.Millisecond

// A simulated batch system has jobs that exist only as times: a pilot runs from its submission until all pilots end at
// the same time; other jobs have ended when they are polled.
type simulated struct {
	mu       sync.Mutex // guards the fields below
	jobs     map[string]*simulatedJob
	ended    time.Time      // when all pilots ended; zero: they run
	commands map[string]int // so far, by kind
}

type simulatedJob struct {
	id    string
	pilot bool
	at    time.Time
	gone  time.Time // when it was cancelled
}

func newSimulated() *simulated {
	return &simulated{jobs: map[string]*simulatedJob{}, commands: map[string]int{}}
}

// command waits for the duration of a command and counts it.
func (s *simulated) command(ctx context.Context, kind string) error {
	s.mu.Lock()
	s.commands[kind]++
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(answerTime):
		return nil
	}
}

// counted returns the commands so far, by kind.
func (s *simulated) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.commands)
}

// endAll ends all pilots, each with a report.
func (s *simulated) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
}

func (s *simulated) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if err := s.command(ctx, "submit"); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := jobfiles.Decode(spec.Files[jobfiles.File])
	if err != nil {
		return "", err
	}
	j := &simulatedJob{id: fmt.Sprint(len(s.jobs) + 1), pilot: o.Pilot != nil, at: time.Now()}
	s.jobs[spec.Tag] = j
	return j.id, nil
}

func (s *simulated) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	if err := s.command(ctx, "poll"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		j := s.jobs[tag]
		if j == nil {
			continue
		}
		st := gridsite.JobStatus{Tag: tag, ID: j.id, Phase: gridsite.Running, StartedAt: j.at}
		switch {
		case !j.gone.IsZero():
			st.Phase, st.Killed, st.EndedAt = gridsite.Ended, gridsite.ByCancel, j.gone
		case !j.pilot:
			st.Phase, st.EndedAt = gridsite.Ended, j.at
		case !s.ended.IsZero():
			st.Phase, st.EndedAt = gridsite.Ended, s.ended
		}
		found[tag] = st
	}
	return found, nil
}

// ReadMany returns the reports of jobs that have ended by themselves.
func (s *simulated) ReadMany(ctx context.Context, tags, _ []string) (map[string]map[string][]byte, error) {
	if err := s.command(ctx, "read"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	files := map[string]map[string][]byte{}
	for _, tag := range tags {
		outcome := corral.OutcomeDone
		if j := s.jobs[tag]; j == nil || !j.gone.IsZero() {
			continue
		} else if j.pilot {
			outcome = corral.OutcomeIdle
		}
		b, err := json.Marshal(jobfiles.Report{Outcome: outcome, Reason: "as simulated"})
		if err != nil {
			return nil, err
		}
		files[tag] = map[string][]byte{jobfiles.ReportFile: b}
	}
	return files, nil
}

func (s *simulated) CancelMany(ctx context.Context, tags []string, _ time.Duration) error {
	if err := s.command(ctx, "cancel"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tag := range tags {
		if j := s.jobs[tag]; j != nil && j.gone.IsZero() {
			j.gone = time.Now()
		}
	}
	return nil
}

func (s *simulated) ForgetMany(ctx context.Context, tags []string) error {
	if err := s.command(ctx, "forget"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tag := range tags {
		delete(s.jobs, tag)
	}
	return nil
}

func (s *simulated) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return s.CancelMany(ctx, []string{tag}, grace)
}

func (s *simulated) Read(ctx context.Context, tag, name string) ([]byte, error) {
	files, err := s.ReadMany(ctx, []string{tag}, []string{name})
	if b, ok := files[tag][name]; ok || err != nil {
		return b, err
	}
	return nil, fs.ErrNotExist
}

func (s *simulated) Forget(ctx context.Context, tag string) error {
	return s.ForgetMany(ctx, []string{tag})
}
