package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script/*.txtar: command lines of people and scripts, and their results. Each script has its
// own set-up; the workflows of testdata/workflows are in the script's directory, and $HTCONDOR is a real HTCondor. In
// addition to testscript's own commands, scripts can use:
//
//	[!] corral ARGS…         run the client; it must end with exit code 0, or with !, with another
//	exits CODE PROGRAM ARGS… run a program, which must end with exactly this exit code
//	sentence TEXT            the last command's stderr must be this one sentence of corral's
//	json PATH VALUE          the last command's stdout must be JSON with this value: tasks.done 3, 0.name x; len is a length
//	snake                    the last command's stdout must be JSON whose names are all in snake_case
//	let NAME                 put the last command's stdout, trimmed, into a variable
//	request METHOD PATH BODY send a raw request to corrald, and print the status and what it answers
//	remember                 note what corrald has, and what files there are, once nothing of it changes by itself
//	unchanged                both must be as they were
//	alive NAME               a process whose id is in a variable must be there
//	until REGEXP ARGS…       run the client again and again, until it prints that
//	certificate CERT KEY     make a certificate of localhost that is its own authority, in two files
//	front                    put the URL of the central corrald that was started last into $CENTRAL
//
// The condition [root] is true if root runs the test.
func TestScripts(t *testing.T) { testscript.Run(t, scripts(t, "testdata/script")) }

// scripts returns the parameters for the scripts of a folder.
func scripts(t *testing.T, folder string) testscript.Params {
	bin, err := programs.Plain() // only internal/e2e uses the race detector in corrald
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir:   folder,
		Setup: func(e *testscript.Env) error { return setUpScript(e, bin) },
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Getuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"corral":      func(ts *testscript.TestScript, neg bool, args []string) { corralCmd(ts, neg, args) },
			"until":       func(ts *testscript.TestScript, _ bool, args []string) { untilCmd(ts, args) },
			"exits":       func(ts *testscript.TestScript, _ bool, args []string) { exitsCmd(ts, args) },
			"sentence":    func(ts *testscript.TestScript, _ bool, args []string) { sentenceCmd(ts, args) },
			"json":        func(ts *testscript.TestScript, _ bool, args []string) { jsonCmd(ts, args) },
			"snake":       func(ts *testscript.TestScript, _ bool, _ []string) { snakeCmd(ts) },
			"let":         func(ts *testscript.TestScript, _ bool, args []string) { ts.Setenv(args[0], output(ts)) },
			"request":     func(ts *testscript.TestScript, _ bool, args []string) { requestCmd(ts, args) },
			"remember":    func(ts *testscript.TestScript, _ bool, _ []string) { rememberCmd(ts) },
			"unchanged":   func(ts *testscript.TestScript, _ bool, _ []string) { unchangedCmd(ts) },
			"certificate": func(ts *testscript.TestScript, _ bool, args []string) { certificateCmd(ts, args) },
			"front":       func(ts *testscript.TestScript, _ bool, _ []string) { frontCmd(ts) },
			"alive":       func(ts *testscript.TestScript, neg bool, args []string) { aliveCmd(ts, neg, args) },
		},
	}
}

// setUpScript creates a script's own directories, below a short name, because a socket's path must be short.
func setUpScript(e *testscript.Env, bin string) error {
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		return err
	}
	example, err := filepath.Abs("../../examples/lambda/workflow.json")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"EXAMPLE": example, "EXAMPLES": filepath.Dir(filepath.Dir(example)), "LATER": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
		"PATH": bin + ":" + os.Getenv("PATH"), "HOME": dir, "DIR": dir, "TERM": "dumb",
		"CORRALD_LEASE":  "5m", // workers keep their tasks even on a busy machine
		"XDG_STATE_HOME": dir + "/state", "XDG_CACHE_HOME": dir + "/cache", "XDG_DATA_HOME": dir + "/data", "XDG_RUNTIME_DIR": dir + "/run",
	} {
		e.Setenv(name, value)
	}
	e.Defer(func() { leave(e, bin, dir) })
	return os.CopyFS(e.WorkDir, os.DirFS("testdata/workflows"))
}

// leave ends the processes of a script, and fails the script if any process is left after that.
func leave(e *testscript.Env, bin, dir string) {
	defer os.RemoveAll(dir)
	if _, err := os.Stat(dir + "/state"); err == nil {
		down := exec.Command(bin+"/corral", "down", "--force")
		down.Env = e.Vars
		if out, err := down.CombinedOutput(); err != nil {
			e.T().Log("corral down --force: " + string(out))
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	left := processes(dir)
	for until := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(until); left = processes(dir) {
		<-tick.C // a killed process may remain for a moment
	}
	if len(left) > 0 {
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		e.T().Log(fmt.Sprint("processes left: ", left))
		e.T().FailNow()
	}
}

// processes returns the living processes whose command line or environment names dir.
func processes(dir string) map[int]string {
	found := map[int]string{}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		line, err := os.ReadFile(proc + "/cmdline")
		if err != nil || pid == os.Getpid() || len(line) == 0 { // a zombie has no command line
			continue
		}
		env, _ := os.ReadFile(proc + "/environ")
		if bytes.Contains(append(line, env...), []byte(dir+"/")) {
			found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

func corralCmd(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("corral", args...); (err != nil) != neg {
		ts.Fatalf("corral %s: %v", strings.Join(args, " "), err)
	}
}

// untilCmd runs corral until its output matches, because news reaches several readers one after the other.
func untilCmd(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	until := time.Now().Add(5 * time.Minute)
	// Starting a program costs more than the request that it sends, so many such waits would keep a machine busy.
	for pause := 100 * time.Millisecond; ; pause = min(pause*3/2, time.Second) {
		corralCmd(ts, false, args[1:])
		if want.MatchString(output(ts)) {
			return
		}
		if time.Now().After(until) {
			ts.Fatalf("corral %s still prints:\n%s", strings.Join(args[1:], " "), output(ts))
		}
		<-time.After(pause)
	}
}

func exitsCmd(ts *testscript.TestScript, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func sentenceCmd(ts *testscript.TestScript, args []string) {
	if diff := cmp.Diff("corral: "+args[0]+"\n", ts.ReadFile("stderr")); diff != "" {
		ts.Fatalf("stderr is not that sentence (-want +got):\n%s", diff)
	}
}

func output(ts *testscript.TestScript) string { return strings.TrimSpace(ts.ReadFile("stdout")) }

func document(ts *testscript.TestScript) (v any) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	ts.Check(d.Decode(&v))
	if d.More() {
		ts.Fatalf("stdout has more than one JSON document")
	}
	return v
}

func jsonCmd(ts *testscript.TestScript, args []string) {
	v := document(ts)
	for _, step := range strings.Split(args[0], ".") {
		i, _ := strconv.Atoi(step)
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			if v = any(len(at)); step != "len" {
				if i >= len(at) {
					ts.Fatalf("%s: there are %d", args[0], len(at))
				}
				v = at[i]
			}
		default:
			ts.Fatalf("%s: %v has no %s", args[0], v, step)
		}
	}
	if got := fmt.Sprint(v); got != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func snakeCmd(ts *testscript.TestScript) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				if !snakeCase.MatchString(name) {
					ts.Fatalf("%q is not in snake_case", name)
				}
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(document(ts))
}

// requestCmd sends a raw request, like a client without a library.
func requestCmd(ts *testscript.TestScript, args []string) {
	conn, err := net.Dial("unix", ts.Getenv("XDG_RUNTIME_DIR")+"/corral/corrald.sock")
	ts.Check(err)
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest(args[0], "http://corrald"+args[1], strings.NewReader(args[2]))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s %s\n", resp.StatusCode, resp.Header.Get("Content-Type"), body)
}

// world returns corrald's objects, including deleted ones, and the files outside its state.
func world(ts *testscript.TestScript) string {
	var b strings.Builder
	for _, noun := range []string{"site", "cluster", "glidein", "runs"} {
		ts.Check(ts.Exec("corral", noun, "list", "--all", "-o", "json"))
		b.WriteString(ts.ReadFile("stdout"))
	}
	for _, dir := range []string{ts.Getenv("XDG_CACHE_HOME"), ts.Getenv("XDG_DATA_HOME"), ts.Getenv("WORK")} {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			fmt.Fprintln(&b, path)
			return err
		})
	}
	return b.String()
}

// rememberCmd waits until earlier activity has settled: for example, corrald counts a run's tasks a little after they
// start.
func rememberCmd(ts *testscript.TestScript) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for until := time.Now().Add(5 * time.Minute); ; {
		was := world(ts)
		<-tick.C
		if is := world(ts); is == was {
			ts.Setenv("REMEMBERED", is)
			return
		} else if time.Now().After(until) {
			ts.Fatalf("something still changes (-before +now):\n%s", cmp.Diff(was, is))
		}
	}
}

func unchangedCmd(ts *testscript.TestScript) {
	if diff := cmp.Diff(ts.Getenv("REMEMBERED"), world(ts)); diff != "" {
		ts.Fatalf("something changed (-before +now):\n%s", diff)
	}
}

func aliveCmd(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(ts.Getenv(args[0]))
	ts.Check(err)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // a zombie also has this file
	if alive := err == nil && !strings.Contains(string(stat), ") Z "); alive == neg {
		ts.Fatalf("process %d: alive is %v", pid, alive)
	}
}
