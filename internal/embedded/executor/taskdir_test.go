package executor

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A directory that a task made read-only is published unchanged, although only root could rename it directly.
func TestReadOnlyDirectoryIsPublished(t *testing.T) {
	t.Parallel()
	run, err := os.MkdirTemp("/tmp", "pool")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(run)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Getuid() == 0 {
			runtime.LockOSThread() // the thread ends with this goroutine
			const nobody = 65534
			if err := os.Chown(run, nobody, nobody); err != nil {
				t.Error(err)
			}
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		}
		out := run + "/tasks/t.1/out"
		if err := errors.Join(os.MkdirAll(out, 0o700), os.MkdirAll(run+"/data/out/old", 0o700), os.WriteFile(out+"/file", nil, 0o600), os.Chmod(out, 0o500)); err != nil {
			t.Error(err)
			return
		}
		d := TaskDir{run: run, Path: run + "/tasks/t.1", task: &execution.Task{Outputs: []string{"out"}}}
		if err := d.Publish(func() bool { return true }); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(run + "/data/out"); err != nil || info.Mode().Perm() != 0o500 {
			t.Errorf("the output is %v, %v", info, err)
		}
		if _, err := os.Stat(run + "/data/out/file"); err != nil {
			t.Error(err)
		}
	}()
	<-done
}
