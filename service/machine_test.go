//go:build sites

package service

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long anything may take here: a busy machine is worth the wait.
const patience = 5 * time.Minute

// A machine is a Debian with systemd in a folder, without systemd running. It has its own files and processes and this
// machine's network.
type machine struct {
	t       *testing.T
	process string // by which nsenter finds it
	system  []string
}

// systemd checks units, and logrotate rotates the audit log; a minimal Debian has neither.
const packages = "systemd,logrotate"

// newMachine makes one that is gone after the test, however that ends: its first process reads a pipe of ours.
func newMachine(t *testing.T) *machine {
	t.Helper()
	cmd := exec.Command("../scripts/fresh", "--hold", packages)
	cmd.Stderr = os.Stderr
	stay, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stay.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatalf("scripts/fresh --hold %s says %q: %v", packages, line, err)
	}
	m := &machine{t: t, process: strings.TrimSpace(line)}
	m.system = strings.Split(m.must(everything), "\n")
	return m
}

// command is a script of sh in the machine, which ends at the first of its commands that fails.
func (m *machine) command(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", "--target", m.process, "--mount", "--pid", "--root", "--wdns=/", "sh", "-euc", script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"}
	cmd.WaitDelay = 10 * time.Second // what it leaves behind may have its output
	return cmd
}

// must runs a script as root and returns what it prints.
func (m *machine) must(script string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	var errs bytes.Buffer
	cmd := m.command(ctx, script)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s%s", script, err, out, &errs)
	}
	return strings.TrimSpace(string(out))
}

// put copies a file of this machine into the root folder of that one.
func (m *machine) put(file string) {
	m.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	to := filepath.Join("/proc", m.process, "root", "tmp", filepath.Base(file))
	if err := os.WriteFile(to, text, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// everything lists the machine's files, of which some are always written when packages and users come and go.
const everything = `find / -xdev \( -path /tmp -o -path /var/lib/dpkg -o -path /run -o -path /root \) -prune -o -print |
	grep -vE '^/(etc/(passwd|group|shadow|gshadow|subuid|subgid)-|etc/\.pwd\.lock|var/log/dpkg\.log|var/lib/logrotate/status)$' | sort`
