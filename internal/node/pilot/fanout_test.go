//go:build sites

package pilot_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// ways are the ways in which a pilot starts workers on the other nodes, each with a function that starts such a pilot.
var ways = map[string]func(s site, hosts int) *run{
	"ssh": func(s site, hosts int) *run {
		nodes := []string{"n1", "n2", "n3", "n4"}
		return s.startBySSH(nodes[:hosts]...)
	},
	"srun": site.startBySrun,
}

// everyWay runs a test as subtests, one for each way.
func everyWay(t *testing.T, test func(t *testing.T, start func(s site, hosts int) *run)) {
	t.Parallel()
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start)
		})
	}
}

// startBySSH starts a pilot on several nodes. Each of them is this machine, and all but the first are reached by ssh.
func (s site) startBySSH(nodes ...string) *run {
	s.t.Helper()
	return s.startBy(needSSHD(s.t), nodes...)
}

// startBy starts a pilot that finds an ssh program in a folder.
func (s site) startBy(bin string, nodes ...string) *run {
	s.t.Helper()
	return s.startUnder("env", "PATH="+bin+":"+os.Getenv("PATH"), "CORRAL_JOB_TAG="+s.root,
		"CORRAL_NODES="+strings.Join(nodes, " "), "CORRAL_FANOUT=ssh", s.ownProgram(), "run", "--dir", s.dir)
}

// startBySrun starts a pilot as a Slurm job.
func (s site) startBySrun(hosts int) *run {
	s.t.Helper()
	file, status := filepath.Join(s.root, "script"), filepath.Join(s.root, "status")
	script := fmt.Sprintf("#!/bin/sh\nexport CORRAL_NODES=\"$(echo $(scontrol show hostnames))\" CORRAL_FANOUT=srun CORRAL_JOB_TAG='%s'\n"+
		"'%s' run --dir '%s'\necho $? >'%s.new'\nmv '%[4]s.new' '%[4]s'\n", s.root, s.ownProgram(), s.dir, status)
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		s.t.Fatal(err)
	}
	argv := append([]string{"env"}, needSlurm(s.t).Environ()...)
	argv = append(argv, "sh", "-c", // sbatch --wait polls only every half minute
		`sbatch --quiet --nodes="$0" --ntasks-per-node=1 --cpus-per-task=2 --chdir="$1" --output="$1/output" "$1/script" &&
		until [ -s "$1/status" ]; do sleep .2; done; exit "$(cat "$1/status")"`, strconv.Itoa(hosts), s.root)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(s.root, "output"))
			s.t.Logf("the job said:\n%s", log)
		}
	})
	return s.startUnder(argv[0], argv[1:]...)
}

// ownProgram returns the path of a copy of the pilot program below this site, which identifies the site's processes on
// every node. At the end of the test, none of these processes may be left.
func (s site) ownProgram() string {
	s.t.Helper()
	own := filepath.Join(s.root, "pilot")
	if err := os.Link(program, own); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		for _, pid := range lasting(func() []int { return s.processes("") }) {
			s.t.Errorf("process %d was left: %s", pid, commandLine(pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return own
}

// processes returns the processes of the site's own pilot program that were started with the given verb; "": all its
// processes and their descendants.
func (s site) processes(verb string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !alive(pid) {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		ours := strings.HasPrefix(exe, s.root+"/")
		if ours && strings.Contains(commandLine(pid), " "+verb) || verb == "" && bytes.Contains(env, []byte("CORRAL_JOB_TAG="+s.root+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// supervisor returns the pilot's supervisor process.
func (s site) supervisor() int {
	s.t.Helper()
	var pids []int
	eventually(s.t, "the supervisor", func() bool { pids = s.processes("run"); return len(pids) == 1 })
	return pids[0]
}

func TestWorkersServeOnEveryNode(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(s site, hosts int) *run) {
		s := newService(t)
		r := start(newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 3 }), 3)
		hosts := map[string]bool{}
		for _, w := range s.workers(3) {
			hosts[w.Host] = true
		}
		if len(hosts) != 3 {
			t.Errorf("workers of %v, want of three nodes", hosts)
		}
		met := t.TempDir() // each task waits there for the two others
		for range 3 {
			s.submit("test -n $CORRAL_JOB_TAG && touch "+met+"/$$ && until [ $(ls "+met+" | wc -l) = 3 ]; do sleep .1; done", time.Minute)
		}
		seen := map[string]bool{}
		for range 3 {
			got := within(t, "a result", s.results)
			if got.Status != execution.Done {
				t.Errorf("result = %+v, want done", got)
			}
			seen[got.Worker] = true
		}
		if len(seen) != 3 {
			t.Errorf("tasks ran on %v, want three workers", seen)
		}
		s.dispatcher.Drain(7)
		if rep := r.report(0, corral.OutcomeDrained, false); len(rep.Lost) > 0 || rep.Reason != "asked to drain" {
			t.Errorf("report %+v names a node", rep)
		}
	})
}

// These events end a pilot on several nodes. No process is left on any of them; newSite's cleanup checks this.
func TestNodesAreCleared(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(s site, hosts int) *run) {
		for _, c := range []struct {
			name     string
			walltime time.Duration
			end      func(s *service, r *run) error
			exit     int
			outcome  corral.Outcome
		}{
			{"removed", 10 * time.Minute, func(s *service, _ *run) error { s.dispatcher.Leave(7); return nil }, 0, corral.OutcomeRemoved},
			{"preempted", 10 * time.Minute, func(_ *service, r *run) error { return syscall.Kill(r.supervisor(), syscall.SIGTERM) }, 4, corral.OutcomePreempted},
			{"expired", time.Minute, func(*service, *run) error { return nil }, 0, corral.OutcomeExpired},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				r := start(newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts, p.Walltime = 2, corral.Seconds(c.walltime) }), 2)
				s.workers(2)
				escaped := s.children(2, escaping)
				if err := c.end(s, r); err != nil {
					t.Fatal(err)
				}
				rep := r.report(c.exit, c.outcome, false)
				if took := rep.EndedAt.Sub(rep.StartedAt); took > c.walltime+sloth {
					t.Errorf("it took %s of %s", took, c.walltime)
				}
				if stays(escaped...) {
					t.Error("a task's child was left")
				}
			})
		}
	})
}

// children runs n tasks, and returns the process ids that they write.
func (s *service) children(n int, task func(file string) string) (pids []int) {
	s.t.Helper()
	files := make([]string, n)
	for i := range files {
		files[i] = filepath.Join(s.t.TempDir(), "pid")
		s.submit(task(files[i]), 10*time.Millisecond) // a deliberately wrong estimate
	}
	for _, file := range files {
		pids = append(pids, pidFrom(s.t, file))
	}
	return pids
}

func TestPilotOfSeveralNodesLeavesWhenIdle(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(s site, hosts int) *run) {
		s := newService(t)
		r := start(newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts, p.Idle = 2, corral.Seconds(idle) }), 2)
		s.meet(2)
		r.report(0, corral.OutcomeIdle, false)
	})
}

// A worker on another node dies or hangs, or is lost together with its host or with the connection to it.
func TestWorkerOnAnotherNodeIsReplaced(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(s site, hosts int) *run) {
		for _, c := range []struct {
			name   string
			verb   string // of the victim
			signal syscall.Signal
			task   func(file string) string
		}{
			{"killed", "worker", syscall.SIGKILL, escaping},
			{"stopped", "worker", syscall.SIGSTOP, escaping},
			{"way there lost", "", syscall.SIGKILL, escaping},
			// In this case only Slurm knows the processes that have left their sessions.
			{"host killed", "host", syscall.SIGKILL, func(file string) string { return "echo $$ >" + file + "; exec sleep 1000" }},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				r := start(newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 2 }), 2)
				s.workers(2)
				children := s.children(2, c.task)
				old := s.far()
				victim := r.victim(old.PID, c.verb)
				if err := syscall.Kill(victim, c.signal); err != nil {
					t.Fatal(err)
				}
				var lost int // number of the tasks' children that are gone
				eventually(t, "another worker there", func() bool {
					now := s.far()
					lost = len(slices.DeleteFunc(slices.Clone(children), alive))
					return now.PID != old.PID && now.Connected
				})
				if lost == 0 {
					t.Error("a task of the old worker still ran when the next one had registered")
				}
				if lost == 2 {
					t.Error("the task of the worker on the first node is gone, too")
				}
				s.dispatcher.Leave(7)
				r.report(0, corral.OutcomeRemoved, false)
			})
		}
	})
}

// far returns the worker on the second node.
func (s *service) far() (far corral.Worker) {
	for _, w := range s.dispatcher.Workers() {
		if strings.HasSuffix(w.ID, "/1") {
			far = w
		}
	}
	return far
}

// victim returns the process of a worker, of its host, or of the srun or ssh that leads to it.
func (r *run) victim(worker int, verb string) int {
	r.t.Helper()
	parentOf := func(pid int) int {
		f := statOf(pid)
		if f == nil { // any process of this machine may have ended
			return 0
		}
		parent, _ := strconv.Atoi(f[1])
		return parent
	}
	switch verb {
	case "worker":
		return worker
	case "host":
		host := parentOf(worker)
		if host == 0 {
			r.t.Fatalf("process %d is gone", worker)
		}
		return host
	}
	supervisor := r.supervisor()
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && alive(pid) && parentOf(pid) == supervisor && !slices.Contains(r.processes("worker"), pid) {
			if line := commandLine(pid); strings.Contains(line, "ssh ") || strings.Contains(line, "srun ") {
				return pid
			}
		}
	}
	r.t.Fatal("nothing leads to another node")
	return 0
}

func TestHostsDoNotOutliveTheirSupervisor(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(s site, hosts int) *run) {
		s := newService(t)
		r := start(newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 2 }), 2)
		s.workers(2)
		escaped := s.children(2, escaping)
		if err := syscall.Kill(r.supervisor(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of hosts and workers", func() bool {
			return !slices.ContainsFunc(r.processes(""), func(pid int) bool { return !slices.Contains(escaped, pid) })
		})
		eventually(t, "the end of a task's child that its host kills", func() bool { return !alive(escaped[0]) || !alive(escaped[1]) })
		for _, pid := range escaped { // on the first node only the batch system is left to kill them
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
		}
		eventually(t, "their end", func() bool { return !slices.ContainsFunc(escaped, alive) })
		within(t, "the job's end", r.exit)
	})
}

// No worker is started on an unfit node; the other nodes serve, and corrald is notified which node is unfit, and why.
func TestUnfitNodesAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts, p.Walltime = 7, corral.Seconds(2*time.Minute) })
	ssh := `#!/bin/sh
# Nodes in namespaces of their own where something is missing; one whose clock is wrong; and the real ssh to the rest.
hidden() { exec unshare $user --mount sh -c 'mount -t tmpfs -o size="$1" tmpfs "$2" && IFS= read -r program && exec "$program" host' sh "$@"; }
case " $* " in
*" -- blind "*) hidden 1m '` + filepath.Dir(place.dir) + `' ;;
*" -- full "*) hidden 1m '` + filepath.Join(place.dir, "scratch") + `' ;;
*" -- cutoff "*) hidden 1m '` + filepath.Dir(s.socket) + `' ;;
*" -- late "*) echo "welcome to late"; '` + needSSHD(t) + `/ssh' "$@" | sed -u 's/"now":"20/"now":"19/' ;;
*) exec '` + needSSHD(t) + `/ssh' "$@" ;;
esac
`
	if os.Getuid() != 0 {
		ssh = strings.Replace(ssh, "$user", "--user --map-root-user", 1)
	}
	bin := filepath.Join(place.root, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "ssh"), []byte(ssh), 0o700)); err != nil {
		t.Fatal(err)
	}
	r := place.startBy(bin, "here", "blind", "full", "cutoff", "late", "gone", "good")
	says := map[string]string{
		"blind":  "the job's directory " + place.dir + " is not visible on this node: ",
		"full":   "disk of " + filepath.Join(place.dir, "scratch", "2") + ": ",
		"cutoff": "no route to corrald at unix:" + s.socket,
		"late":   "clock: corrald's is ",
		"gone":   "ssh ended with status 255: ssh: connect to host 127.0.0.1 port 1: Connection refused",
	}
	for node, words := range says {
		eventually(t, "word of "+node, func() bool { return s.wasTold("node failed: node " + node + ": " + words) })
	}
	for _, w := range s.workers(2) {
		if w.Host != "here" && w.Host != "good" {
			t.Errorf("a worker of %s registered", w.Host)
		}
	}
	s.dispatcher.Drain(7)
	rep := r.report(0, corral.OutcomeDrained, false)
	if len(rep.Lost) != len(says) || !strings.HasPrefix(rep.Reason, "asked to drain (2 of 7 hosts served; "+rep.Lost[0].String()) {
		t.Errorf("the report has %v: %s", rep.Lost, rep.Reason)
	}
	for _, l := range rep.Lost {
		if says[l.Node] == "" || !strings.HasPrefix(l.Why, says[l.Node]) {
			t.Errorf("the report has %s, want %q", l, says[l.Node])
		}
	}
}

// wasTold reports whether the pilot has sent corrald a phase with this prefix.
func (s *service) wasTold(prefix string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.told, func(told string) bool { return strings.HasPrefix(told, prefix) })
}

func TestCondorWorkersServeOnEveryNode(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 2 })
	r := place.startBySrun(2)
	hosts := map[string]bool{}
	for _, ad := range place.inPool(2) {
		host, _ := ad.Text("CorralHost")
		hosts[host] = true
	}
	if len(hosts) != 2 {
		t.Errorf("workers of %v, want of two nodes", hosts)
	}
	cluster := place.job("sleep 2", 4)
	place.executing(4) // each job has two CPUs
	s.dispatcher.Drain(7)
	rep := r.report(0, corral.OutcomeDrained, false)
	if log := strings.Join(rep.Log, "\n"); strings.Count(log, "measured: collector") != 2 {
		t.Errorf("log %s does not say what both nodes measured", log)
	}
	if ends := events[eventlog.Terminated](place); len(ends) != 4 {
		t.Errorf("%d jobs of cluster %d ended, want 4", len(ends), cluster)
	}
}
