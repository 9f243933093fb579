package fork_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
)

// These tests cover the steps between a Submit and the only start of its job.

func shell(tag, script string) gridsite.JobSpec {
	return gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sh", "-c", script}, Walltime: time.Minute}
}

func TestForkInvalid(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	for _, c := range []struct {
		name, root string
		change     func(*gridsite.JobSpec)
	}{
		{"relative root", "a/b", nil},
		{"root with a newline", "/a\nb", nil},
		{"root of the machine", "/", nil},
		{"no tag", root, func(s *gridsite.JobSpec) { s.Tag = "" }},
		{"tag with a slash", root, func(s *gridsite.JobSpec) { s.Tag = "../x" }},
		{"tag with a comma", root, func(s *gridsite.JobSpec) { s.Tag = "a,b" }},
		{"no argv", root, func(s *gridsite.JobSpec) { s.Argv = nil }},
		{"relative command", root, func(s *gridsite.JobSpec) { s.Argv = []string{"true"} }},
		{"NUL in an argument", root, func(s *gridsite.JobSpec) { s.Argv = []string{"/bin/echo", "a\x00b"} }},
		{"negative walltime", root, func(s *gridsite.JobSpec) { s.Walltime = -1 }},
		{"file outside", root, func(s *gridsite.JobSpec) { s.Files = map[string][]byte{"../x": nil} }},
		{"file of ours", root, func(s *gridsite.JobSpec) { s.Files = map[string][]byte{"./stdout": nil} }},
		{"control file", root, func(s *gridsite.JobSpec) { s.Files = map[string][]byte{".corral/leader": nil} }},
	} {
		spec := shell("job", "exit 0")
		if c.change != nil {
			c.change(&spec)
		}
		if _, err := fork.New(local.Conn{}, c.root).Submit(t.Context(), spec); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s: Submit = %v, want an invalid error", c.name, err)
		}
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an invalid submission touched the site: %v", err)
	}
}

func TestForkRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := `echo "tar: order.json: Cannot write: No space left on device\ntar: Exiting with failure status due to previous errors" >&2; exit 2`
	for _, c := range []struct {
		name, root, text string
		conn             gridsite.Conn
		transient        bool
	}{
		{"root below a file", filepath.Join(file, "root"), "Not a directory", local.Conn{}, false},
		{"root that cannot be made", "/proc/corral/root", "/proc/corral", local.Conn{}, false},
		{"no space", filepath.Join(t.TempDir(), "root"), "No space left on device", gridsitetest.WithCommand(t, "tar", full), true},
		{"no tar", filepath.Join(t.TempDir(), "root"), "no tar here", gridsitetest.WithCommand(t, "tar", "echo no tar here >&2; exit 127"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := fork.New(c.conn, c.root)
			_, err := batch.Submit(t.Context(), shell("job", "exit 0"))
			var no *gridsite.Refused
			if !errors.As(err, &no) || !strings.Contains(no.Text, c.text) || no.Transient != c.transient {
				t.Errorf("Submit = %#v, want it refused with %q, transient %t", err, c.text, c.transient)
			}
			if jobs, err := batch.Poll(t.Context(), []string{"job"}); len(jobs) != 0 || err != nil {
				t.Errorf("Poll = %v, %v, want nothing", jobs, err)
			}
		})
	}
}

// If a submission was interrupted after publishing the directory but before starting the leader, the next submission
// completes it with the first one's script.
func TestForkHalfMade(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	broken := fork.New(gridsitetest.WithCommand(t, "setsid", "exit 1"), root)
	for _, tag := range []string{"completed", "cancelled", "forgotten"} {
		if id, err := broken.Submit(t.Context(), shell(tag, "echo first")); corral.KindOf(err) != corral.Unknown {
			t.Fatalf("Submit = %q, %v, want an unknown outcome", id, err)
		}
	}
	batch := fork.New(local.Conn{}, root)
	if jobs, err := batch.Poll(t.Context(), []string{"completed", "cancelled"}); len(jobs) != 0 || err != nil {
		t.Errorf("Poll = %v, %v, want nothing", jobs, err)
	}
	if _, err := batch.Submit(t.Context(), shell("completed", "echo second")); err != nil {
		t.Fatal(err)
	}
	gridsitetest.Await(t, batch, "completed")
	expectStdout(t, batch, "completed", "first\n")

	if err := batch.Cancel(t.Context(), "cancelled", time.Second); err != nil {
		t.Fatal(err)
	}
	if id, err := batch.Submit(t.Context(), shell("cancelled", "echo second")); err != nil || id == "" {
		t.Errorf("Submit = %q, %v", id, err)
	}
	if job := gridsitetest.Await(t, batch, "cancelled"); job.Killed != gridsite.ByCancel || job.Exit != nil {
		t.Errorf("ended as %+v, want it cancelled before its start", job)
	}
	expectStdout(t, batch, "cancelled", "")

	if err := batch.Forget(t.Context(), "forgotten"); err != nil {
		t.Error(err)
	}
}

// Regardless of how often and where a submission is interrupted, the job starts only once, and no files are left after
// it is forgotten.
func TestForkSubmitBrokenOff(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	batch := fork.New(local.Conn{}, root)
	for i := range 10 {
		spec := shell(fmt.Sprint("job-", i), "echo started >>once")
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(15000))*time.Microsecond)
			_, _ = batch.Submit(ctx, spec) // the outcome is unknown, which is the point
			cancel()
		}
		if _, err := batch.Submit(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		gridsitetest.Await(t, batch, spec.Tag)
		if b, err := batch.Read(t.Context(), spec.Tag, "once"); string(b) != "started\n" {
			t.Errorf("%s wrote %q, %v", spec.Tag, b, err)
		}
		if err := batch.Forget(t.Context(), spec.Tag); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root is still there: %v", err)
	}
}

func TestForkSubmitAtOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		conn := local.Conn{}
		wg.Go(func() {
			var err error
			ids[i], err = fork.New(conn, root).Submit(t.Context(), shell("job", "echo started >>once"))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	batch := fork.New(local.Conn{}, root)
	job := gridsitetest.Await(t, batch, "job")
	for _, id := range ids {
		if id != job.ID {
			t.Errorf("ids %q, want %q throughout", ids, job.ID)
		}
	}
	if b, err := batch.Read(t.Context(), "job", "once"); string(b) != "started\n" {
		t.Errorf("wrote %q, %v", b, err)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "jobs")); len(entries) != 1 || err != nil {
		t.Errorf("jobs holds %v, %v, want one directory", entries, err)
	}
}

func TestForkPrivate(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	batch := fork.New(local.Conn{}, root)
	spec := shell("job", "umask; exit 0")
	spec.Files = map[string][]byte{"order.json": []byte("secret"), "d/deep": nil}
	if _, err := batch.Submit(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	gridsitetest.Await(t, batch, "job")
	for name, want := range map[string]fs.FileMode{
		"": fs.ModeDir | 0o700, "jobs": fs.ModeDir | 0o700, "jobs/job": fs.ModeDir | 0o700, "jobs/job/d": fs.ModeDir | 0o700,
		"jobs/job/order.json": 0o600, "jobs/job/d/deep": 0o600, "jobs/job/stdout": 0o600, "jobs/job/stderr": 0o600,
	} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode() != want {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if out, err := batch.Read(t.Context(), "job", "stdout"); err != nil || strings.TrimSpace(string(out)) == "0077" {
		t.Errorf("the job's umask is %s, %v, want the site's own", out, err)
	}
}

func expectStdout(t *testing.T, batch gridsite.Batch, tag, want string) {
	t.Helper()
	if b, err := batch.Read(t.Context(), tag, "stdout"); string(b) != want || err != nil {
		t.Errorf("stdout of %s = %q, %v, want %q", tag, b, err, want)
	}
}
