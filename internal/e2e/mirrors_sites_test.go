//go:build sites

package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// corrald has lost its archives, which are in a cache after all; an FTP server has them.
func TestFTPMirror(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.serve()
	copied, _ := u.giveAway("copied")
	u.must("mirror", "add", "campus", u.serveFTP(copied))
	if s := u.stage("here"); s.State != corral.SiteReady {
		t.Fatalf("site is %s: %s", s.State, s.Reason)
	}
	tries := u.history("here", "fetch")
	if len(tries) != 2 || !strings.Contains(tries[0], "corrald asked source 1 of 1, which worked: ftp://") {
		t.Errorf("tries %q, want corrald's by ftp and the site's own", tries)
	}
	u.must("site", "remove", "here", "--wait", "--timeout", "5m")
}

// giveAway moves the archives of corrald's mirror into a copy of it, which is called so, and returns this, and one of
// them.
func (u *user) giveAway(name string) (copied, archive string) {
	u.t.Helper()
	copied = filepath.Join(u.dir, name)
	if err := os.CopyFS(copied, os.DirFS(u.dir+"/cache/corral/mirror")); err != nil {
		u.t.Fatal(err)
	}
	archives, err := filepath.Glob(u.dir + "/cache/corral/mirror/*.tar.gz")
	if err != nil || len(archives) == 0 {
		u.t.Fatal(archives, err)
	}
	for _, a := range archives {
		if err := os.Remove(a); err != nil {
			u.t.Fatal(err)
		}
	}
	return copied, filepath.Join(copied, filepath.Base(archives[0]))
}

// A mirror behind an sshd is read with the keys that sites are reached with. What is in the way is said.
func TestSFTPMirror(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	sshd := gridsitetest.StartSSHD(t, "Subsystem sftp internal-sftp")
	if err := os.Symlink(sshd.SSH(""), u.dir+"/.ssh"); err != nil {
		t.Fatal(err)
	}
	u.serve()
	copied, archive := u.giveAway("copied")
	base := "sftp://" + sshd.Address()
	if a := u.corral("mirror", "add", "nowhere", base+"/no/such/place"); a.code != 0 || !strings.Contains(a.stderr, "is added, but: ") || !strings.Contains(a.stderr, "file does not exist") {
		t.Errorf("a mirror that is not there: exit code %d, %s", a.code, a.stderr)
	}
	u.must("mirror", "remove", "nowhere")
	u.must("mirror", "add", "campus", base+copied)
	sshd.NewKey(t, "")
	if a := u.corral("mirror", "check", "campus"); a.code != 1 || !strings.Contains(a.stderr, sshd.Address()+" does not let ") {
		t.Errorf("with a key that the server does not know: exit code %d, %s", a.code, a.stderr)
	}
	public, err := os.ReadFile(sshd.SSH("id_ed25519.pub"))
	if err := errors.Join(err, os.Rename(archive, archive+".away")); err != nil {
		t.Fatal(err)
	}
	sshd.Authorize(t, string(public))
	u.must("mirror", "check", "campus")
	u.must("site", "create", "here", "--contact", "local:", "--batch", "fork", "--root", filepath.Join(u.dir, "here"))
	site := func() corral.Site { return read[corral.Site](u, "site", "show", "here") }
	u.until("the site says that the archive is not there", time.Minute, func() bool {
		why := site().Trouble.Why
		return strings.Contains(why, base) && strings.Contains(why, "file does not exist")
	})
	if err := os.Rename(archive+".away", archive); err != nil {
		t.Fatal(err)
	}
	u.until("the site is READY", 2*time.Minute, func() bool { return site().State == corral.SiteReady })
	if tries := strings.Join(u.history("here", "fetch"), "\n"); !strings.Contains(tries, "corrald asked source 1 of 1, which worked: "+base) {
		t.Errorf("tries %s, want one of corrald's by sftp", tries)
	}
	u.must("site", "remove", "here", "--wait", "--timeout", "5m")
}

// serveFTP runs a real FTP server on dir and returns its URL.
func (u *user) serveFTP(dir string) string {
	u.t.Helper()
	free := freeAddress(u.t)
	address, port := free.String(), strconv.Itoa(int(free.Port()))
	cmd := exec.Command("../../scripts/vsftpd", dir, port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	u.until("the FTP server answers", time.Minute, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "ftp://" + address
}
