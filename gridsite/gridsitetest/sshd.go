package gridsitetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// An SSHD is a real OpenSSH server on a loopback port, made by scripts/sshd, with the home directory of a user who
// knows it and is known to it. A login as root has DIR/home as its home directory.
type SSHD struct {
	Dir  string // the server's
	Home string // the user's, with .ssh
	Port string

	Lines []string // of its configuration, from the next Start on
	Under []string // the command, with arguments, under which it is started from then on

	cmd   *exec.Cmd
	ended chan struct{}
}

func sshdScript() (string, error) {
	root, err := programs.Root()
	return filepath.Join(root, "scripts", "sshd"), err
}

// openSSH is the folder of ssh, ssh-keygen and ssh-agent, and the last one in PATH from then on. The server is at hand,
// too.
var openSSH = sync.OnceValues(func() (string, error) {
	script, err := sshdScript()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(script, "--fetch")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --fetch: %w", script, err)
	}
	bin := strings.TrimSpace(string(out))
	return bin, os.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+bin) // for code that runs ssh
})

// OpenSSH is one of its commands.
func OpenSSH(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := openSSH()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(filepath.Join(bin, name), args...)
}

// StartSSHD starts a server with further lines of sshd_config, until the test ends. If the test fails, what the server
// said is logged.
func StartSSHD(t testing.TB, lines ...string) *SSHD {
	t.Helper()
	d := &SSHD{Dir: t.TempDir(), Home: t.TempDir(), Lines: lines}
	if err := os.Mkdir(d.SSH(""), 0o700); err != nil {
		t.Fatal(err)
	}
	d.Authorize(t, d.NewKey(t, ""))
	var err error
	for range 10 { // somebody else may have the port
		// The system gives no port of this range to a program that leaves the choice to it, and no pool or relay has
		// one.
		d.Port = strconv.Itoa(10000 + rand.IntN(10000))
		if err = d.start(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Stop()
		if t.Failed() {
			t.Logf("sshd said:\n%s", d.read(t, d.log()))
		}
	})
	d.Write(t, d.SSH("known_hosts"), d.KnownLine(t))
	return d
}

// SSH is the path of a file in the user's .ssh.
func (d *SSHD) SSH(name string) string { return filepath.Join(d.Home, ".ssh", name) }

// Address is where it listens.
func (d *SSHD) Address() string { return "127.0.0.1:" + d.Port }

// Contact is the site's.
func (d *SSHD) Contact() string { return "ssh://" + d.Address() }

// Write writes a private file.
func (d *SSHD) Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *SSHD) read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// KnownLine is what known_hosts says of the server.
func (d *SSHD) KnownLine(t testing.TB) string {
	t.Helper()
	key := strings.Fields(d.read(t, filepath.Join(d.Dir, "hostkey.pub")))
	return fmt.Sprintf("[127.0.0.1]:%s %s %s\n", d.Port, key[0], key[1])
}

// NewKey replaces the user's key and returns its public half. Without a passphrase the key is not encrypted.
func (d *SSHD) NewKey(t testing.TB, passphrase string) string {
	t.Helper()
	return d.NewKeyFile(t, "id_ed25519", passphrase)
}

// NewKeyFile makes a key in the user's .ssh. A passphrase costs it hardly any time.
func (d *SSHD) NewKeyFile(t testing.TB, name, passphrase string) string {
	t.Helper()
	key := d.SSH(name)
	for _, old := range []string{key, key + ".pub"} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	Keygen(t, "-t", "ed25519", "-N", passphrase, "-a", "1", "-f", key)
	return d.read(t, key+".pub")
}

// Fingerprint is that of the host key.
func (d *SSHD) Fingerprint(t testing.TB) string {
	t.Helper()
	return strings.Fields(Keygen(t, "-l", "-f", filepath.Join(d.Dir, "hostkey.pub")))[1]
}

// Keygen runs ssh-keygen and returns what it prints.
func Keygen(t testing.TB, args ...string) string {
	t.Helper()
	out, err := OpenSSH(t, "ssh-keygen", append([]string{"-q"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	return string(out)
}

// Authorize lets in a user who has one of these keys, and no other.
func (d *SSHD) Authorize(t testing.TB, public ...string) {
	t.Helper()
	d.Write(t, filepath.Join(d.Dir, "authorized_keys"), strings.Join(public, "\n"))
}

// Start starts the server again, and returns once it listens.
func (d *SSHD) Start(t testing.TB) {
	t.Helper()
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
}

// start starts the server, and returns once its log says that it listens: a port that is open says less, because
// somebody else may have it.
func (d *SSHD) start() error {
	script, err := sshdScript()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(d.log(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	said, err := log.Seek(0, io.SeekEnd) // by the server before
	if err != nil {
		return err
	}
	args := slices.Concat(d.Under, []string{script, d.Dir, d.Port}, d.Lines)
	d.cmd = exec.Command(args[0], args[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return err
	}
	d.ended = make(chan struct{})
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait()
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(Patience); ; {
		text, err := io.ReadAll(io.NewSectionReader(log, said, 1<<20))
		if err != nil || bytes.Contains(text, []byte("Server listening on")) {
			return err
		}
		select {
		case <-d.ended:
			return fmt.Errorf("sshd ended: %s", text)
		case <-deadline:
			return fmt.Errorf("sshd does not listen: %s", text)
		case <-tick.C:
		}
	}
}

func (d *SSHD) log() string { return filepath.Join(d.Dir, "log") }

// Logins lists the server's processes that each hold one connection.
func (d *SSHD) Logins() []int {
	pid := d.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var pids []int
	for _, word := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stop kills the server and its connections. What runs below them goes on, as at a machine whose network fails. The
// server is halted first, so that no login comes in that is not among its connections yet.
func (d *SSHD) Stop() {
	if d.cmd.Process.Signal(syscall.SIGSTOP) == nil { // else it has ended, and its number may be another's
		d.halted()
		for _, pid := range d.Logins() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = d.cmd.Process.Kill()
	<-d.ended
}

// halted returns once the server stands still, or has ended.
func (d *SSHD) halted() {
	pid := d.cmd.Process.Pid
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, state, _ := bytes.Cut(stat, []byte(") ")); err != nil || !bytes.ContainsAny(state[:min(1, len(state))],
			"RSD") {
			return
		}
		<-time.After(time.Millisecond)
	}
}
