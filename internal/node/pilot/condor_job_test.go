//go:build sites

package pilot_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// The token is a file of the same user, so permissions do not hide it; but no job receives it without searching for it.
func TestCondorTokenIsNotExposed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, nil)
	b, err := os.ReadFile(filepath.Join(place.dir, jobfiles.PoolToken))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(b))
	r := place.start()
	place.inPool(1)
	cluster := place.job("env; cat /proc/self/environ; pwd; find . -type f | xargs cat", 1)
	shown := below(place.root)
	if len(shown) < 3 {
		t.Errorf("processes of HTCondor: %v, want master, startd and procd", shown)
	}
	for _, pid := range append(shown, sessionOf(r.cmd.Process.Pid)...) {
		for _, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
			if err != nil && !alive(pid) { // the job's process may have ended
				continue
			}
			if err != nil || strings.Contains(string(b), secret) {
				t.Errorf("%s of %q shows the token (%v)", file, commandLine(pid), err)
			}
		}
	}
	eventually(t, "the end of the job", func() bool { return len(place.states(cluster)) == 0 })
	out, err := os.ReadFile(filepath.Join(place.root, "submitted", "out.0"))
	if err != nil || strings.Contains(string(out), secret) || !strings.Contains(string(out), "/execute/") {
		t.Errorf("the job's environment and folder (%v):\n%s", err, out)
	}
	s.dispatcher.Leave(7)
	if rep := r.report(0, corral.OutcomeRemoved, false); strings.Contains(strings.Join(rep.Log, "\n"), secret) {
		t.Error("the report shows the token")
	}
}

// corrald may replace the token at any time before the worker needs it.
func TestCondorTokenIsReadWhenAWorkerStarts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, nil)
	file := filepath.Join(place.dir, jobfiles.PoolToken)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r := place.start()
	eventually(t, "its first try", func() bool {
		_, err := os.Stat(filepath.Join(place.dir, "scratch", "0"))
		return err == nil
	})
	if err := os.WriteFile(file+".new", good, 0o600); err != nil {
		t.Fatal(err)
	}
	giveAway(t, place.dir)
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	place.inPool(1)
	s.dispatcher.Leave(7)
	r.report(0, corral.OutcomeRemoved, false)
}

func TestCondorJobThatIsTooLongIsNotStarted(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, nil)
	r := place.start()
	place.inPool(1)
	long := place.jobOf("exit 0", 1, classad.Ad{"CorralRuntime": 3600.0})
	short := place.jobOf("exit 0", 1, classad.Ad{"CorralRuntime": 5.0})
	eventually(t, "the end of the short job", func() bool { return len(place.states(short)) == 0 })
	if place.states(long)[jobIdle] != 1 {
		t.Error("a job that needs longer than the worker stays was started")
	}
	s.dispatcher.Leave(7)
	r.report(0, corral.OutcomeRemoved, false)
}

// Without control groups a job can allocate any amount of memory: it is put on hold when its measured memory exceeds
// its slot.
func TestCondorJobOverItsMemoryIsHeld(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, nil)
	r := place.start()
	place.inPool(1)
	cluster := place.job("head -c 150000000 /dev/zero | tail -c 140000000 | sleep 1000", 1)
	place.executing(1)
	from := time.Now()
	eventually(t, "the job to be held", func() bool { return place.states(cluster)[jobHeld] == 1 })
	t.Logf("held after %s", time.Since(from).Round(time.Millisecond))
	s.dispatcher.Leave(7)
	r.report(0, corral.OutcomeRemoved, false)
}
