package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/programs"
)

// bin is the folder of the three programs, with the race detector in the service and the client if it is in the tests.
var bin string

// shared is what ends what tests of sites share.
var shared struct {
	sync.Mutex
	ends []func() error
}

func TestMain(m *testing.M) {
	var err error
	if bin, err = programs.Tested(); err != nil {
		panic(err)
	}
	status := m.Run()
	for _, end := range shared.ends {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// A user is somebody with a private set-up: nothing of it meets another test's.
type user struct {
	t   testing.TB
	dir string // the XDG directories are below it; short, because a socket's path must be
	bin string // where the programs are
	env []string
}

func newUser(t testing.TB, env ...string) *user {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, dir: dir, bin: bin}
	u.env = append([]string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir,
		"XDG_STATE_HOME=" + dir + "/state", "XDG_CACHE_HOME=" + dir + "/cache", "XDG_DATA_HOME=" + dir + "/data", "XDG_RUNTIME_DIR=" + dir + "/run",
		"GORACE=halt_on_error=1 atexit_sleep_ms=0 log_path=" + dir + "/race",
		"CORRALD_LEASE=5m", // workers keep their tasks through whatever a busy machine does
	}, env...)
	t.Cleanup(u.leave)
	return u
}

// leave ends whatever a failed test left, and fails the test for what a passed one left.
func (u *user) leave() {
	log, _ := os.ReadFile(u.dir + "/state/corral/corrald.log")
	if u.t.Failed() {
		u.t.Logf("corrald.log:\n%s", tail(log, 200))
	}
	if races, _ := filepath.Glob(u.dir + "/race.*"); len(races) > 0 {
		report, _ := os.ReadFile(races[0])
		u.t.Errorf("data race: %s", report)
	}
	if u.running() != 0 {
		u.corral("down", "--force")
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	left := u.processes()
	for until := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(until); left = u.processes() {
		<-tick.C // one that was killed may be there for a moment more
	}
	if len(left) > 0 {
		u.t.Errorf("processes left: %v", left)
		for _, p := range left {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	_ = os.RemoveAll(u.dir)
}

func tail(b []byte, lines int) string {
	all := strings.Split(string(b), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// An answer is what a command left.
type answer struct {
	stdout, stderr string
	code           int
}

// corral runs the client.
func (u *user) corral(args ...string) answer {
	u.t.Helper()
	cmd := u.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatalf("corral %v: %v", args, err)
	}
	return answer{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(u.bin, "corral"), args...)
	cmd.Env, cmd.Dir = u.env, u.dir
	return cmd
}

// must runs the client and fails the test unless it exits with 0; it returns what it printed.
func (u *user) must(args ...string) string {
	u.t.Helper()
	a := u.corral(args...)
	if a.code != 0 {
		u.t.Fatalf("corral %s: exit code %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), a.code, a.stdout, a.stderr)
	}
	return strings.TrimSpace(a.stdout)
}

// read runs the client with -o json and decodes what it prints.
func read[T any](u *user, args ...string) T {
	u.t.Helper()
	var v T
	out := u.must(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		u.t.Fatalf("corral %v printed %s: %v", args, out, err)
	}
	return v
}

// until calls ok until it is true; it gives up after patience, which is as long as only what hangs takes, at least.
func (u *user) until(what string, patience time.Duration, ok func() bool) {
	u.t.Helper()
	patience = max(patience, 5*time.Minute)
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end.C:
			u.t.Fatalf("%s: not within %s", what, patience)
		case <-tick.C:
		}
	}
}

// running returns corrald's process id, 0 if there is none.
func (u *user) running() int {
	b, err := os.ReadFile(u.dir + "/state/corral/corrald.pid")
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

func (u *user) kill(pid int) {
	u.t.Helper()
	if pid <= 1 { // 0 would be all processes of the test
		u.t.Fatalf("no process to kill: %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		u.t.Fatalf("kill %d: %v", pid, err)
	}
}

type process struct {
	pid     int
	command string
}

// processes returns the living processes that have the user's directory in their environment or
// command line, or their program or working directory there.
func (u *user) processes() (found []process) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		line, err := os.ReadFile(proc + "/cmdline")
		if err != nil || pid == os.Getpid() || len(line) == 0 { // a zombie has no command line
			continue
		}
		env, _ := os.ReadFile(proc + "/environ")
		exe, _ := os.Readlink(proc + "/exe")
		cwd, _ := os.Readlink(proc + "/cwd")
		if names := strings.Join([]string{string(line), string(env), exe, cwd + "/"}, "\n"); strings.Contains(names, u.dir+"/") {
			found = append(found, process{pid, strings.ReplaceAll(string(line), "\x00", " ")})
		}
	}
	return found
}

// files returns every file and directory below dir, relative to it.
func files(t testing.TB, dir string) (found []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != dir {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, rel)
		}
		return nil
	})
	return found
}

// workflow writes a workflow of the given tasks and returns its file.
func (u *user) workflow(name string, tasks ...task) string {
	u.t.Helper()
	type m = map[string]any
	var spec, exec []m
	files := []m{}
	for _, k := range tasks {
		for _, name := range k.out {
			if k.bytes > 0 {
				files = append(files, m{"id": name, "sizeInBytes": k.bytes})
			}
		}
		x := m{}
		if k.estimate != 0 {
			x["estimate_s"] = k.estimate.Seconds()
		}
		if k.memory != 0 {
			x["memory_mib"] = k.memory
		}
		if k.gpus != 0 {
			x["gpus"] = k.gpus
		}
		spec = append(spec, m{"name": "step", "id": k.id, "parents": append([]string{}, k.parents...), "children": []string{},
			"inputFiles": append([]string{}, k.in...), "outputFiles": append([]string{}, k.out...), "x-corral": x})
		exec = append(exec, m{"id": k.id, "runtimeInSeconds": 0, "coreCount": 1, "command": m{"program": "sh", "arguments": []string{"-c", k.script}}})
	}
	doc := m{"name": name, "schemaVersion": "1.5", "workflow": m{
		"specification": m{"tasks": spec, "files": files}, "execution": m{"makespanInSeconds": 0, "executedAt": "2026-01-01T00:00:00Z", "tasks": exec}}}
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		u.t.Fatal(err)
	}
	file := filepath.Join(u.dir, name+".json")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		u.t.Fatal(err)
	}
	return file
}

// A task of a test's workflow; script is run by sh.
type task struct {
	id, script       string
	parents, in, out []string
	estimate         time.Duration
	memory, gpus     int
	bytes            int // of each output; 0: not known
}

// steps makes n independent tasks of about d each, each with one output that names it.
func steps(n int, d time.Duration) (tasks []task) {
	for i := range n {
		id := fmt.Sprintf("t%03d", i)
		tasks = append(tasks, task{id: id, script: fmt.Sprintf("sleep %.3f; echo %s >%s.txt", d.Seconds(), id, id), out: []string{id + ".txt"}, estimate: d})
	}
	return tasks
}

// behind has tasks begin when the first few are done, one after each, and end when let has opened the gate: so many are
// still to do then, however fast tasks are, and slow whoever looks at them.
func (u *user) behind(gate string, first int, tasks []task) []task {
	for i := first; i < len(tasks); i++ {
		tasks[i].parents = append(tasks[i].parents, tasks[i%first].id)
		tasks[i].script = fmt.Sprintf("until [ -e %s/%s ]; do sleep 0.1; done; ", u.dir, gate) + tasks[i].script
	}
	return tasks
}

func (u *user) let(gate string) {
	u.t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, gate), nil, 0o644); err != nil {
		u.t.Fatal(err)
	}
}

// meeting makes n tasks, numbered on from another, that end when all of them have begun, with files in dir: as many workers do them.
func meeting(from, n int, dir string) (tasks []task) {
	for i := range n {
		id := fmt.Sprintf("t%03d", from+i)
		script := fmt.Sprintf("touch %[1]s/met.%[2]s; until [ $(ls %[1]s | grep -c '^met[.]') -ge %[3]d ]; do sleep 0.2; done; echo %[2]s >%[2]s.txt", dir, id, n)
		tasks = append(tasks, task{id: id, script: script, out: []string{id + ".txt"}, estimate: time.Minute})
	}
	return tasks
}

func (u *user) workers() []corral.Worker {
	u.t.Helper()
	return read[[]corral.Worker](u, "cluster", "workers", "default")
}

func (u *user) run(id string) corral.Run {
	u.t.Helper()
	return read[corral.Run](u, "runs", "show", id)
}

func (u *user) glidein(id string) corral.Glidein {
	u.t.Helper()
	return read[corral.Glidein](u, "glidein", "show", id)
}
