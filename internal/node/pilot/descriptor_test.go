package pilot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// Files that a batch system left open for the job are closed for the tasks.
func TestTaskHasOnlyStandardFiles(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, nil)
	r := place.startUnder("/bin/sh", "-c", `exec 9>"$1/held" "$0" run --dir "$1"`, program, place.dir)
	s.workers(1)
	file := filepath.Join(t.TempDir(), "pid")
	s.submit(fmt.Sprintf("exec sh -c 'echo $$ >%[1]s.new; mv %[1]s.new %[1]s; exec sleep 1000'", file), time.Minute)
	pid := pidFrom(t, file)
	eventually(t, "the task to be nothing but sleep", func() bool { return strings.HasPrefix(commandLine(pid), "sleep ") })
	eventually(t, "only 0, 1 and 2 to be open", func() bool { // sleep first opens its libraries
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		return err == nil && len(open) == 3 && open[2].Name() == "2"
	})
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/9", r.cmd.Process.Pid)); err != nil && !errors.Is(err, fs.ErrPermission) { // only root can read this
		t.Errorf("the pilot itself: %v", err)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.report(4, corral.OutcomePreempted, false)
}
