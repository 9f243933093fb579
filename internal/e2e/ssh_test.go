//go:build sites

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// An sshUser has a site behind a real sshd, and an encrypted key for it.
type sshUser struct {
	*user
	sshd *gridsitetest.SSHD
	root string // the site's
}

const secret = "correct horse"

func newSSHUser(t *testing.T, env ...string) *sshUser {
	t.Helper()
	u := &sshUser{user: newUser(t, env...), sshd: gridsitetest.StartSSHD(t)}
	u.root = u.dir + "/far away/it's a $ROOT"
	u.sshd.Authorize(t, u.sshd.NewKey(t, secret))
	if err := os.Remove(u.sshd.SSH("known_hosts")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(u.sshd.SSH(""), u.dir+"/.ssh"); err != nil {
		t.Fatal(err)
	}
	return u
}

// typing runs the client on a terminal, where somebody types a line.
func (u *sshUser) typing(line string, args ...string) (said string, code int) {
	u.t.Helper()
	words := append([]string{filepath.Join(u.bin, "corral")}, args...)
	cmd := exec.Command("script", "-qec", shell.Line(words), "/dev/null")
	cmd.Env, cmd.Dir, cmd.Stdin = append(u.env, "SHELL=/bin/sh"), u.dir, strings.NewReader(line+"\n")
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func (u *sshUser) site() corral.Site {
	u.t.Helper()
	return read[corral.Site](u.user, "site", "show", "hpc")
}

// create is the command line that makes the site.
func (u *sshUser) create(more ...string) []string {
	return append([]string{"site", "create", "hpc", "--contact", u.sshd.Contact(), "--batch", "fork", "--root", u.root}, more...)
}

// wantRefused checks that the site was not created, why, and that nothing is there of it.
func (u *sshUser) wantRefused(what, said string, code, want int, word string) {
	u.t.Helper()
	if code != want || !strings.Contains(said, word) {
		u.t.Errorf("%s: exit code %d, want %d and %q in:\n%s", what, code, want, word, said)
	}
	if _, err := os.Stat(filepath.Dir(u.root)); err == nil {
		u.t.Errorf("%s: something is at the site", what)
	}
	if sites := read[[]corral.Site](u.user, "site", "list"); len(sites) != 1 {
		u.t.Errorf("%s: the sites are %v", what, sites)
	}
}

// The life of a site behind ssh: it is made by somebody who looks at its host key and gives a passphrase, has its
// package by push, and works on while nobody can log in there; all of it goes with its removal.
func TestSSHSite(t *testing.T) {
	t.Parallel()
	u := newSSHUser(t, "CORRALD_SUPPLY=push")
	u.must("up")
	a := u.corral(u.create()...)
	u.wantRefused("an unknown host", a.stderr, a.code, 5, u.sshd.Fingerprint(t))
	a = u.corral("site", "create", "hpc", "--contact", u.sshd.Contact(), "--batch", "fork", "--root", u.root+"\nx", "--accept-host-key")
	u.wantRefused("a newline in the root", a.stderr, a.code, 2, "control character")
	said, code := u.typing("wrong", u.create("--accept-host-key")...)
	u.wantRefused("a wrong passphrase", said, code, 5, "wrong passphrase")
	if said, code := u.typing(secret, u.create("--wait", "--timeout", "5m")...); code != 0 {
		t.Fatalf("site create: exit code %d, and\n%s", code, said)
	}
	if known, err := os.ReadFile(u.sshd.SSH("known_hosts")); err != nil || string(known) != u.sshd.KnownLine(t) {
		t.Errorf("known_hosts is %q (%v)", known, err)
	}
	u.must("glidein", "create", "--site", "hpc", "--hosts", "2", "--wait", "--timeout", "5m")
	u.away()
	u.restarted()
	u.until("the one login of all commands to be alone", time.Minute, func() bool { return len(u.sshd.Logins()) == 1 })
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	for _, dir := range []string{u.root, filepath.Join(u.sshd.Dir, "home")} {
		if left := files(t, dir); len(left) != 0 {
			t.Errorf("left in %s: %v", dir, left)
		}
	}
	if _, err := os.Stat(u.root); !os.IsNotExist(err) {
		t.Errorf("the root is still there: %v", err)
	}
	u.until("the login to end", time.Minute, func() bool { return len(u.sshd.Logins()) == 0 })
	u.must("down")
}

// away has nobody reach the site in mid-run: tasks go on, what is asked of the site waits, another site is not slowed.
func (u *sshUser) away() {
	u.t.Helper()
	run := u.must("run", u.workflow("steps", u.behind("go", 4, steps(24, 100*time.Millisecond))...), "--detach", "-q")
	u.until("some tasks are done", time.Minute, func() bool { return u.run(run).Tasks.Done >= 2 })
	u.sshd.Stop()
	done := u.run(run).Tasks.Done
	waiting := u.must("glidein", "create", "--site", "hpc", "-q")
	u.until("the trouble to be known", time.Minute, func() bool { return strings.Contains(u.site().Trouble.Why, "refused") })
	u.must("glidein", "create", "--site", "local", "--wait", "--timeout", "5m")
	u.let("go")
	u.until("tasks to go on", time.Minute, func() bool { return u.run(run).Tasks.Done >= done+4 })
	if s, g := u.site(), u.glidein(waiting); s.State != corral.SiteReady || s.Trouble.LoginNeeded || g.State.Terminal() {
		u.t.Errorf("meanwhile the site is %s (%+v) and the glidein %s", s.State, s.Trouble, g.State)
	}
	u.sshd.Start(u.t)
	u.must("glidein", "wait", waiting, "--timeout", "5m")
	u.until("the trouble to be over", time.Minute, func() bool { return u.site().Trouble == (corral.SiteTrouble{}) })
	u.must("runs", "wait", run)
	if got := u.run(run); got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		u.t.Errorf("run is %s with %d requeued: %s", got.State, got.Report.Requeued, got.Reason)
	}
	u.wantOneAttempt()
}

// wantOneAttempt checks that no glidein was lost or doubled.
func (u *sshUser) wantOneAttempt() {
	u.t.Helper()
	u.wantAttemptsThatRun()
	if n := len(u.workers()); n != 4 {
		u.t.Errorf("%d workers, want 4", n)
	}
}

// restarted has a corrald that nobody gave the passphrase: pilots go on until somebody logs in.
func (u *sshUser) restarted() {
	u.t.Helper()
	u.kill(u.running())
	u.must("up")
	u.until("the site to need a login", time.Minute, func() bool { return u.site().Trouble.LoginNeeded })
	u.until("the workers to come back", time.Minute, func() bool { return len(u.workers()) == 4 })
	if a := u.corral("site", "login", "hpc"); a.code != 5 || !strings.Contains(a.stderr, "terminal") {
		u.t.Errorf("site login without a terminal: exit code %d: %s", a.code, a.stderr)
	}
	if said, code := u.typing(secret, "site", "login", "hpc"); code != 0 {
		u.t.Fatalf("site login: exit code %d, and\n%s", code, said)
	}
	u.until("the trouble to be over", time.Minute, func() bool { return u.site().Trouble == (corral.SiteTrouble{}) })
	u.wantOneAttempt()
}
