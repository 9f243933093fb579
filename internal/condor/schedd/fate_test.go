//go:build sites

package schedd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// in returns the state in the queue of the unfinished job with the given number, or "" if there is no such job.
func (s *site) in(seq int64) string {
	s.Helper()
	ads, err := s.pool.Tools().Query(soon(s), "condor_q", []string{"-constraint", fmt.Sprintf("CorralSeq == %d", seq)}, []string{"ClusterId", "ProcId"})
	if err != nil {
		s.Fatal(err)
	}
	for _, ad := range ads {
		cluster, _ := ad.Int("ClusterId")
		proc, _ := ad.Int("ProcId")
		return eventlog.JobID{Cluster: int(cluster), Proc: int(proc)}.String()
	}
	return ""
}

func (s *site) tool(name string, args ...string) {
	s.Helper()
	if _, err := s.pool.Tools().Run(soon(s), nil, name, args...); err != nil {
		s.Error(err)
	}
}

// one returns a run at a site with a single job, which has started.
func (s *site) one(j execution.Job) (*Submitter, *recorder) {
	s.Helper()
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	q.Submit([]execution.Job{j})
	eventually(s, "start of the job", func() bool { return len(r.workers(j.Seq)) > 0 })
	return q, r
}

// result waits for the single result.
func (s *site) result(r *recorder) execution.Result {
	s.Helper()
	eventually(s, "end of the job", func() bool { return r.ended() > 0 })
	if len(r.results) != 1 || len(r.returned) > 0 {
		s.Fatalf("results = %+v, returned %v, want one result", r.results, r.returned)
	}
	return r.results[0]
}

// empty waits until the queue is empty.
func (s *site) empty() {
	s.Helper()
	eventually(s, "end of the queue", func() bool {
		ads, err := s.pool.Tools().Query(soon(s), "condor_q", nil, []string{"JobStatus"})
		return err == nil && len(ads) == 0
	})
}

func TestHeldJobHasFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	_, r := s.one(sh(s.runDir(), 7, 1, "sleep 600"))
	s.tool("condor_hold", "-reason", "not today", s.in(1))
	res := s.result(r)
	if res.Status != execution.Failed || !strings.Contains(res.Reason, "not today") || res.Worker != "g/0" {
		t.Errorf("result = %+v, want failure with HTCondor's reason", res)
	}
	s.empty()
}

func TestJobWithoutExecutorHasFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, func(c *condor.GlideinConfig) { c.Attributes["CorralPilot"] = "/nowhere/pilot" })
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	q.Submit([]execution.Job{sh(s.runDir(), 7, 1, "true")})
	res := s.result(r)
	t.Log(res.Reason)
	if res.Status != execution.Failed || !strings.Contains(res.Reason, "/nowhere/pilot") {
		t.Errorf("result = %+v, want failure that names the pilot", res)
	}
	s.empty()
}

func TestExecutorThatIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	_, r := s.one(sh(s.runDir(), 7, 1, "kill -9 $PPID; sleep 60"))
	res := s.result(r)
	if res.Status != execution.Failed || res.Reason != "its executor was killed by signal 9 without a result" {
		t.Errorf("result = %+v, want failure", res)
	}
}

func TestRemovedJobHasFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	_, r := s.one(sh(s.runDir(), 7, 1, "sleep 600"))
	s.tool("condor_rm", s.in(1))
	res := s.result(r)
	if res.Status != execution.Failed || !strings.Contains(res.Reason, "removed from HTCondor's queue: via condor_rm") {
		t.Errorf("result = %+v, want failure with HTCondor's reason", res)
	}
}

// A restarted schedd may log the end of a job once more.
func TestSecondEndOfAJobIsNoNews(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	r, q := newRecorder(), s.queue()
	q.Attach(7, r)
	dir := s.runDir()
	q.Submit([]execution.Job{sh(dir, 7, 1, "true")})
	eventually(s, "end of the first job", func() bool { return r.done() == 1 })
	name := filepath.Join(q.cfg.Dir, "7", "log")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, end, ok := strings.Cut(string(before), "\n005 (")
	if !ok {
		t.Fatalf("the log has no end of a job:\n%s", before)
	}
	end, _, _ = strings.Cut(end, "\n...\n")
	log, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.WriteString("005 (" + end + "\n...\n")
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	q.Submit([]execution.Job{sh(dir, 7, 2, "true")})
	eventually(s, "end of the second job", func() bool { return r.done() >= 2 && len(r.workers(2)) > 0 })
	s.empty()
	if len(r.results) != 2 || len(r.returned) > 0 {
		t.Errorf("results = %+v, returned %v, want one of each job", r.results, r.returned)
	}
}

func TestWorkerThatLeavesCutsItsJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.glidein("g", 1, nil)
	_, r := s.one(sh(s.runDir(), 7, 1, "sleep 600"))
	if err := g.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	res := s.result(r)
	t.Log(res.Reason)
	if res.Status != execution.Cut || !strings.Contains(res.Reason, "had to leave") || !res.EndedAt.After(res.StartedAt) {
		t.Errorf("result = %+v, want a cut", res)
	}
	s.empty()
}

func TestWorkerThatVanishesGivesItsJobBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	q := New(s.lg(), Config{Tools: s.pool.Tools(), Dir: filepath.Join(s.dir, "q"), Lease: 25 * time.Second})
	t.Cleanup(q.Close)
	r := newRecorder()
	q.Attach(7, r)
	q.Submit([]execution.Job{sh(dir, 7, 1, "echo $$ >"+dir+"/pid; exec sleep 300")})
	var pid string
	eventually(t, "start of the job", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "pid")) // the job may not have written it yet
		pid = strings.TrimSpace(string(text))
		return pid != "" && len(r.workers(1)) > 0
	})
	s.killOf(filepath.Join(s.dir, "g"), "condor_master", "condor_startd", "condor_starter")
	eventually(t, "end of its process", func() bool {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		return err != nil || strings.Contains(string(status), "State:\tZ") // an init process may be slow to reap it
	})
	eventually(t, "return of the job", func() bool { return r.ended() > 0 })
	t.Log(r.returned, r.results)
	if !strings.HasPrefix(r.returned[1], "true its worker is lost") {
		t.Errorf("returned %v, results %+v, want it back", r.returned, r.results)
	}
	s.empty()
}

func TestCancelReturnsEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	q, r := s.one(sh(dir, 7, 1, "sleep 600"))
	q.Submit([]execution.Job{sh(dir, 7, 2, "true"), sh(dir, 7, 3, "true")})
	q.Cancel(7)
	eventually(t, "end of the jobs", func() bool { return r.ended() == 3 })
	if len(r.results) != 1 || r.results[0].Status != execution.Cancelled || r.returned[2] != "false cancelled" || r.returned[3] != "false cancelled" {
		t.Errorf("results = %+v, returned %v", r.results, r.returned)
	}
	s.empty()
}

func TestKillLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	q, r := s.one(sh(dir, 7, 1, "sleep 600"))
	q.Submit([]execution.Job{sh(dir, 7, 2, "sleep 600"), sh(dir, 7, 3, "true")})
	q.Cancel(7, 1, 2)
	eventually(t, "end of the jobs", func() bool { return r.ended() == 3 })
	statuses := map[execution.Status]int{}
	for _, result := range r.results {
		statuses[result.Status]++
	}
	if statuses[execution.Cancelled] != 1 || statuses[execution.Done] != 1 || r.returned[2] != "false cancelled" {
		t.Errorf("results = %+v, returned %v", r.results, r.returned)
	}
	s.empty()
}

func TestSinkThatRefusesIsToldAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	r := newRecorder()
	r.refuse = errors.New("disk is full")
	q := s.queue()
	q.Attach(7, r)
	q.Submit([]execution.Job{sh(dir, 7, 1, "true")})
	eventually(t, "two attempts to tell", func() bool { return len(r.workers(1)) > 1 })
	r.mu.Lock()
	r.refuse = nil
	r.mu.Unlock()
	if res := s.result(r); res.Status != execution.Done {
		t.Errorf("result = %+v, want done", res)
	}
}

func TestClusteredJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	if err := os.WriteFile(filepath.Join(dir, "data", "run.sh"), []byte("#!/bin/sh\necho \"$HOME $USER $PATH\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	j := sh(dir, 7, 1, "./run.sh")
	j.Tasks[0].Inputs = []string{"run.sh"}
	more := sh(dir, 7, 2, "exit 3").Tasks[0]
	j.Tasks = append(j.Tasks, more)
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	q.Submit([]execution.Job{j})
	eventually(t, "end of the tasks", func() bool { return r.ended() == 2 })
	if r.results[0].Status != execution.Done || r.results[1].Status != execution.Failed || r.results[1].Reason != "exit status 3" {
		t.Errorf("results = %+v", r.results)
	}
	if got := s.read(dir, "tasks", "t1.1", "stdout"); strings.Count(got, " ") != 2 || strings.HasPrefix(got, " ") {
		t.Errorf("home, user and path: %q", got)
	}
}

func TestDetachedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	q, r := s.one(sh(dir, 7, 1, "sleep 600"))
	s.kill("condor_schedd")
	q.Detach(7)
	q.Close() // before the queue could clean up
	q = New(s.lg(), Config{Tools: s.pool.Tools(), Dir: filepath.Join(s.dir, "q"), Claim: time.Second})
	t.Cleanup(q.Close)
	s.empty()
	eventually(t, "end of its files", func() bool {
		left, err := os.ReadDir(filepath.Join(s.dir, "q"))
		_, gone := os.Stat(filepath.Join(dir, "jobs"))
		return err == nil && len(left) == 0 && os.IsNotExist(gone)
	})
	if r.ended() > 0 {
		t.Error("a detached sink received results")
	}
}

// TestMemoryOfJobs shows that a job is neither delayed nor held if it requests little memory, none, or all of a
// worker's.
func TestMemoryOfJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 2, nil)
	dir := s.runDir()
	var jobs []execution.Job
	for seq, need := range []int{0, 10, 256, 250, 1} {
		j := sh(dir, 7, int64(seq), "sleep 7") // HTCondor checks every five seconds
		j.MemoryMiB = need
		jobs = append(jobs, j)
	}
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	s.all(q, r, jobs...)
	for _, res := range r.results {
		if res.Status != execution.Done {
			t.Errorf("job %d: %s", res.Key.Seq, res.Reason)
		}
	}
	if len(r.results) != len(jobs) {
		t.Errorf("returned %v", r.returned)
	}
}
