package runas

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// somebody is a user other than the current one.
var somebody = map[bool]string{true: "nobody", false: "root"}[asRoot()]

// TestMain lets this program become somebody and print its remaining privileges.
func TestMain(m *testing.M) {
	if os.Getenv("RUNAS_BECOME") != "" {
		os.Exit(become())
	}
	os.Exit(m.Run())
}

func become() int {
	u, err := Find(somebody)
	if err == nil {
		err = u.Become()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, line := range strings.Split(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "Uid", "Gid", "CapPrm", "CapEff", "CapAmb", "Umask":
			fmt.Println(name, strings.Join(strings.Fields(value), " "))
		}
	}
	owner, err := Owner("/proc/self/fd")
	fmt.Println("proc", owner, err)
	dir, err := os.Getwd()
	fmt.Println("cwd", dir, err)
	fmt.Println("env", os.Getenv("HOME"), os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("TMPDIR"))
	_, err = os.ReadFile("/etc/shadow")
	fmt.Println("shadow", os.IsPermission(err))
	return 0
}

func asRoot() bool { return os.Geteuid() == 0 }

func TestFind(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if u, err := Find(""); err != nil || u.Other() {
		t.Errorf("Find of no name = %+v, %v, want us", u, err)
	}
	if _, err := Find("no-such-user"); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("Find of an unknown name: %v", err)
	}
	if asRoot() {
		if u, err := Find(somebody); err != nil || !u.Other() || u.Name != somebody {
			t.Errorf("Find = %+v, %v, want %s", u, err, somebody)
		}
		if _, err := Find("root"); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "name an unprivileged user") {
			t.Errorf("Find of root: %v", err)
		}
		return
	}
	if u, err := Find(me.Username); err != nil || u.Other() {
		t.Errorf("Find of ourselves = %+v, %v", u, err)
	}
	if _, err := Find("root"); corral.KindOf(err) != corral.Forbidden || err.Error() != "only root can run it as root" {
		t.Errorf("Find of somebody else: %v", err)
	}
}

// The process becomes the user in every respect, and cannot return; a process that is not root's stays unchanged.
func TestBecome(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "RUNAS_BECOME=1", "TMPDIR="+closed)
	out, err := cmd.CombinedOutput()
	if !asRoot() {
		if want := "only root can run it as root\n"; err == nil || string(out) != want {
			t.Errorf("it says %q, %v, want %q", out, err, want)
		}
		return
	}
	who, lookErr := user.Lookup(somebody)
	if err != nil || lookErr != nil {
		t.Fatalf("%v, %v: %s", err, lookErr, out)
	}
	want := fmt.Sprintf(`Umask 0077
Uid %[1]s %[1]s %[1]s %[1]s
Gid %[2]s %[2]s %[2]s %[2]s
CapPrm 0000000000000000
CapEff 0000000000000000
CapAmb 0000000000000000
proc  <nil>
cwd / <nil>
env %[3]s nobody nobody 
shadow true
`, who.Uid, who.Gid, who.HomeDir)
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// below returns a directory that every user may enter.
func below(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// target is somebody for root, and otherwise the current user.
func target(t *testing.T) User {
	t.Helper()
	if !asRoot() {
		return User{}
	}
	u, err := Find(somebody)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMake(t *testing.T) {
	t.Parallel()
	u, dir := target(t), below(t)+"/a/b"
	for range 2 { // the directory may already be u's
		if err := u.Make(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 || u.Other() && int(info.Sys().(*syscall.Stat_t).Uid) != u.uid {
			t.Errorf("%s is %v (%v), want %s's alone", dir, info, err, u.Name)
		}
		if owner, err := Owner(dir); err != nil || owner != u.Name {
			t.Errorf("Owner = %q, %v, want %q", owner, err, u.Name)
		}
		if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if owner, err := Owner(dir + "/none"); err != nil || owner != "" {
		t.Errorf("Owner of nothing = %q, %v", owner, err)
	}
}

// Root does not give a directory to another user if this is unsafe, and reports the reason; for the current user these
// conditions do not matter.
func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(dir string) error
		says    string
	}{
		"a closed directory above": {func(dir string) error { return os.Mkdir(filepath.Dir(dir), 0o700) }, "nobody may not enter DIR/above: open it (chmod a+x DIR/above), or"},
		"a directory in use": {func(dir string) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			return os.WriteFile(dir+"/file", nil, 0o644)
		}, "DIR/above/it does not belong to nobody and is not empty: remove it"},
		"a link": {func(dir string) error {
			if err := os.MkdirAll(filepath.Dir(dir)+"/target", 0o755); err != nil {
				return err
			}
			return os.Symlink("target", dir)
		}, "DIR/above/it is not a directory, or is a link to one"},
	} {
		dir := below(t)
		if err := tt.prepare(dir + "/above/it"); err != nil {
			t.Fatal(err)
		}
		u := target(t)
		err := u.Make(dir + "/above/it")
		if !u.Other() {
			if err != nil {
				t.Errorf("%s: Make: %v", name, err)
			}
			continue
		}
		if want := strings.ReplaceAll(tt.says, "DIR", dir); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: Make: %v, want %q", name, err, want)
		}
	}
}

// A file with a second name may be another user's.
func TestOwn(t *testing.T) {
	t.Parallel()
	u, dir := target(t), below(t)
	file, err := os.Create(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := u.Own(file); err != nil {
		t.Error(err)
	}
	if owner, err := Owner(file.Name()); err != nil || owner != u.Name {
		t.Errorf("Owner = %q, %v, want %q", owner, err, u.Name)
	}
	if err := os.Link(file.Name(), dir+"/other"); err != nil {
		t.Fatal(err)
	}
	if err := u.Own(file); (err != nil) != u.Other() {
		t.Errorf("Own of a file with two names: %v", err)
	}
}
