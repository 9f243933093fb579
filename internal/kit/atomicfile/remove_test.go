package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs fn as a user whom file modes restrict, unlike root.
func asNobody(t *testing.T, fn func(dir string)) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "disk")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Getuid() == 0 {
			runtime.LockOSThread() // the thread ends with this goroutine
			const nobody = 65534
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Error(err)
			}
			_, _ = unix.SetfsuidRetUid(nobody)
		}
		fn(dir)
	}()
	<-done
}

func TestRemoveAllRemovesWhatATaskMadeReadOnly(t *testing.T) {
	t.Parallel()
	asNobody(t, func(dir string) {
		inner := filepath.Join(dir, "a/b/c")
		err := errors.Join(os.MkdirAll(inner, 0o700), os.WriteFile(inner+"/file", nil, 0o400),
			os.Symlink("/", inner+"/link"), os.Chmod(inner, 0o500), os.Chmod(filepath.Dir(inner), 0))
		if err != nil {
			t.Error(err)
			return
		}
		if err := os.RemoveAll(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("os.RemoveAll: %v", err)
		}
		if err := RemoveAll(filepath.Join(dir, "a")); err != nil {
			t.Error(err)
		}
		if err := RemoveAll(filepath.Join(dir, "a")); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}
