package progress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }

// moment returns a run in a given state.
func moment(state corral.RunState, done, running, failed int, reason string) corral.Run {
	r := corral.Run{ID: 7, State: state, Reason: reason, CreatedAt: began,
		Tasks: corral.RunTasks{Total: 40, Done: done, Running: running, Failed: failed, Ready: 40 - done - running - failed}}
	if state.Over() {
		r.EndedAt = after(61.25)
	}
	return r
}

// Without a terminal a line is written when the state or its reason changes, and otherwise at most every five seconds.
func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	view := progress.New(&out, progress.Look{})
	for _, m := range []struct {
		at  float64
		run corral.Run
	}{
		{0, moment(corral.RunRunning, 0, 0, 0, "")},
		{0.2, moment(corral.RunRunning, 1, 2, 0, "")},
		{4.9, moment(corral.RunRunning, 9, 2, 0, "")},
		{5, moment(corral.RunRunning, 10, 2, 0, "")},
		{12, moment(corral.RunRunning, 10, 2, 0, "")},
		{12.2, moment(corral.RunRunning, 10, 2, 0, "task a needs 2 cpus")},
		{12.4, moment(corral.RunRunning, 10, 2, 0, "task a needs 2 cpus")},
		{13, moment(corral.RunRunning, 11, 2, 1, "")},
		{61, moment(corral.RunFailed, 39, 0, 1, "task b: exit status 3")},
	} {
		view.Show(t.Context(), m.run, after(m.at))
	}
	view.Close()
	want := `run 7 RUNNING: 0 of 40 done, 0 running, 40 ready
run 7 RUNNING: 10 of 40 done, 2 running, 28 ready
run 7 RUNNING: 10 of 40 done, 2 running, 28 ready (task a needs 2 cpus)
run 7 RUNNING: 11 of 40 done, 2 running, 26 ready, 1 failed
run 7 FAILED: 39 of 40 done, 1 failed
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The expected end of a run is shown beside its progress.
func TestExpectedEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left time.Duration
		want string
	}{
		{-time.Second, ", 0s left"}, {400 * time.Millisecond, ", 0s left"}, {10*time.Second + 1, ", 10s left"},
		{59*time.Minute + 59*time.Second, ", 59m59s left"}, {65*time.Minute + 20*time.Second, ", 1h5m left"},
	} {
		r := moment(corral.RunRunning, 10, 2, 0, "")
		r.ExpectedEnd = began.Add(tt.left)
		if got := progress.Left(r, began); got != tt.want {
			t.Errorf("Left of %s = %q, want %q", tt.left, got, tt.want)
		}
		r.State = corral.RunCancelled
		if got := progress.Left(r, began); got != "" {
			t.Errorf("Left of a run that is over = %q", got)
		}
	}
}

// A line of JSON is written for each change of a run's activity, but not for the passing of time.
func TestJSONLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	view := progress.NewJSON(&out)
	first := moment(corral.RunRunning, 0, 0, 0, "")
	first.ExpectedEnd = after(60)
	view.Show(t.Context(), first, after(0))
	first.ExpectedEnd = after(61)
	view.Show(t.Context(), first, after(1))
	over := moment(corral.RunFailed, 39, 0, 1, "task b: exit status 3")
	over.ExpectedEnd = after(60)
	view.Show(t.Context(), over, after(61.2345))
	view.Close()
	want := `{"time":"2026-01-02T03:04:05Z","run":7,"state":"RUNNING","tasks":{"total":40,"waiting":0,"ready":40,` +
		`"running":0,"done":0,"failed":0,"skipped":0},"expected_end":"2026-01-02T03:05:05Z"}
{"time":"2026-01-02T03:05:06.234Z","run":7,"state":"FAILED","reason":"task b: exit status 3","tasks":{"total":40,` +
		`"waiting":0,"ready":0,"running":0,"done":39,"failed":1,"skipped":0}}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// On a terminal the same becomes one line that changes in place, followed by an empty line.
func TestBar(t *testing.T) {
	t.Parallel()
	s := &screen{}
	s.Write([]byte("$ corral run\n"))
	view := progress.New(s, progress.Look{Width: func() int { return 60 }})
	for _, step := range []struct {
		at   float64
		run  corral.Run
		want string
	}{
		{0, moment(corral.RunRunning, 0, 0, 0, ""), "run 7 ────────────────── 0/40  0 running, 40 ready  0s"},
		{9.9, moment(corral.RunRunning, 10, 2, 0, ""), "run 7 ━━━━────────────── 10/40  2 running, 28 ready  9s"},
		{20, moment(corral.RunRunning, 10, 0, 0, "task a needs 2 cpus"), "run 7 ━━━━────────────── 10/40  0 running, 30 ready  20s\n  task a needs 2 cpus"},
		{61, moment(corral.RunSucceeded, 40, 0, 0, ""), "run 7 SUCCEEDED ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 40/40  1m1.3s"},
	} {
		view.Show(t.Context(), step.run, after(step.at))
		got := strings.TrimRight(s.String(), "\n")
		if want := "$ corral run\n" + step.want; normal(got) != normal(want) {
			t.Errorf("after %gs the screen shows\n%s\nwant\n%s", step.at, got, want)
		}
	}
	view.Close()
	s.Write([]byte("next\n"))
	if !strings.HasSuffix(s.String(), "1m1.3s\nnext\n") {
		t.Errorf("after the bar the screen shows\n%s", s)
	}
}

// normal makes all bars equally long, because the test does not check their lengths.
func normal(s string) string {
	for _, r := range []string{"━", "─"} {
		for strings.Contains(s, r+r) {
			s = strings.ReplaceAll(s, r+r, r)
		}
	}
	return s
}

// No line fills the width of the terminal, however narrow.
func TestNoLineWraps(t *testing.T) {
	t.Parallel()
	for width := 1; width < 130; width++ {
		look := progress.Look{Width: func() int { return width }}
		for _, r := range []corral.Run{moment(corral.RunRunning, 10, 2, 3, strings.Repeat("reason ", 40)), moment(corral.RunStalled, 10, 0, 0, "x")} {
			for _, line := range progress.Progress(look, "run 7 ", r, after(5)) {
				if n := len([]rune(line)); n >= width && n > 1 {
					t.Errorf("of %d columns a line takes %d: %s", width, n, line)
				}
			}
		}
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	line := progress.Look{Width: func() int { return 9 }, Colour: true}.Line(
		progress.Span{Colour: progress.Good, Text: "good"}, progress.Span{Text: " or "}, progress.Span{Colour: progress.Bad, Text: "bad"})
	if want := "\x1b[32mgood\x1b[0m or…"; line != want {
		t.Errorf("Line = %q, want %q", line, want)
	}
}

// server returns a client for a corrald whose run is in the given states, one for each request.
func server(t *testing.T, states ...corral.Run) *api.Client {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(states[min(asked, len(states)-1)])
		asked++
	}))
	t.Cleanup(s.Close)
	cl, err := api.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// A recorder is a view that records what it shows.
type recorder struct {
	seen   []corral.RunState
	closed bool
	show   func(n int)
}

func (r *recorder) Show(_ context.Context, run corral.Run, _ time.Time) {
	if r.seen = append(r.seen, run.State); r.show != nil {
		r.show(len(r.seen))
	}
}
func (r *recorder) Close() { r.closed = true }

func TestRunFollowsToTheEnd(t *testing.T) {
	t.Parallel()
	running, over := moment(corral.RunRunning, 1, 1, 0, ""), moment(corral.RunSucceeded, 40, 0, 0, "")
	var view recorder
	got, err := progress.Run(t.Context(), server(t, running, over), running, &view)
	if err != nil || got.State != corral.RunSucceeded || !view.closed {
		t.Errorf("Run = %s, %v, closed %v, want SUCCEEDED and a closed view", got.State, err, view.closed)
	}
	if diff := cmp.Diff([]corral.RunState{corral.RunRunning, corral.RunRunning, corral.RunSucceeded}, view.seen); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	view = recorder{}
	if _, err := progress.Run(t.Context(), nil, over, &view); err != nil || len(view.seen) != 1 {
		t.Errorf("a run that is over: %v, shown %d times, want once and nobody asked", err, len(view.seen))
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	t.Parallel()
	running := moment(corral.RunRunning, 1, 1, 0, "")
	ctx, cancel := context.WithCancel(t.Context())
	view := recorder{show: func(n int) {
		if n == 2 {
			cancel()
		}
	}}
	got, err := progress.Run(ctx, server(t, running), running, &view)
	if !errors.Is(err, context.Canceled) || got.ID != 7 || !view.closed {
		t.Errorf("Run = run %d, %v, closed %v, want run 7, canceled and a closed view", got.ID, err, view.closed)
	}
}

// An error of corrald during a run ends the view, not the run.
func TestRunEndsWithAnError(t *testing.T) {
	t.Parallel()
	far := httptest.NewServer(http.NotFoundHandler())
	defer far.Close()
	cl, err := api.New(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var view recorder
	running := moment(corral.RunRunning, 1, 1, 0, "")
	if got, err := progress.Run(t.Context(), cl, running, &view); err == nil || got.ID != 7 || !view.closed {
		t.Errorf("Run = run %d, %v, closed %v, want run 7, an error and a closed view", got.ID, err, view.closed)
	}
}

// No text controls the terminal: neither by a control character of seven or eight bits, nor by the direction of
// writing.
func TestInert(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, ä …\n\ttext": "plain, ä …\n\ttext", "\x1b[31mred\x07": `\x1b[31mred\a`, "\u009b31m": `\u009b31m`,
		"a\rb\x00": `a\rb\x00`, "\u202eabc": `\u202eabc`, "\x9b31m": "\ufffd31m",
	} {
		if got := progress.Inert(text); got != want {
			t.Errorf("Inert(%q) = %q, want %q", text, got, want)
		}
	}
	if got := (progress.Look{}).Line(progress.Span{Text: "a\n\x1b[2Jb"}); got != `a \x1b[2Jb` {
		t.Errorf("Line = %q", got)
	}
}

// A displayed time until which a glidein waits is never in the past, and a glidein with workers is shown as running.
func TestShown(t *testing.T) {
	t.Parallel()
	ran := corral.Glidein{State: corral.GlideinActive, WorkersNow: 2, Attempts: []corral.Job{{State: corral.JobSubmitted}}}
	if state, reason := progress.Shown(ran, time.Now()); state != "RUNNING" || reason != "" {
		t.Errorf("one whose workers came before the batch system's word is shown as %q, %q", state, reason)
	}
	ran.WorkersNow = 0
	if state, _ := progress.Shown(ran, time.Now()); state != "SUBMITTED" {
		t.Errorf("one without workers is shown as %q", state)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for reason, want := range map[string]string{
		"back-off until 2026-01-02T03:04:06Z": "back-off until 2026-01-02T03:04:06Z",
		"back-off until 2026-01-02T03:04:05Z": "to be submitted", "not before 2026-01-02T03:04:04Z": "to be submitted",
		"not before noon": "not before noon", "site not ready": "site not ready", "": "",
	} {
		g := corral.Glidein{State: corral.GlideinWaiting, Reason: reason}
		if _, got := progress.Shown(g, at); got != want {
			t.Errorf("at %s %q reads %q, want %q", at, reason, got, want)
		}
	}
}
