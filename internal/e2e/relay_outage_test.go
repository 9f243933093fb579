//go:build sites && soak

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

const outageTasks, outageJobs = 6, 2

// The head node's sshd is dead for a minute while workers behind it run tasks and jobs. Within their lease no task is done
// twice; beyond it all that ran are done again, once. Jobs may be done again either way: HTCondor 23.9.6 reconnects them,
// and then refuses their output ("transkey is invalid", says the shadow's log) until their lease is over.
func TestRelaySurvivesOutages(t *testing.T) {
	t.Parallel()
	for name, lease := range map[string]time.Duration{"within the lease": 3 * time.Minute, "beyond the lease": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHeaded(t, lease)
			embedded, condor := h.bothKinds()
			relay := h.relay()
			run := h.loadOfOutage(lease)
			h.outage(time.Minute)
			h.wantRelay(relay)
			h.timed("the run ends", func() { h.must("runs", "wait", run, "--timeout", "6m") })
			again := lease < time.Minute
			h.wantTasks(run, again)
			h.timed("the jobs end", h.wantJobs)
			h.wantGlideins(embedded, condor)
			h.timed("ten jobs", h.tenJobs)
			if !again {
				h.anotherCorrald()
			}
			h.timed("all goes", func() { h.must("down", "--force") })
		})
	}
}

// loadOfOutage starts a run and jobs, which write a line wherever they begin, and returns once two of each have.
func (h *headed) loadOfOutage(lease time.Duration) (run string) {
	h.t.Helper()
	h.write("outage.sub", fmt.Sprintf(`executable = /bin/sh
transfer_executable = false
should_transfer_files = YES
arguments = "-c 'echo begun >>%[1]s/begun.job$(Process); sleep 40; echo done'"
request_memory = 16
job_lease_duration = %[2]d
output = outage.out$(Process)
log = outage.log
queue %[3]d
`, h.open, int(min(lease, 100*time.Second).Seconds()), outageJobs))
	h.in("condor_submit -terse outage.sub")
	tasks := steps(outageTasks, 30*time.Second)
	for i := range tasks {
		tasks[i].script = fmt.Sprintf("echo begun >>%s/begun.%s; ", h.open, tasks[i].id) + tasks[i].script
	}
	run = h.must("run", h.workflow("outage", tasks...), "--detach", "-q")
	h.until("two tasks and two jobs run", 2*time.Minute, func() bool { return h.begun("begun.t") >= 2 && h.begun("begun.job") == outageJobs })
	return run
}

// outage kills the sshd for so long. The site says meanwhile what is the matter.
func (h *headed) outage(d time.Duration) {
	h.t.Helper()
	h.stopSSHD()
	over := time.NewTimer(d)
	trouble := func() corral.SiteTrouble { return read[corral.Site](h.user, "site", "show", "hpc").Trouble }
	h.until("the site says why", time.Minute, func() bool { return strings.Contains(trouble().Why, "connection refused") })
	<-over.C
	if why := trouble().Why; !strings.Contains(why, "connection refused") {
		h.t.Errorf("after %s the site says %q", d, why)
	}
	h.timed("the site is back", func() {
		h.startSSHD()
		h.until("no trouble", 2*time.Minute, func() bool { return trouble().Why == "" })
	})
}

// A relayPlace is what a relay notes of itself at its site.
type relayPlace struct{ Port, PID int }

func (h *headed) relay() (p relayPlace) {
	h.t.Helper()
	b, err := os.ReadFile(h.open + "/site/relay.json")
	if err := errors.Join(err, json.Unmarshal(b, &p)); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// wantRelay waits until another relay is where one was, which is gone, and workers have come back through it.
func (h *headed) wantRelay(before relayPlace) {
	h.t.Helper()
	h.timed("another relay, and its workers", func() {
		h.until("another relay", time.Minute, func() bool { return h.relay().PID != before.PID })
		h.until("workers", time.Minute, func() bool {
			all := h.user.workers()
			return len(all) == 1 && all[0].Connected
		})
	})
	if now := h.relay(); now.Port != before.Port {
		h.t.Errorf("the relay was at port %d and is at %d", before.Port, now.Port)
	}
	h.until("the one before to be gone", time.Minute, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", before.PID))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// lines counts those of a file of the open folder.
func (h *headed) lines(name string) int { return strings.Count(h.raw(name), "\n") }

// wantTasks checks that the run is whole, and what was executed twice.
func (h *headed) wantTasks(run string, again bool) {
	h.t.Helper()
	r := h.run(run)
	twice := 0
	for i := range outageTasks {
		n := h.lines(fmt.Sprintf("begun.t%03d", i))
		if n < 1 || n > 2 {
			h.t.Errorf("task %d was executed %d times", i, n)
		}
		twice += n - 1
	}
	h.t.Logf("%d tasks were executed twice, %d queued again", twice, r.Report.Requeued)
	if r.State != corral.RunSucceeded || (twice > 0) != again || r.Report.Requeued != twice {
		h.t.Errorf("run is %s with %d tasks queued again and %d executed twice, want SUCCEEDED, and some of them: %v", r.State, r.Report.Requeued, twice, again)
	}
	wantOutputs(h.t, r.Dir, outageTasks)
}

// wantJobs waits until all jobs are done, after two executions at most.
func (h *headed) wantJobs() {
	h.t.Helper()
	h.until("the jobs end", 8*time.Minute, func() bool { return strings.Count(h.raw("outage.log"), "Job terminated.") == outageJobs })
	for i := range outageJobs {
		if n, said := h.lines(fmt.Sprintf("begun.job%d", i)), h.content(fmt.Sprintf("outage.out%d", i)); n < 1 || n > 2 || said != "done" {
			h.t.Errorf("job %d was executed %d times and said %q; its log:\n%s", i, n, said, h.raw("outage.log"))
		}
	}
}

// wantGlideins checks that each has the attempt that it began with, and no other.
func (h *headed) wantGlideins(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		if g := h.glidein(id); len(g.Attempts) != 1 || g.Attempts[0].State != corral.JobRunning {
			h.t.Errorf("glidein %s is %s with the attempts %+v, want one that is RUNNING", id, g.State, g.Attempts)
		}
	}
}

// anotherCorrald kills corrald: the next one has a relay where workers look for it.
func (h *headed) anotherCorrald() {
	h.t.Helper()
	before := h.relay()
	run := h.must("run", h.workflow("killed", steps(4, 5*time.Second)...), "--detach", "-q")
	h.kill(h.running())
	h.asUser("corral up")
	h.wantRelay(before)
	h.must("runs", "wait", run, "--timeout", "6m")
	if r := h.run(run); r.State != corral.RunSucceeded {
		h.t.Errorf("run is %s: %s", r.State, r.Reason)
	}
	h.tenJobs()
}
