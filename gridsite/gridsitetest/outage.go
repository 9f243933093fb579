package gridsitetest

import (
	"errors"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// An Outage controls the server on which a Fixture's batch system depends. The Fixture's Conn must not depend on it.
type Outage struct {
	Stop, Start func(t testing.TB)

	// Forget makes the batch system forget all of its jobs; nil if it has no memory of its own.
	Forget func(t testing.TB)
}

// TestOutage checks that no job is lost, duplicated or reported as ended while the server is down. One job runs through
// the outage, one ended before it, and one is submitted during it. After the outage, the last job may or may not have
// been submitted; even if it is submitted again, it must start only once.
func TestOutage(t *testing.T, f Fixture, o Outage) {
	s := newSite(t, f)
	s.submit("job", s.at.untilReleased()+"; exit 4")
	id := s.running("job").ID
	s.submit("ended", "touch done; exit 5")
	s.awaitFile("ended", "done")

	o.Stop(t)
	s.tags = append(s.tags, "late")
	late := gridsite.JobSpec{Tag: s.full("late"), Argv: []string{"/bin/sh", "-c", "echo started >>" +
		shell.Quote(s.Root+".late")}}
	submitted := make(chan error)
	go func() { // such commands take some time
		_, err := s.batch.Submit(t.Context(), late)
		submitted <- err
	}()
	_, err := s.batch.Poll(t.Context(), []string{s.full("job"), s.full("ended")})
	s.expectNoAnswer("Poll", err)
	s.expectNoAnswer("Submit", <-submitted)
	s.at.release()
	Until(s, "the job's end", func() bool { return len(s.processes("job")) == 0 })
	o.Start(t)

	Until(s, "the server to answer", func() bool {
		_, err := s.batch.Poll(t.Context(), nil)
		return err == nil
	})
	s.expectEnd(s.ended("ended"), 5, gridsite.NotKilled)
	job := s.ended("job")
	s.expectEnd(job, 4, gridsite.NotKilled)
	if job.ID != id {
		t.Errorf("the job is %s now, and was %s", job.ID, id)
	}
	if _, known := s.poll("late")["late"]; !known {
		if _, err := s.batch.Submit(t.Context(), late); err != nil {
			t.Fatal(err)
		}
	}
	s.expectEnd(s.ended("late"), 0, gridsite.NotKilled)
	if got := string(s.at.sh(`cat "$1"; rm "$1"`, s.Root+".late").Stdout); got != "started\n" {
		t.Errorf("the late job said %q, want that it started once", got)
	}
	if o.Forget != nil {
		s.memoryLost(o)
	}
}

// memoryLost checks that the end of a job is still reported after the batch system has forgotten the job.
func (s *site) memoryLost(o Outage) {
	s.Helper()
	s.submit("old", "touch done; exit 6")
	s.submitSpec(gridsite.JobSpec{Tag: "waiting", Argv: []string{"/bin/true"},
		BatchOptions: corral.BatchOptions{Queue: s.Held}})
	s.awaitFile("old", "done")
	Until(s, "its end", func() bool { return len(s.processes("old")) == 0 })
	o.Forget(s.T)
	s.expectEnd(s.ended("old"), 6, gridsite.NotKilled)
	if job := s.ended("waiting"); s.Held != "" && (job.Killed != gridsite.ByDisappeared || !job.StartedAt.IsZero()) {
		s.Errorf("a job that waited and was forgotten is %+v; want it disappeared, and never started", job)
	}
}

// expectNoAnswer checks that without a server a call returns an unknown result. A refusal, or success, would be
// mistaken for the site's answer.
func (s *site) expectNoAnswer(what string, err error) {
	s.Helper()
	_, refused := errors.AsType[*gridsite.Refused](err)
	kind := corral.KindOf(err)
	if err == nil || refused || kind != corral.Unavailable && kind != corral.Unknown {
		s.Errorf("%s without a server: %v (%v), want that nothing is known", what, err, kind)
	}
}
