//go:build sites && soak

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// The same on an HTCondor cluster, whose schedd is one more that may die.
func TestKillsCondor(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t, "CORRALD_JOB_LEASE=20s") // which a worker that dies costs
	u.startPool(t)
	m := matrix{user: u.user, cluster: "mine", workers: 2, flags: []string{"--clustering", "horizontal=10"},
		glidein: []string{"--site", "here", "--cluster", "mine", "--cpus", "2", "--memory", "1GiB"}}
	m.play(
		cell{name: "worker", victim: func(w corral.Worker, _ int) int { return w.PID }},
		cell{name: "pilot", victim: func(w corral.Worker, _ int) int { return parent(parent(w.PID)) }},
		cell{name: "corrald", victim: func(corral.Worker, int) int { return u.running() }},
		cell{name: "client", victim: func(_ corral.Worker, client int) int { return client }},
		// A schedd that is killed may have forgotten that it started a job, and starts it again by itself.
		cell{name: "schedd", victim: func(corral.Worker, int) int { return u.daemon("condor_schedd") }, twice: true},
	)
	u.must("down")
}

// The same where the tasks stream: what is killed is then a worker job's program, too.
func TestKillsStreamed(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t, "CORRALD_LEASE=5s")
	u.startPool(t)
	m := matrix{user: u.user, cluster: "mine", workers: 2, flags: []string{"--stream"},
		glidein: []string{"--site", "here", "--cluster", "mine", "--cpus", "2", "--memory", "1GiB"}}
	m.play(
		cell{name: "worker job", victim: func(corral.Worker, int) (pid int) {
			u.until("a worker job", 5*time.Minute, func() bool { pid = u.streamed(); return pid != 0 })
			return pid
		}},
		cell{name: "worker", victim: func(w corral.Worker, _ int) int { return w.PID }},
		cell{name: "pilot", victim: func(w corral.Worker, _ int) int { return parent(parent(w.PID)) }},
		cell{name: "corrald", victim: func(corral.Worker, int) int { return u.running() }},
		cell{name: "client", victim: func(_ corral.Worker, client int) int { return client }},
		cell{name: "schedd", victim: func(corral.Worker, int) int { return u.daemon("condor_schedd") }},
	)
	u.until("an empty queue", 5*time.Minute, func() bool {
		jobs, err := u.trySh("condor_q -allusers -af ClusterId")
		return err == nil && jobs == ""
	})
	u.must("down")
}

// streamed is the program of a worker job, 0 if none runs.
func (u *condorUser) streamed() int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		line, _ := os.ReadFile(name)
		if program, rest, _ := strings.Cut(string(line), "\x00"); strings.HasPrefix(rest, "stream\x00") &&
			strings.HasPrefix(program, u.dir) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	return 0
}
