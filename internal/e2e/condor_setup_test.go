//go:build sites

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/programs"
)

// opened is a folder of the programs as users have them, which everybody may enter, as not every clone. With the race
// detector packages of HTCondor would take minutes: they are forty times the pilot's.
var opened = sync.OnceValue(func() string {
	from, err := programs.Plain()
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "corral-e2e-")
	if err != nil {
		panic(err)
	}
	atEnd(func() error { return os.RemoveAll(dir) })
	if err := errors.Join(os.CopyFS(dir, os.DirFS(from)), os.Chmod(dir, 0o755)); err != nil {
		panic(err)
	}
	return dir
})

// A condorUser is a user whose cluster "mine" is an HTCondor pool. Root's corrald runs as nobody, as it must.
type condorUser struct {
	*user
	open string // a folder where jobs may write; not in /tmp, where DAGMan wants no logs
}

func newCondorUser(t testing.TB, env ...string) *condorUser {
	t.Helper()
	u := &condorUser{user: newUser(t, append(env, "PATH="+opened()+":"+os.Getenv("PATH"))...)}
	u.bin = opened()
	open, err := os.MkdirTemp("/var/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	u.open = open
	for dir, mode := range map[string]os.FileMode{
		u.dir: 0o755, u.dir + "/cache": 0o755, open: 0o777,
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	// What was downloaded stays for the next time, beside what scripts/htcondor makes.
	if err := os.Symlink(downloads(t), u.dir+"/cache/corral-downloads"); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		u.env = append(u.env, "CORRAL_RUN_AS=nobody")
	}
	return u
}

// downloads is the parent of the folder with Debian's packages.
func downloads(t testing.TB) string {
	t.Helper()
	if os.Getuid() == 0 {
		return "/var/cache/corral-ci"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "corral-ci")
}

// sh runs a script as the cluster's user would, in the open folder, and returns what it prints.
func (u *condorUser) sh(script string) string {
	u.t.Helper()
	out, err := u.trySh(script)
	if err != nil {
		u.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (u *condorUser) trySh(script string) (string, error) {
	cmd := exec.Command("sh", "-ec", `eval "$(corral cluster env mine)"
`+script)
	cmd.Env, cmd.Dir = u.env, u.open
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return errs.String() + string(out), err
	}
	return strings.TrimSpace(string(out)), nil
}

// write makes a file of the open folder.
func (u *condorUser) write(name, content string) {
	u.t.Helper()
	if err := os.WriteFile(filepath.Join(u.open, name), []byte(content), 0o644); err != nil {
		u.t.Fatal(err)
	}
}

// raw returns the content of a file of the open folder; "" if there is none.
func (u *condorUser) raw(name string) string {
	b, _ := os.ReadFile(filepath.Join(u.open, name))
	return string(b)
}

// content of a file of the open folder without white space at its ends; "" if there is none.
func (u *condorUser) content(name string) string { return strings.TrimSpace(u.raw(name)) }

// timed says how long do took.
func (u *condorUser) timed(what string, do func()) {
	u.t.Helper()
	from := time.Now()
	do()
	u.t.Logf("%6.1f s  %s", time.Since(from).Seconds(), what)
}

// startPool starts corrald, the cluster mine and the site here.
func (u *condorUser) startPool(t *testing.T) {
	t.Helper()
	made := madeForNode(t)
	u.must("up")
	u.must("package", "import", "--sign", made.worker)
	u.must("cluster", "create", "mine", "--kind", "condor", "--htcondor", made.release)
	u.must("site", "create", "here", "--contact", "local:", "--batch", "fork", "--wait")
}

func (u *condorUser) workers() []corral.Worker {
	u.t.Helper()
	return read[[]corral.Worker](u.user, "cluster", "workers", "mine")
}

// atEnd has something done when all tests have ended.
func atEnd(end func() error) {
	shared.Lock()
	defer shared.Unlock()
	shared.ends = append(shared.ends, end)
}
