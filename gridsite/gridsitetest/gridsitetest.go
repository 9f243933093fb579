// Package gridsitetest is the conformance suite of gridsite.Batch: it checks Corral's assumptions with a real batch
// system that is reached through a real transport. Every combination runs the same tests, so that all dialects that
// pass are interchangeable.
//
// A package with a dialect or a transport calls Test with a function that opens a Fixture, and TestOutage if there is a
// server that can fail. The tests use the verbs of site.go: submit, poll, cancel, ended, expectFile. They inspect the
// machine with their own methods (machine.go), never with the dialect's, so that they detect a dialect that misreports
// its processes.
//
// The package also provides fixtures that several tests share: a real Slurm (slurm.go), a real sshd (sshd.go), and this
// machine with other commands in its PATH (thismachine.go).
//
// The invariant: no test leaves a process behind. Processes are found by CORRAL_JOB_TAG, which every dialect puts into
// the environment of its jobs.
package gridsitetest

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
)

// A Fixture is one batch system, prepared for a test.
type Fixture struct {
	Conn gridsite.Conn // reaches the machine on which jobs run

	// Open creates a new client of the same batch system, as after a restart of corrald.
	Open func() gridsite.Batch

	// Root is the directory at the site below which the batch system keeps all its data. Its name contains spaces,
	// quotes and '$'.
	Root string

	// Held is a queue whose jobs never start; empty if the system starts every job at once.
	Held string

	// Crash uses SIGKILL to kill the process at the site that monitors the job.
	Crash func(t testing.TB, id string)
}

// Test runs the suite. It calls open once for each test; open cleans up after itself.
func Test(t *testing.T, open func(t testing.TB) Fixture) {
	for _, c := range []struct {
		name string
		run  func(*site)
	}{
		{"finish 0", finishZero},
		{"finish non-zero", finishNonZero},
		{"command that does not exist", commandMissing},
		{"stdout and stderr come back", outputComesBack},
		{"files, arguments and names pass unharmed", namesPassUnharmed},
		{"clean environment", cleanEnvironment},
		{"find by tag", findByTag},
		{"poll unknown tags", pollUnknown},
		{"end between two polls", endBetweenPolls},
		{"20 jobs in one poll", twentyJobs},
		{"submit twice under a tag", submitTwice},
		{"client opened again", clientOpenedAnew},
		{"cancel while queued", cancelQueued},
		{"cancel while running", cancelRunning},
		{"cancel daemons", cancelDaemons},
		{"cancel a resisting job", cancelResisting},
		{"cancel ended and unknown", cancelEnded},
		{"killed by the walltime", killedByWalltime},
		{"left in the background", leftInBackground},
		{"leader killed", leaderKilled},
		{"read", read},
		{"forget leaves nothing", forgetLeavesNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newSite(t, open(t)))
		})
	}
}

// finishZero checks that the status has the job's id and tag, and its times by the site's clock.
func finishZero(s *site) {
	id := s.submit("job", "exit 0")
	job := s.ended("job")
	s.expectEnd(job, 0, gridsite.NotKilled)
	if id == "" || job.ID != id || job.Tag != s.full("job") {
		s.Errorf("submitted %q as job; polled %+v", id, job)
	}
	if job.StartedAt.IsZero() || job.EndedAt.Before(job.StartedAt) {
		s.Errorf("started %v, ended %v", job.StartedAt, job.EndedAt)
	}
	if age := s.at.now().Sub(job.StartedAt); age < -time.Second || age > Patience+time.Minute {
		s.Errorf("started %v ago by the site's clock", age)
	}
}

// finishNonZero checks that exit statuses are reported as by a shell, including those for signals.
func finishNonZero(s *site) {
	s.submit("seven", "exit 7")
	s.submit("signal", "kill -9 $$")
	s.expectEnd(s.ended("seven"), 7, gridsite.NotKilled)
	s.expectEnd(s.ended("signal"), 128+9, gridsite.NotKilled)
}

// commandMissing checks that a command that cannot be started ends with the status that a shell would report.
func commandMissing(s *site) {
	s.submitSpec(gridsite.JobSpec{Tag: "job", Argv: []string{"/no/such/command"}})
	s.expectEnd(s.ended("job"), 127, gridsite.NotKilled)
}

// outputComesBack checks that output is returned as bytes, not as text.
func outputComesBack(s *site) {
	s.submit("job", "printf 'out\\000\\377'; printf 'err' >&2")
	s.expectEnd(s.ended("job"), 0, gridsite.NotKilled)
	s.expectFile("job", "stdout", "out\x00\xff")
	s.expectFile("job", "stderr", "err")
}

// namesPassUnharmed checks that no intermediate shell interprets arguments, file names or content, and that a job's
// files are private, because they may contain tokens.
func namesPassUnharmed(s *site) {
	const awkward = " a  'b' \"c\" $HOME `id` $(id) \\ \n -n é * ; & | "
	spec := gridsite.JobSpec{
		Tag: "Job_1.a-b",
		Argv: []string{"/bin/sh", "-c", `printf '%s|' "$@"; pwd; cat <"$3"; ls -l`, "sh", awkward, "", "-it's $x",
			"--"},
		Files: map[string][]byte{"-it's $x": []byte("its\x00content\n")},
	}
	s.submitSpec(spec)
	s.expectEnd(s.ended(spec.Tag), 0, gridsite.NotKilled)
	out := s.read(spec.Tag, "stdout")
	want := awkward + "||-it's $x|--|" + s.Root
	if !strings.HasPrefix(out, want) || !strings.Contains(out, "its\x00content\n") {
		s.Errorf("stdout %q, want it to begin with %q and to show the file", out, want)
	}
	if !strings.Contains(out, "-rw------- ") {
		s.Errorf("the file is not private: %s", out)
	}
}

// cleanEnvironment checks that a job's environment contains the mark by which its processes are found, and none of the
// variables that Corral's scripts set for themselves.
func cleanEnvironment(s *site) {
	s.submit("job", "env; touch ready; "+s.at.untilReleased())
	s.awaitFile("job", "ready")
	if len(s.processes("job")) == 0 {
		s.Error("the job does not carry its mark")
	}
	s.at.release()
	s.ended("job")
	if out := s.read("job", "stdout"); !strings.Contains(out, "PATH=") || strings.Contains(out, "LC_ALL=") {
		s.Errorf("its environment is %s", out)
	}
}

// findByTag checks that a tag is not confused with a longer tag that begins with it.
func findByTag(s *site) {
	id := s.submit("wanted", s.at.untilReleased())
	s.submit("wanted-2", "exit 0")
	job := s.running("wanted")
	if job.ID != id || job.Exit != nil || !job.EndedAt.IsZero() {
		s.Errorf("polled %+v, want %s running", job, id)
	}
	s.at.release()
	s.ended("wanted")
	s.ended("wanted-2")
}

// pollUnknown checks that unknown tags are missing from the answer and cause no error.
func pollUnknown(s *site) {
	s.submit("known", "exit 0")
	s.ended("known")
	jobs := s.poll("unknown-1", "known", "unknown-2")
	if _, ok := jobs["known"]; !ok || len(jobs) != 1 {
		s.Errorf("polled %v, want known alone", jobs)
	}
	if jobs := s.poll(); len(jobs) != 0 {
		s.Errorf("polled nothing, got %v", jobs)
	}
}

// endBetweenPolls checks that the exit status of a job that ended between two polls is reported later.
func endBetweenPolls(s *site) {
	s.submit("job", "exit 5")
	Until(s, "the job's end, without a poll", func() bool { return len(s.processes("job")) == 0 })
	s.expectEnd(s.ended("job"), 5, gridsite.NotKilled)
}

// twentyJobs checks that one poll reports many jobs without confusing them.
func twentyJobs(s *site) {
	var tags []string
	for i := range 20 {
		tags = append(tags, fmt.Sprintf("job-%d", i))
		s.submit(tags[i], fmt.Sprintf("exit %d", i))
	}
	Until(s, "the end of 20 jobs", func() bool {
		jobs := s.poll(tags...)
		for _, tag := range tags {
			if jobs[tag].Phase != gridsite.Ended {
				return false
			}
		}
		return true
	})
	jobs := s.poll(tags...)
	for i, tag := range tags {
		s.expectEnd(jobs[tag], i, gridsite.NotKilled)
	}
}

// submitTwice checks that a job starts only once under a tag, even if it is submitted again, before or after its end.
func submitTwice(s *site) {
	first := s.submit("job", "echo started; "+s.at.untilReleased())
	s.running("job")
	if second := s.submit("job", "echo another"); second != first {
		s.Errorf("the second submission is %q, the first %q", second, first)
	}
	s.at.release()
	s.ended("job")
	if third := s.submit("job", "echo third"); third != first {
		s.Errorf("submitted after the end as %q, the first was %q", third, first)
	}
	s.expectFile("job", "stdout", "started\n")
}

// clientOpenedAnew checks that all state is at the site, so that a client opened later, as after a restart, can
// continue to follow the jobs of an earlier client.
func clientOpenedAnew(s *site) {
	id := s.submit("job", s.at.untilReleased()+"; exit 4")
	s.running("job")
	s.batch = s.Open()
	if job := s.running("job"); job.ID != id {
		s.Errorf("a new client sees %q, want %q", job.ID, id)
	}
	s.at.release()
	Until(s, "the job's end", func() bool { return len(s.processes("job")) == 0 })
	s.batch = s.Open()
	s.expectEnd(s.ended("job"), 4, gridsite.NotKilled)
}

// read checks that regular files in a job's directory can be read, and that no files outside it can.
func read(s *site) {
	s.submit("job", "mkdir d; echo deep >d/f; ln -s f d/l; mkfifo pipe")
	s.ended("job")
	s.expectFile("job", "d/f", "deep\n")
	s.expectFile("job", "d/l", "deep\n")
	for _, missing := range [][2]string{{"job", "none"}, {"job", "d"}, {"job", "pipe"}, {"unknown", "stdout"}} {
		if _, err := s.batch.Read(s.Context(), s.full(missing[0]), missing[1]); !errors.Is(err, fs.ErrNotExist) {
			s.Errorf("Read(%q) = %v, want fs.ErrNotExist", missing, err)
		}
	}
	for _, name := range []string{"../job/stdout", "/etc/passwd", "..", "d/../../job/stdout", ""} {
		if b, err := s.batch.Read(s.Context(), s.full("job"), name); err == nil || errors.Is(err, fs.ErrNotExist) {
			s.Errorf("Read(%q) = %q, %v, want a refusal", name, b, err)
		}
	}
}

// forgetLeavesNothing checks that forgetting a job removes all its files, including read-only directories, but not
// before the job's end, and that the root disappears with the last job.
func forgetLeavesNothing(s *site) {
	s.submit("job", "mkdir -p d/e; chmod 0 d; touch .hidden")
	s.submit("job2", s.at.untilReleased())
	s.running("job2")
	s.expectUnforgotten("job2")
	s.at.release()
	for _, tag := range []string{"job", "job2", "unknown"} {
		if tag != "unknown" {
			s.ended(tag)
		}
		if err := s.batch.Forget(s.Context(), s.full(tag)); err != nil {
			s.Errorf("Forget(%s): %v", tag, err)
		}
	}
	if jobs := s.poll("job", "job2"); len(jobs) != 0 {
		s.Errorf("still known: %v", jobs)
	}
	if res := s.at.sh(`find "$1"`, s.Root); len(res.Stdout) != 0 {
		s.Errorf("left below the root:\n%s", res.Stdout)
	}
}
