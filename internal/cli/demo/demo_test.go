package demo

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

// The scripts of package cli run the whole demo with the real programs.

func plain() (*bytes.Buffer, stage) {
	var out bytes.Buffer
	return &out, newStage(&out, progress.Look{})
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	out, s := plain()
	s.timeline(corral.Timeline(
		corral.Job{ID: 1, Kind: corral.SetupJob, SubmittedAt: at(0), StartedAt: at(10), EndedAt: at(500)},
		corral.Job{ID: 2, Kind: corral.PilotJob, SubmittedAt: at(600), StartedAt: at(1000), EndedAt: at(9000)},
		corral.Job{ID: 3, Kind: corral.CleanupJob, SubmittedAt: at(9500), StartedAt: at(9600), EndedAt: at(10000)}))
	want := `
timeline   the site's setup job, the pilots, the site's cleanup job
           SetupSubmitted         0s ●···························
           SetupStarted         10ms ●···························
           SetupFinished       500ms ·●·························· setup 500ms
           GlideinSubmitted    600ms ·●··························
           GlideinStarted         1s ··●························· allocation 400ms
           GlideinFinished        9s ························●··· runtime 8s
           CleanupSubmitted     9.5s ·························●··
           CleanupStarted       9.6s ·························●··
           CleanupFinished       10s ···························● cleanup 500ms
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if s.timeline(nil); out.Len() > 0 {
		t.Errorf("without events: %q", out)
	}
}

// Without a terminal the stage does not show what a step is waiting for, and does not move the cursor.
func TestPlainStage(t *testing.T) {
	t.Parallel()
	out, s := plain()
	s.title("Title", "rest")
	s.doing("something long")
	s.say("step", "%d things", 2)
	s.more("and more")
	s.result(strings.Repeat("line\n", 20))
	want := "\nTitle\nrest\n\nstep       2 things\n           and more\n\n" +
		"result     equal, byte by byte, to that of a single pass over the genome:\n" +
		strings.Repeat("  line\n", 17) + "  … and 3 lines more; corral demo --keep keeps them\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("escape sequences off a terminal: %q", out)
	}
}

func TestIndented(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if n, err := (indented{&out}).Write([]byte("line\n")); n != 5 || err != nil || out.String() != "           line\n" {
		t.Errorf("Write = %d, %v, wrote %q", n, err, out.String())
	}
}

func TestProcessesBelow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "WHERE=" + dir}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := processesBelow(dir); !slices.Equal(got, []int{cmd.Process.Pid}) {
		t.Errorf("processesBelow = %v, want %d", got, cmd.Process.Pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := processesBelow(dir); len(got) > 0 {
		t.Errorf("processesBelow = %v after its end", got)
	}
}

func TestRound(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{1234567 * time.Nanosecond: "1ms", 999 * time.Millisecond: "999ms", 9876 * time.Millisecond: "9.88s", 12345 * time.Millisecond: "12.3s"} {
		if got := round(d); got != want {
			t.Errorf("round(%s) = %s, want %s", d, got, want)
		}
	}
}
