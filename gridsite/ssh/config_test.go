package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// withSSH installs a command ssh in an otherwise empty PATH. It prints the entry of answers for a host, and fails for
// other hosts. withSSH returns a configuration with these lines.
func withSSH(t *testing.T, lines string, answers map[string]string) *config {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\nfor host; do :; done\n/bin/cat >'" + bin + "/read'\nif [ -e '" + bin + "'/host.$host ]; then /bin/cat '" + bin +
		"'/host.$host; else /bin/cat '" + bin + "'/fails >&2; exit 255; fi\n"
	for name, content := range map[string]string{"ssh": script, "fails": "/dev/stdin line 2: Bad port 'x'.\nterminating\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for host, answer := range answers {
		if err := os.WriteFile(filepath.Join(bin, "host."+host), []byte(answer), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	c := &config{home: home}
	if err := os.Mkdir(filepath.Dir(c.file()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.file(), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

const nothing = "identityfile none\nuserknownhostsfile none\nidentityagent SSH_AUTH_SOCK\n"

// A route is derived from the output of ssh for the site and for each jump host before it.
func TestRoute(t *testing.T) {
	c := withSSH(t, "Host *", map[string]string{
		"hpc": "user ann\nhostname hpc1.example\nport 2022\nproxyjump bob@gate:2200,[::1]\nidentityfile ~/.ssh/%r at %n\nidentityfile none\n" +
			"certificatefile cert\nuserknownhostsfile /a/kh %d/kh\nidentitiesonly yes\nhostkeyalias x\n",
		"gate": nothing + "user bob\nport 2200\nproxyjump other\n",
		"::1":  nothing + "user me\nport 22\n",
	})
	path, err := c.route(t.Context(), address{name: "hpc"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.home, ".ssh") + "/"
	keys := []string{dir + "id_ed25519", dir + "id_ecdsa", dir + "id_rsa"}
	known := []string{dir + "known_hosts", dir + "known_hosts2", "/etc/ssh/ssh_known_hosts"}
	want := []hop{
		{user: "bob", host: "gate", port: "2200", identities: keys, knownHosts: known},
		{user: "me", host: "::1", port: "22", identities: keys, knownHosts: known},
		{
			user: "ann", host: "hpc1.example", port: "2022", identities: []string{dir + "ann at hpc"}, explicit: true, identitiesOnly: true,
			certificates: []string{c.home + "/cert"}, knownHosts: []string{"/a/kh", c.home + "/kh", "/etc/ssh/ssh_known_hosts"},
		},
	}
	if diff := cmp.Diff(want, path, cmp.AllowUnexported(hop{})); diff != "" {
		t.Errorf("route (-want +got):\n%s", diff)
	}
	if got := strings.Join(c.ignored, ", "); got != "HostKeyAlias of hpc, ProxyJump of gate, which is itself jumped over" {
		t.Errorf("ignored: %s", got)
	}
	read, err := os.ReadFile(filepath.Join(os.Getenv("PATH"), "read"))
	if err != nil || string(read) != "Host *"+usual {
		t.Errorf("ssh read %q, %v", read, err)
	}
}

// Errors about settings that ssh or Corral does not accept name the file.
func TestRouteRefused(t *testing.T) {
	c := withSSH(t, "Host *\nPort x\n", map[string]string{
		"command": nothing + "proxycommand nc %h %p\n", "jump": nothing + "proxyjump :22\n",
	})
	for host, want := range map[string]string{
		"command": "ProxyCommand of command is not supported: use ProxyJump", "jump": "want [user@]host[:port]",
		"hpc": c.file() + " line 2: Bad port 'x'.",
	} {
		_, err := c.route(t.Context(), address{name: host})
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), c.file()) {
			t.Errorf("%s: %v, want %q, and the file", host, err, want)
		}
	}
}

// Without an ssh command the default settings apply, and the file is reported as ignored.
func TestRouteWithoutSSH(t *testing.T) {
	c := withSSH(t, "Port 1", nil)
	t.Setenv("PATH", t.TempDir())
	path, err := c.route(t.Context(), address{"ann", "hpc", "2022"})
	if err != nil || len(path) != 1 || path[0].address() != "hpc:2022" || path[0].user != "ann" || len(path[0].identities) != 3 {
		t.Errorf("route = %+v, %v", path, err)
	}
	if len(c.ignored) != 1 || !strings.Contains(c.ignored[0], c.file()) {
		t.Errorf("ignored: %q", c.ignored)
	}
}
