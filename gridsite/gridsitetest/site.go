package gridsitetest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
)

// A site is a fixture used by one test; its methods are the verbs of the tests.
type site struct {
	*testing.T
	Fixture
	batch   gridsite.Batch
	at      machine  // the machine where its jobs run
	nonce   string   // suffix of every tag, so that concurrent tests do not interfere
	seconds string   // an argument of sleep(1) that only this test uses: many years
	sleep   string   // the command with that argument
	tags    []string // submitted tags, without suffix
}

// newSite opens a client for one test. The test's processes sleep for a number of seconds that is unique to the test,
// so that they can be distinguished from the processes of other tests.
func newSite(t *testing.T, f Fixture) *site {
	seconds := strconv.Itoa(1e9 + rand.IntN(1e9))
	at := machine{t, f.Conn, f.Root + ".released"}
	s := &site{T: t, Fixture: f, batch: f.Open(), at: at, nonce: seconds, seconds: seconds, sleep: "sleep " + seconds}
	t.Cleanup(s.sweep)
	return s
}

// full returns a tag of this test with the suffix that is used at the site. All other tags in this file have no suffix.
func (s *site) full(tag string) string { return tag + "." + s.nonce }

// Patience is the time for which tests wait for an event on a machine that is slow or busy with other tests.
const Patience = 3 * time.Minute

// Until polls until done reports true, for at most Patience. It polls less and less often, to leave the processor to
// the awaited event.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for pause := 10 * time.Millisecond; !done(); pause = min(pause*3/2, 300*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(pause)
	}
}

// submit submits a shell script as a job.
func (s *site) submit(tag, script string) string {
	s.Helper()
	return s.submitSpec(gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sh", "-c", script}})
}

// submitSpec submits a job with one host and one cpu, for an hour unless the spec sets a walltime. At the end of the
// test, no process of the job may be left.
func (s *site) submitSpec(spec gridsite.JobSpec) string {
	s.Helper()
	spec.Hosts, spec.CPUs = 1, 1
	spec.Walltime = cmp.Or(spec.Walltime, time.Hour)
	s.tags = append(s.tags, spec.Tag)
	spec.Tag = s.full(spec.Tag)
	id, err := s.batch.Submit(s.Context(), spec)
	if err != nil {
		s.Fatalf("Submit(%s): %v", spec.Tag, err)
	}
	return id
}

// poll queries jobs by their short tags.
func (s *site) poll(tags ...string) map[string]gridsite.JobStatus {
	s.Helper()
	var full []string
	for _, tag := range tags {
		full = append(full, s.full(tag))
	}
	jobs, err := s.batch.Poll(s.Context(), full)
	if err != nil {
		s.Fatalf("Poll: %v", err)
	}
	short := map[string]gridsite.JobStatus{}
	for tag, job := range jobs {
		short[strings.TrimSuffix(tag, "."+s.nonce)] = job
	}
	return short
}

// cancel cancels a job, and checks at once that none of its processes is left.
func (s *site) cancel(tag string, grace time.Duration) {
	s.Helper()
	if err := s.batch.Cancel(s.Context(), s.full(tag), grace); err != nil {
		s.Fatalf("Cancel(%s): %v", tag, err)
	}
	s.at.expectNone("Cancel returned", s.processes(tag))
}

// ended waits for the job's end and returns its status.
func (s *site) ended(tag string) gridsite.JobStatus { return s.reached(tag, gridsite.Ended) }

// running waits until the job runs.
func (s *site) running(tag string) gridsite.JobStatus { return s.reached(tag, gridsite.Running) }

// reached waits until the job is in this phase.
func (s *site) reached(tag string, want gridsite.Phase) (job gridsite.JobStatus) {
	s.Helper()
	Until(s, tag+" to be "+string(want), func() bool {
		job = s.poll(tag)[tag]
		return job.Phase == want
	})
	return job
}

// expectEnd checks how a job ended.
func (s *site) expectEnd(job gridsite.JobStatus, exit int, killed gridsite.Killed) {
	s.Helper()
	if job.Phase != gridsite.Ended || job.Exit == nil || *job.Exit != exit || job.Killed != killed {
		s.Errorf("%s ended as %+v, want exit status %d, killed %q", job.Tag, job, exit, killed)
	}
}

// expectCancelled waits for the job's end and checks that it is reported as cancelled.
func (s *site) expectCancelled(tag string) {
	s.Helper()
	if job := s.ended(tag); job.Killed != gridsite.ByCancel {
		s.Errorf("%s ended as %+v, want it cancelled", tag, job)
	}
}

// expectUnforgotten checks that Forget refuses a job that has not ended.
func (s *site) expectUnforgotten(tag string) {
	s.Helper()
	err := s.batch.Forget(s.Context(), s.full(tag))
	if _, refused := errors.AsType[*gridsite.Refused](err); !refused {
		s.Errorf("Forget of %s, which has not ended: %v, want it refused", tag, err)
	}
}

// read returns a file of the job's directory.
func (s *site) read(tag, name string) string {
	s.Helper()
	b, err := s.batch.Read(s.Context(), s.full(tag), name)
	if err != nil {
		s.Fatalf("Read(%s, %s): %v", tag, name, err)
	}
	return string(b)
}

// expectFile checks the content of a file of the job's directory.
func (s *site) expectFile(tag, name, want string) {
	s.Helper()
	if got := s.read(tag, name); got != want {
		s.Errorf("%s of %s = %q, want %q", name, tag, got, want)
	}
}

// awaitFile waits until the job has created a file in its directory.
func (s *site) awaitFile(tag, name string) {
	s.Helper()
	Until(s, name+" of "+tag, func() bool {
		_, err := s.batch.Read(s.Context(), s.full(tag), name)
		return err == nil
	})
}

// processes lists the live processes of a job that have its mark in their environments, including those that monitor
// the job.
func (s *site) processes(tag string) []string {
	s.Helper()
	return s.at.find("CORRAL_JOB_TAG=" + s.full(tag))
}

// sleepers lists the live processes that any job of this test started with s.sleep, even if they changed their session
// and environment.
func (s *site) sleepers() []string {
	s.Helper()
	return s.at.find(s.seconds)
}

// sweep ends each test: it cancels the jobs of a failed test, and checks that no process is left.
func (s *site) sweep() {
	for _, tag := range s.tags {
		if s.Failed() {
			if err := s.batch.Cancel(s.at.cleanupContext(), s.full(tag), 0); err != nil {
				s.Errorf("Cancel(%s): %v", tag, err)
			}
		}
		Until(s, "every process of "+tag+" to go", func() bool { return len(s.processes(tag)) == 0 })
	}
	s.at.expectNone("after the test", s.sleepers())
}
