//go:build sites

package condor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// withStartd creates a pool that runs jobs itself, because it has no glideins.
const withStartd = `
DAEMON_LIST = $(DAEMON_LIST), STARTD
NUM_CPUS = 8
SLOT_TYPE_1 = cpus=1
NUM_SLOTS_TYPE_1 = 8
START = True
SUSPEND = False
PREEMPT = False
KILL = False
UPDATE_INTERVAL = 2
`

// sh is a job that runs /bin/sh.
func sh(p *Pool, name, script string) Submit {
	return Submit{
		Executable: "/bin/sh", Dir: p.config.Dir, Log: "jobs.log", BatchName: name,
		Request: Request{DiskMiB: 1, MemoryMiB: 10},
		Procs:   []Proc{{Arguments: []string{"-c", script}, Stdout: name + ".out", Stderr: name + ".err"}},
	}
}

// TestEventsOfRealJobs runs jobs to each possible end, and reads HTCondor's logs of them.
func TestEventsOfRealJobs(t *testing.T) {
	t.Parallel()
	p := common(t)
	log := eventlog.File{Path: filepath.Join(p.config.Dir, "jobs.log")}

	jobs := map[string]Submit{
		"ok": sh(p, "ok", "exit 0"), "fails": sh(p, "fails", "exit 3"), "killed": sh(p, "killed", "kill -9 $$"),
		"held": sh(p, "held", "exit 0"), "removed": sh(p, "removed", "exit 0"),
	}
	held := jobs["held"]
	held.Attributes = classad.Ad{"OnExitHold": true, "OnExitHoldReason": "because of \"this\"", "OnExitHoldSubCode": 7}
	jobs["held"] = held
	removed := jobs["removed"]
	removed.Requirements = "false"
	jobs["removed"] = removed

	names := map[int]string{}
	for name, job := range jobs {
		cluster, err := p.Tools().Submit(soon(t), job)
		if err != nil {
			t.Fatal(err)
		}
		names[cluster] = name
		if name == "removed" {
			if _, err := p.Tools().Run(soon(t), nil, "condor_rm", strconv.Itoa(cluster)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string][]string{} // :: job → its events
	eventually(t, "ends of all jobs", func() (bool, error) {
		for event, err := range log.New(time.Now()) {
			if err != nil {
				t.Fatal(err)
			}
			if s := describe(event); s != "" {
				got[names[event.Job.Cluster]] = append(got[names[event.Job.Cluster]], s)
			}
		}
		return ended(got) == len(jobs), nil
	})
	want := map[string][]string{
		"ok":      {"submitted", "executing", "returned 0"},
		"fails":   {"submitted", "executing", "returned 3"},
		"killed":  {"submitted", "executing", "signal 9"},
		"held":    {"submitted", "executing", `held: because of "this" (3.7)`},
		"removed": {"submitted", "aborted: via condor_rm (by user " + p.owner.Name + ")"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if *update {
		saveLog(t, log.Path)
	}
}

// ended counts the jobs that have ended or are held.
func ended(got map[string][]string) (n int) {
	for _, events := range got {
		last := events[len(events)-1]
		if last != "submitted" && last != "executing" {
			n++
		}
	}
	return n
}

func describe(e eventlog.Event) string {
	switch d := e.Detail.(type) {
	case eventlog.Submitted:
		return "submitted"
	case eventlog.Executing:
		return "executing"
	case eventlog.Terminated:
		if d.Signal != 0 {
			return fmt.Sprintf("signal %d", d.Signal)
		}
		return fmt.Sprintf("returned %d", d.ReturnValue)
	case eventlog.Held:
		return fmt.Sprintf("held: %s (%d.%d)", d.Reason, d.Code, d.Subcode)
	case eventlog.Aborted:
		return "aborted: " + d.Reason
	case eventlog.Evicted:
		return "evicted: " + d.Reason
	}
	return ""
}

// saveLog stores a log as a golden file, without the parts that differ between machines.
func saveLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAll(text, []byte("127.0.0.1:9618"))
	text = regexp.MustCompile(`/tmp/condor-test-\d+`).ReplaceAll(text, []byte("/home/user"))
	text = regexp.MustCompile(`(schedd|startd)_\d+_[0-9a-f]+`).ReplaceAll(text, []byte("${1}_1_0"))
	if err := os.WriteFile(filepath.Join("eventlog", "testdata", "events.log"), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestArgumentsArriveAsGiven checks that HTCondor interprets no character on the way to a job.
func TestArgumentsArriveAsGiven(t *testing.T) {
	t.Parallel()
	p := common(t)
	args := []string{"", " ", "a b", "it's", `"quoted"`, `back\slash\`, "$(Cluster)", "$$(OpSys)", "$ENV(HOME)", "$$$(x)", "tab\there", "ünïcode", "%d*?~;&|<>"}
	env := map[string]string{"PLAIN": "x", "HARD": `it's "a" $(b) $$(OpSys) c=d \`, "EMPTY": ""}
	job := sh(p, "args", `for a; do printf '[%s]' "$a"; done; printf '|%s|%s|%s' "$PLAIN" "$HARD" "${EMPTY-unset}"`)
	job.Procs[0].Arguments = append(append(job.Procs[0].Arguments, "sh"), args...)
	job.Procs[0].Environment = env
	job.Log = "args.log"
	if _, err := p.Tools().Submit(soon(t), job); err != nil {
		t.Fatal(err)
	}
	log := eventlog.File{Path: filepath.Join(p.config.Dir, "args.log")}
	eventually(t, "end of the job", func() (bool, error) {
		for event, err := range log.New(time.Now()) {
			switch d := event.Detail.(type) {
			case eventlog.Terminated:
				return true, err
			case eventlog.Held:
				t.Fatal(d)
			}
		}
		return false, nil
	})
	out, err := os.ReadFile(filepath.Join(p.config.Dir, "args.out"))
	if err != nil {
		t.Fatal(err)
	}
	want := "[" + strings.Join(args, "][") + "]|x|" + env["HARD"] + "|"
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Error(diff)
	}
}
