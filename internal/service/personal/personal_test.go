package personal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/kit/xdg"
)

// TestMain lets this program act as corrald: under that name it behaves as the state directory's file "mood"
// specifies, and otherwise serves its health.
func TestMain(m *testing.M) {
	if os.Args[0] == headless {
		playHeadless()
	}
	if filepath.Base(os.Args[0]) == "corrald" {
		os.Exit(playCorrald(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func playCorrald(args []string) int {
	option := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		option[args[i]] = args[i+1]
	}
	state := option["--state"]
	mood, _ := os.ReadFile(state + "/mood")
	if string(mood) == "ill" {
		fmt.Fprintln(os.Stderr, "some trouble\ncorrald: the disk is full")
		return 1
	}
	if string(mood) == "full" { // the log cannot be written
		w := NewWords(full{})
		fmt.Fprintln(w, "some trouble\ncorrald: the disk is full")
		w.Say()
		return 1
	}
	if string(mood) == "mute" {
		return 7
	}
	if string(mood) == "crowded" && !first(state) {
		<-time.After(time.Minute) // until it would be too late
	}
	lock, err := os.OpenFile(xdg.Layout{State: state}.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 1
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "corrald: in use")
		return 1
	}
	if _, err := lock.WriteString(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return 1
	}
	if err := os.WriteFile(state+"/corrald.pid", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return 1
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	_ = os.Remove(option["--socket"])
	_ = os.MkdirAll(filepath.Dir(option["--socket"]), 0o700)
	l, err := net.Listen("unix", option["--socket"])
	if err != nil {
		return 1
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(state + "/silent"); err == nil {
			<-r.Context().Done()
		}
		_ = json.NewEncoder(w).Encode(api.Health{Status: "ok", Version: version.String() + string(mood)})
	}))
	<-ended
	if string(mood) == "stubborn" {
		<-ended
	}
	_ = l.Close()
	_ = os.Remove(state + "/corrald.pid")
	return 0
}

// first reports whether it is the first call; if so it waits for the next one.
func first(state string) bool {
	f, err := os.OpenFile(state+"/first", os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		_ = os.WriteFile(state+"/second", nil, 0o600)
		return false
	}
	f.Close()
	for {
		if _, err := os.Stat(state + "/second"); err == nil {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
}

// newCorrald returns a Corrald that is not running, with its own directories; its program is this test.
func newCorrald(t *testing.T) Corrald {
	t.Helper()
	dir, err := os.MkdirTemp("", "c") // short, because a socket's path must be
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, dir+"/corrald"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c := Corrald{Layout: xdg.Below(dir)}
	c.Layout.Socket = dir + "/run/corrald.sock"
	t.Cleanup(func() {
		if pid := c.PID(); running(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(dir)
	})
	return c
}

func (c Corrald) inMood(t *testing.T, mood string) Corrald {
	t.Helper()
	if err := os.MkdirAll(c.Layout.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Layout.State+"/mood", []byte(mood), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, c Corrald) {
	t.Helper()
	if started, err := c.Start(t.Context()); err != nil || !started {
		t.Fatalf("Start = %v, %v, want true", started, err)
	}
}

func TestStartAndStop(t *testing.T) {
	c := newCorrald(t)
	if c.Exists() || c.Answers(t.Context()) || c.PID() != 0 {
		t.Error("one that was never started exists, answers, or has a process")
	}
	start(t, c)
	pid := c.PID()
	if !c.Exists() || !c.Answers(t.Context()) || !running(pid) {
		t.Error("one that was started does not exist, answer, or run")
	}
	if session, _, _ := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0); int(session) != pid {
		t.Errorf("it is in session %d, want one of its own: a closed terminal must not end it", session)
	}
	if started, err := c.Start(t.Context()); err != nil || started || c.PID() != pid {
		t.Errorf("the second Start = %v, %v, process %d, want false and process %d", started, err, c.PID(), pid)
	}
	if err := c.Stop(t.Context()); err != nil || running(pid) {
		t.Errorf("Stop: %v, still running: %v", err, running(pid))
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
}

// A crashed corrald leaves its pid file and its socket; a restart replaces them.
func TestStartAfterCrash(t *testing.T) {
	c := newCorrald(t)
	start(t, c)
	first := c.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for running(first) {
		if t.Context().Err() != nil {
			t.Fatal("it does not die")
		}
	}
	if c.Answers(t.Context()) || c.PID() != first {
		t.Fatalf("after a crash it answers, or its pid file says %d, want %d", c.PID(), first)
	}
	if f := examineCorrald(t.Context(), c); f.OK || !strings.Contains(f.Advice, "corral up") {
		t.Errorf("the doctor finds %+v, want advice to start it", f)
	}
	start(t, c)
	if c.PID() == first || !running(c.PID()) {
		t.Errorf("process %d, want a new one", c.PID())
	}
}

// A stale pid file may name any process: it is neither mistaken for ours nor killed.
func TestStalePID(t *testing.T) {
	c := newCorrald(t)
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	for _, content := range []string{strconv.Itoa(other.Process.Pid) + "\n", "junk", "-1", "1", ""} {
		if err := os.MkdirAll(c.Layout.State, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Layout.PID(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.Answers(t.Context()) {
			t.Errorf("with pid file %q it answers", content)
		}
		if err := c.Stop(t.Context()); err != nil || !running(other.Process.Pid) {
			t.Errorf("with pid file %q: Stop: %v, the other process runs: %v", content, err, running(other.Process.Pid))
		}
	}
	start(t, c)
}

// Root also reads other users' pid files: it does not follow links or block on pipes.
func TestPIDFileIsNoFile(t *testing.T) {
	c := newCorrald(t)
	for name, put := range map[string]func(string) error{
		"a link": func(at string) error {
			return errors.Join(os.WriteFile(at+"-elsewhere", []byte("4321\n"), 0o600), os.Symlink(at+"-elsewhere", at))
		},
		"a pipe": func(at string) error { return syscall.Mkfifo(at, 0o600) },
	} {
		if err := errors.Join(os.MkdirAll(c.Layout.State, 0o700), os.RemoveAll(c.Layout.PID()), put(c.Layout.PID())); err != nil {
			t.Fatal(err)
		}
		if pid := c.PID(); pid != 0 {
			t.Errorf("%s names process %d, want none", name, pid)
		}
	}
}

// A corrald that is too busy to answer is still running: its files must not be deleted.
func TestStopEndsWhoDoesNotAnswer(t *testing.T) {
	c := newCorrald(t)
	start(t, c)
	pid := c.PID()
	if err := os.WriteFile(c.Layout.State+"/silent", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil || running(pid) {
		t.Errorf("Stop: %v, still running: %v", err, running(pid))
	}
}

// A corrald that does not answer is not considered dead, and no second one is started beside it.
func TestOneThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	c := newCorrald(t)
	start(t, c)
	pid := c.PID()
	if err := os.WriteFile(c.Layout.State+"/silent", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("corrald (process %d) is running but does not answer: try again, or `kill %[1]d`", pid)
	if started, err := c.Start(t.Context()); started || corral.KindOf(err) != corral.Unavailable || err.Error() != want {
		t.Errorf("Start = %v, %v, want Unavailable: %s", started, err, want)
	}
	if b, err := os.ReadFile(c.Layout.Log()); err != nil || len(b) > 0 {
		t.Errorf("the log says %q (%v): a second one was started", b, err)
	}
	f := examineCorrald(t.Context(), c)
	if f.OK || f.Found+": "+f.Advice != strings.NewReplacer("corrald (", "", ") is", " is").Replace(want) {
		t.Errorf("the doctor finds %+v, want %s", f, want)
	}
	if !running(pid) || c.PID() != pid {
		t.Errorf("process %d is there, want %d", c.PID(), pid)
	}
}

// Of several simultaneous calls, one starts corrald and all find it.
func TestStartTogether(t *testing.T) {
	c := newCorrald(t)
	type result struct {
		started bool
		err     error
	}
	results := make(chan result)
	for range 4 {
		go func() {
			started, err := c.Start(t.Context())
			results <- result{started, err}
		}()
	}
	starters := 0
	for range 4 {
		r := <-results
		if r.err != nil {
			t.Errorf("Start: %v", r.err)
		}
		if r.started {
			starters++
		}
	}
	if starters != 1 {
		t.Errorf("%d say that they started it, want 1", starters)
	}
}

// A slower start leaves no process that would take over when the running one is stopped.
func TestStartTogetherLeavesOne(t *testing.T) {
	c := newCorrald(t).inMood(t, "crowded")
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := c.Start(t.Context())
			ended <- err
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
	}
	var left []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		if line, _ := os.ReadFile(proc + "/cmdline"); strings.Contains(string(line), c.Layout.State+"\x00") {
			left = append(left, filepath.Base(proc))
		}
	}
	if len(left) != 1 || left[0] != strconv.Itoa(c.PID()) {
		t.Errorf("processes %v are there, want %d alone", left, c.PID())
	}
}

func TestStartOfOneThatFails(t *testing.T) {
	c := newCorrald(t).inMood(t, "ill")
	if err := os.WriteFile(c.Layout.Log(), []byte("words of an earlier one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := c.Start(t.Context())
	if want := "corrald ended at once: corrald: the disk is full"; corral.KindOf(err) != corral.Failed || err.Error() != want {
		t.Errorf("Start: %v, want %q", err, want)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := c.Start(t.Context()); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "make build") {
		t.Errorf("Start without a program: %v, want what to do", err)
	}
}

// A full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// If the log cannot be written, the reason is reported in another way; without a reason, the exit status is reported.
func TestStartOfOneThatCannotWriteItsLog(t *testing.T) {
	for mood, want := range map[string]string{
		"full": "corrald ended at once: corrald: the disk is full",
		"mute": "corrald ended at once: exit status 7, and its log, ",
	} {
		c := newCorrald(t).inMood(t, mood)
		if _, err := c.Start(t.Context()); corral.KindOf(err) != corral.Failed || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Start: %v, want %q", err, want)
		}
		if os.Getenv(wordsVariable) != "" {
			t.Error("the variable is left")
		}
	}
}

func TestStopOfOneThatDoesNot(t *testing.T) {
	c := newCorrald(t).inMood(t, "stubborn")
	start(t, c)
	var err error
	for limit := 2 * time.Second; err == nil && limit < 5*time.Minute; limit *= 2 { // it may answer slowly at first
		ctx, cancel := timeLimit(t, limit)
		defer cancel()
		err = c.Stop(ctx)
	}
	if corral.KindOf(err) != corral.Unknown {
		t.Errorf("Stop: %v, want an Unknown error", err)
	}
	if err := c.Stop(t.Context()); err != nil { // it ends at the second request
		t.Error(err)
	}
}

func TestErase(t *testing.T) {
	for _, tt := range []struct {
		name    string
		results bool
		purge   bool
		stays   bool
	}{
		{"no results", false, false, false}, {"results", true, false, true}, {"purge", true, true, false},
	} {
		c := newCorrald(t)
		for _, dir := range []string{c.Layout.State, c.Layout.Cache + "/sites", c.Layout.Runs(), filepath.Dir(c.Layout.Socket)} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if tt.results {
			if err := os.MkdirAll(c.Layout.Runs()+"/one", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Erase(tt.purge); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := os.Stat(c.Layout.Data); (err == nil) != tt.stays {
			t.Errorf("%s: the data directory: %v, want it to stay: %v", tt.name, err, tt.stays)
		}
		for _, gone := range []string{c.Layout.State, c.Layout.Cache, filepath.Dir(c.Layout.Socket)} {
			if _, err := os.Stat(gone); err == nil {
				t.Errorf("%s: %s is still there", tt.name, gone)
			}
		}
	}
}
