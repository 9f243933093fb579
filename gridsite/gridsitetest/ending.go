package gridsitetest

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// These tests cover jobs that do not end by themselves.

// stubborn is a shell script that reports that it is ready and then ignores every polite request to end.
const stubborn = `trap '' TERM HUP INT; touch ready; while :; do sleep 60; done`

// polite is a shell script that leaves a file when it is asked to end.
const polite = `trap 'touch asked; exit 9' TERM; touch ready; while :; do sleep 0.1; done`

// cancelQueued checks that a waiting job leaves the queue and is not started by a late submission. If the system queues
// no jobs, the job runs and is killed.
func cancelQueued(s *site) {
	spec := gridsite.JobSpec{Tag: "job", Argv: []string{"/bin/sh", "-c", s.sleep},
		BatchOptions: corral.BatchOptions{Queue: s.Held}}
	s.submitSpec(spec)
	if job := s.poll("job")["job"]; s.Held != "" && (job.Phase != gridsite.Queued || !job.StartedAt.IsZero()) {
		s.Errorf("polled %+v, want it queued", job)
	}
	s.expectUnforgotten("job")
	s.cancel("job", time.Minute)
	s.expectCancelled("job")
	if again := s.submitSpec(spec); again == "" || len(s.processes("job")) > 0 {
		s.Errorf("a cancelled job was started by a second submission: %q", again)
	}
}

// cancelRunning checks that a job is asked to end, and has time to do so, before it is killed.
func cancelRunning(s *site) {
	s.submit("job", polite)
	s.awaitFile("job", "ready")
	s.cancel("job", time.Minute)
	s.expectCancelled("job")
	s.expectFile("job", "asked", "")
}

// cancelDaemons checks that every process started by a job ends with it. One of the processes left the session, another
// became a daemon by forking twice, another cleared its environment but stayed in the session, another only runs in the
// background, and the last has a name that resembles a line of /proc/PID/stat.
func cancelDaemons(s *site) {
	s.submit("job", strings.ReplaceAll(`
		setsid SLEEP &
		(setsid sh -c 'cd /; SLEEP & exit' </dev/null >/dev/null 2>&1 &)
		env -i PATH="$PATH" SLEEP &
		(cp "$(command -v sleep)" 's) S 1 1 1' && exec './s) S 1 1 1' `+s.seconds+`) &
		SLEEP`, "SLEEP", s.sleep))
	Until(s, "its five processes", func() bool { return len(s.sleepers()) >= 5 })
	s.cancel("job", time.Minute)
	s.expectCancelled("job")
	s.at.expectNone("cancelled", s.sleepers())
}

// cancelResisting checks that a job that ignores the request is killed after the grace period.
func cancelResisting(s *site) {
	s.submit("job", stubborn)
	s.awaitFile("job", "ready")
	s.cancel("job", time.Second)
	s.expectCancelled("job")
}

// cancelEnded checks that cancelling an ended or unknown job changes nothing, because the caller may repeat the
// request.
func cancelEnded(s *site) {
	s.submit("job", "exit 6")
	s.ended("job")
	s.cancel("job", time.Minute)
	s.expectEnd(s.ended("job"), 6, gridsite.NotKilled)
	s.cancel("unknown", time.Minute)
	if jobs := s.poll("unknown"); len(jobs) != 0 {
		s.Errorf("cancelling made a job: %v", jobs)
	}
}

// killedByWalltime checks that the system ends the job, politely at first, and reports the cause.
func killedByWalltime(s *site) {
	for walltime := Walltime; ; walltime *= 2 { // on a busy machine a job may take longer to be ready
		tag := "job-" + walltime.String()
		s.submitSpec(gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sh", "-c", polite}, Walltime: walltime})
		job := s.ended(tag)
		if job.Killed != gridsite.ByWalltime {
			s.Errorf("job ended as %+v, want it killed by the walltime", job)
		}
		if ran := job.EndedAt.Sub(job.StartedAt); ran < walltime-time.Second || ran > walltime+Patience {
			s.Errorf("it ran for %v, its walltime is %v", ran, walltime)
		}
		if _, err := s.batch.Read(s.Context(), s.full(tag), "asked"); err == nil || walltime > Patience {
			s.expectFile(tag, "asked", "")
			return
		}
	}
}

// leftInBackground checks that a job's remaining processes are ended before the job is reported as ended. Otherwise
// they would run at the same time as the next attempt.
func leftInBackground(s *site) {
	s.submit("job", s.sleep+" & setsid "+s.sleep+" & exit 3")
	s.expectEnd(s.ended("job"), 3, gridsite.NotKilled)
	s.at.expectNone("reported as ended", s.sleepers())
}

// leaderKilled checks that no process of a crashed job remains when the job is reported as ended.
func leaderKilled(s *site) {
	id := s.submit("job", "setsid "+s.sleep+" & "+stubborn)
	s.awaitFile("job", "ready")
	s.Crash(s, id)
	job := s.ended("job")
	if job.Killed != gridsite.ByDisappeared || job.Exit != nil || job.ID != id || job.EndedAt.IsZero() {
		s.Errorf("job ended as %+v, want it disappeared", job)
	}
	s.at.expectNone("reported as ended", s.sleepers())
}
