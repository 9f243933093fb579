//go:build sites && soak

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Each process that Corral's jobs depend on is killed in the middle of a run and of jobs that were submitted by
// HTCondor's own command. Everything ends as if nothing had been, and nothing is left of what was killed.
func TestCondorSurvivesKills(t *testing.T) {
	t.Parallel()
	for name, victims := range map[string][]victim{
		"here": {
			{"corrald", func(l load) []int { return []int{l.running()} }},
			{"the collector", func(l load) []int { return []int{l.daemon("condor_collector")} }},
			{"the schedd", func(l load) []int { return []int{l.daemon("condor_schedd")} }},
		},
		"at the site": {
			{"a glidein's condor_master and another's supervisor", load.masterAndSupervisor}, // at once: leases take their time
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newCondorUser(t)
			u.startPool(t)
			glideins := u.threeGlideins()
			for i, v := range victims {
				l := u.load(i)
				pids := v.find(l)
				from := time.Now()
				for _, pid := range pids {
					u.kill(pid)
				}
				u.must("up") // which does nothing while corrald lives
				l.finish(v.name, from)
				u.settled(v.name, from, glideins)
			}
			u.must("down")
		})
	}
}

// A victim is what is killed while there is a load.
type victim struct {
	name string
	find func(load) []int
}

func (u *condorUser) threeGlideins() (ids []string) {
	u.t.Helper()
	for range 3 {
		ids = append(ids, u.must("glidein", "create", "--site", "here", "--cluster", "mine", "--cpus", "2", "--memory", "1GiB", "--resubmit", "forever", "-q"))
	}
	for _, id := range ids {
		u.must("glidein", "wait", id, "--for", "workers", "--timeout", "5m")
	}
	return ids
}

// A load is what was under way when something was killed.
type load struct {
	*condorUser
	name  string
	jobs  string // HTCondor's number of the jobs' cluster
	run   string
	tasks []task
}

const jobsOfLoad = 4

// load starts a run and some jobs, and returns when some of each run.
func (u *condorUser) load(i int) load {
	u.t.Helper()
	l := load{condorUser: u, name: fmt.Sprintf("load%d", i), tasks: steps(8, 4*time.Second)}
	for i := range l.tasks { // each execution leaves a line in a file that nobody cleans up
		l.tasks[i].script = fmt.Sprintf("echo >>%s/%s.%s; ", u.open, l.name, l.tasks[i].id) + l.tasks[i].script
	}
	u.write(l.name+".sub", fmt.Sprintf(`executable = /bin/sh
transfer_executable = false
should_transfer_files = YES
arguments = "-c 'echo begun >>%[1]s/%[2]s.job$(Process); sleep 6; echo done'"
request_memory = 64
job_lease_duration = 20
output = %[2]s.out$(Process)
log = %[2]s.log
queue %[3]d
`, u.open, l.name, jobsOfLoad))
	l.jobs, _, _ = strings.Cut(u.sh("condor_submit -terse "+l.name+".sub"), ".")
	u.until("a job that runs", time.Minute, func() bool { return u.begun(l.name+".job") > 0 })
	l.run = u.must("run", u.workflow(l.name, l.tasks...), "--cluster", "mine", "--detach", "-q")
	u.until("a task that runs", time.Minute, func() bool { return u.begun(l.name+".t") > 0 })
	return l
}

// begun counts the open folder's files whose names begin so.
func (u *condorUser) begun(prefix string) int {
	found, _ := filepath.Glob(filepath.Join(u.open, prefix) + "*")
	return len(found)
}

// finish waits for the end of all that was under way.
func (l load) finish(victim string, from time.Time) {
	l.t.Helper()
	l.must("runs", "wait", l.run, "--timeout", "6m")
	r := l.condorUser.user.run(l.run)
	l.t.Logf("%6.1f s  %s killed: the run is %s, %d tasks requeued", time.Since(from).Seconds(), victim, r.State, r.Report.Requeued)
	if r.State != corral.RunSucceeded {
		l.t.Errorf("%s killed: run is %s: %s", victim, r.State, r.Reason)
	}
	wantOutputs(l.t, r.Dir, len(l.tasks))
	for _, k := range read[[]api.TaskStatus](l.user, "runs", "tasks", l.run) {
		executed := strings.Count(l.raw(l.name+"."+k.ID), "\n")
		if executed < 1 || executed > k.Attempts {
			l.t.Errorf("%s killed: task %s was executed %d times in %d attempts", victim, k.ID, executed, k.Attempts)
		}
	}
	l.until("end of the jobs", 3*time.Minute, func() bool {
		return strings.Count(l.raw(l.name+".log"), "Job terminated.") >= jobsOfLoad
	})
	again := 0
	for i := range jobsOfLoad {
		again += strings.Count(l.raw(fmt.Sprintf("%s.job%d", l.name, i)), "\n") - 1
		if got := l.content(fmt.Sprintf("%s.out%d", l.name, i)); got != "done" {
			l.t.Errorf("%s killed: job %d printed %q", victim, i, got)
		}
	}
	l.t.Logf("%6.1f s  %s killed: all jobs are done, %d were started again", time.Since(from).Seconds(), victim, again)
}

// settled waits until the pool and corrald agree that there is one worker of each glidein, whose daemons are the only ones.
func (u *condorUser) settled(victim string, from time.Time, glideins []string) {
	u.t.Helper()
	var workers []corral.Worker
	u.until("one worker of each glidein", 2*time.Minute, func() bool {
		of := map[corral.GlideinID]int{}
		workers = u.workers()
		for _, w := range workers {
			of[w.Glidein]++
			if !w.Connected {
				return false
			}
		}
		return len(of) == len(glideins) && len(workers) == len(glideins)
	})
	u.t.Logf("%6.1f s  %s killed: each glidein has its worker", time.Since(from).Seconds(), victim)
	var masters []int
	for _, w := range workers {
		masters = append(masters, w.PID)
	}
	slices.Sort(masters)
	u.until("no daemon that is nobody's", 2*time.Minute, func() bool {
		return slices.Equal(masters, u.daemons("condor_master", "/sites/")) && len(u.daemons("condor_startd", "/sites/")) == len(masters)
	})
	u.t.Logf("%6.1f s  %s killed: no other daemon is left", time.Since(from).Seconds(), victim)
	// What was killed says no good-bye: its ad stays until it is too old. None is there twice.
	u.until("what condor_status says", 2*time.Minute, func() bool {
		got := strings.Fields(u.sh(`condor_status -constraint PartitionableSlot -af CorralWorker`))
		slices.Sort(got)
		for _, w := range workers {
			if !slices.Contains(got, w.ID) {
				return false
			}
		}
		return len(slices.Compact(slices.Clone(got))) == len(got)
	})
	u.t.Logf("%6.1f s  %s killed: the collector knows each once", time.Since(from).Seconds(), victim)
	for _, g := range read[[]corral.Glidein](u.user, "glidein", "list") {
		running := 0
		for _, a := range g.Attempts {
			if a.Live() {
				running++
			}
		}
		if running != 1 {
			u.t.Errorf("%s killed: glidein %d has %d attempts alive: %+v", victim, g.ID, running, g.Attempts)
		}
	}
}

// daemon returns the pool's process of a program.
func (u *condorUser) daemon(program string) int {
	u.t.Helper()
	pids := u.daemons(program, "/pools/")
	if len(pids) != 1 {
		u.t.Fatalf("processes %s of the pool: %v, want one", program, pids)
	}
	return pids[0]
}

// daemons returns the processes of a program that have a name like this in their environment or command line.
func (u *condorUser) daemons(program, name string) (pids []int) {
	for _, p := range u.processes() {
		proc := "/proc/" + strconv.Itoa(p.pid)
		comm, _ := os.ReadFile(proc + "/comm") // its first 15 bytes
		env, _ := os.ReadFile(proc + "/environ")
		if strings.TrimSpace(string(comm)) == program[:min(len(program), 15)] && strings.Contains(p.command+string(env), name) {
			pids = append(pids, p.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// masterAndSupervisor returns the condor_master of a worker that has one of the jobs, and the pilot of another worker.
func (l load) masterAndSupervisor() []int {
	l.t.Helper()
	first := l.busy()
	for _, w := range l.workers() {
		if w.ID != first.ID && w.PID != 0 {
			return []int{first.PID, parent(parent(w.PID))}
		}
	}
	l.t.Fatalf("no other worker than %s", first.ID)
	return nil
}

// busy returns a worker that has one of the jobs.
func (l load) busy() (found corral.Worker) {
	l.t.Helper()
	l.until("a worker with a job", time.Minute, func() bool {
		slots := l.sh("condor_q -constraint 'ClusterId == " + l.jobs + " && JobStatus == 2' -af RemoteHost")
		for _, w := range l.workers() {
			if w.PID != 0 && strings.Contains(slots, "@"+strings.ReplaceAll(w.ID, "/", "-")+"@") {
				found = w
			}
		}
		return found.PID != 0
	})
	return found
}
