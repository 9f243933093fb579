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

// An SSHD is a real OpenSSH server on a loopback port, created by scripts/sshd, and the home directory of a user who is
// authorized at the server and trusts its host key. A root login uses DIR/home as its home directory.
type SSHD struct {
	Dir  string // the server's
	Home string // the user's, with .ssh
	Port string

	Lines []string // further lines of its configuration, from the next Start on
	Under []string // a command with arguments that runs the server, from the next Start on

	cmd   *exec.Cmd
	ended chan struct{}
}

func sshdScript() (string, error) {
	root, err := programs.Root()
	return filepath.Join(root, "scripts", "sshd"), err
}

// openSSH returns the folder of ssh, ssh-keygen and ssh-agent, and appends it to PATH. It also makes the server
// available.
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

// OpenSSH returns one of OpenSSH's commands.
func OpenSSH(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := openSSH()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(filepath.Join(bin, name), args...)
}

// StartSSHD starts a server, with further lines of sshd_config, that runs until the test ends. If the test fails, the
// server's log is printed.
func StartSSHD(t testing.TB, lines ...string) *SSHD {
	t.Helper()
	d := &SSHD{Dir: t.TempDir(), Home: t.TempDir(), Lines: lines}
	if err := os.Mkdir(d.SSH(""), 0o700); err != nil {
		t.Fatal(err)
	}
	d.Authorize(t, d.NewKey(t, ""))
	var err error
	for range 10 { // another program may use the port
		// The system does not assign ports of this range automatically, and no pool or relay uses them.
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

// SSH returns the path of a file in the user's .ssh.
func (d *SSHD) SSH(name string) string { return filepath.Join(d.Home, ".ssh", name) }

// Address returns the server's listening address.
func (d *SSHD) Address() string { return "127.0.0.1:" + d.Port }

// Contact returns the contact of a site at the server.
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

// KnownLine returns the server's line for known_hosts.
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

// NewKeyFile creates a key in the user's .ssh. It uses few rounds, so that decrypting the key is fast.
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

// Fingerprint returns the fingerprint of the host key.
func (d *SSHD) Fingerprint(t testing.TB) string {
	t.Helper()
	return strings.Fields(Keygen(t, "-l", "-f", filepath.Join(d.Dir, "hostkey.pub")))[1]
}

// Keygen runs ssh-keygen and returns its output.
func Keygen(t testing.TB, args ...string) string {
	t.Helper()
	out, err := OpenSSH(t, "ssh-keygen", append([]string{"-q"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	return string(out)
}

// Authorize authorizes these keys and no others.
func (d *SSHD) Authorize(t testing.TB, public ...string) {
	t.Helper()
	d.Write(t, filepath.Join(d.Dir, "authorized_keys"), strings.Join(public, "\n"))
}

// Start starts the server again and returns once it listens.
func (d *SSHD) Start(t testing.TB) {
	t.Helper()
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
}

// start starts the server and returns once its log reports that it listens. An open port would prove less, because
// another program may have opened it.
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
	said, err := log.Seek(0, io.SeekEnd) // length of the log of an earlier server
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

// Logins lists the server's child processes, each of which serves one connection.
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

// Stop kills the server and its connections. Processes below them continue, as after a network failure. Stop suspends
// the server first, so that it cannot accept a connection that is missing from Logins.
func (d *SSHD) Stop() {
	if d.cmd.Process.Signal(syscall.SIGSTOP) == nil { // otherwise it has ended, and its pid may be reused
		d.halted()
		for _, pid := range d.Logins() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = d.cmd.Process.Kill()
	<-d.ended
}

// halted returns once the server is suspended or has ended.
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
