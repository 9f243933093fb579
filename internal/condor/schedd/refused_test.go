//go:build sites

package schedd

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// impatient returns a queue that retries refused jobs for one second.
func (s *site) impatient() *Submitter {
	q := New(s.lg(), Config{Tools: s.pool.Tools(), Dir: filepath.Join(s.dir, "q"), Patience: time.Second})
	s.Cleanup(q.Close)
	return q
}

// A full schedd accepts the other jobs when it has room, however long that takes.
func TestJobsWaitForAFullSchedd(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, "MAX_JOBS_SUBMITTED = 2\n")
	s.glidein("g", 2, nil)
	dir := s.runDir()
	var jobs []execution.Job
	for seq := range int64(5) {
		jobs = append(jobs, sh(dir, 7, seq, "sleep 1"))
	}
	r, q := newRecorder(), s.impatient()
	q.Attach(7, r)
	s.all(q, r, jobs...)
	for _, res := range r.results {
		if res.Status != execution.Done {
			t.Errorf("job %d: %s", res.Key.Seq, res.Reason)
		}
	}
}

// If jobs are submitted together, only the job that would be refused by itself fails.
func TestRefusedJobFailsAlone(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, `SUBMIT_REQUIREMENT_NAMES = NOTHREE
SUBMIT_REQUIREMENT_NOTHREE = CorralSeq =!= 3
SUBMIT_REQUIREMENT_NOTHREE_REASON = "we take no threes"
`)
	s.glidein("g", 2, nil)
	dir := s.runDir()
	var jobs []execution.Job
	for seq := range int64(8) {
		jobs = append(jobs, sh(dir, 7, seq, "true"))
	}
	r, q := newRecorder(), s.impatient()
	q.Attach(7, r)
	s.all(q, r, jobs...)
	for _, res := range r.results {
		if bad := res.Key.Seq == 3; bad != (res.Status == execution.Failed) || bad != strings.Contains(res.Reason, "we take no threes") {
			t.Errorf("job %d: %s, %s", res.Key.Seq, res.Status, res.Reason)
		}
	}
}
