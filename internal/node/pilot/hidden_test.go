package pilot_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
)

// Two accounts that belong to no person: one for the pilot and its tasks, and another account. Only root can use them.
const pilotAccount, otherAccount = 65534, 65533

// The secret that admits workers is in the memory of the supervisor and of the workers, where no task can read it,
// whether the task runs under the same account or another account.
func TestPilotMemoryIsPrivate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, nil)
	readers := map[string]*syscall.Credential{"a process of the same account": nil}
	if os.Getuid() == 0 { // root may read everything
		place.as = &syscall.Credential{Uid: pilotAccount, Gid: pilotAccount}
		readers["a process of the same account"] = place.as
		readers["a process of another account"] = &syscall.Credential{Uid: otherAccount, Gid: otherAccount}
		for _, dir := range []string{filepath.Dir(place.root), filepath.Dir(s.socket)} { // only we may enter these
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{place.root, filepath.Dir(place.dir), place.dir, filepath.Join(place.dir, "order.json"), s.socket} {
			if err := os.Chown(path, pilotAccount, pilotAccount); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := place.start()
	s.workers(1)
	pids := sessionOf(r.cmd.Process.Pid)
	if len(pids) != 2 {
		t.Errorf("processes %v, want supervisor and worker", pids)
	}
	for name, as := range readers {
		read := func(pid int, script string) error {
			cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf(script, pid))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
			return cmd.Run()
		}
		if err := read(os.Getpid(), "cat /proc/%d/stat"); err != nil {
			t.Errorf("%s reads nothing at all: %v", name, err)
		}
		for _, pid := range pids {
			for _, script := range []string{
				"cat /proc/%d/environ", "cat /proc/%d/maps", "ls /proc/%d/fd/", "dd if=/proc/%d/mem bs=1 count=0", "cat /proc/%d/auxv",
			} {
				if read(pid, script) == nil {
					t.Errorf("%s may %s: %s", name, fmt.Sprintf(script, pid), commandLine(pid))
				}
			}
		}
	}
	s.dispatcher.Drain(7)
	r.report(0, corral.OutcomeDrained, false)
}
