package ssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// An address is the user's name for a host. user and port may be empty.
type address struct{ user, name, port string }

// A hop is a host to log in at, with its settings from the user's configuration. All paths are absolute and expanded.
// The code that reads a file decides whether it may be missing: a default identity may be missing, but not an identity
// named by the user.
type hop struct {
	user, host, port string
	identities       []string // private key files
	explicit         bool     // identities come from the user, not from the defaults
	identitiesOnly   bool     // restricts an agent's keys to these
	certificates     []string
	knownHosts       []string
}

func (h hop) address() string { return net.JoinHostPort(h.host, h.port) }

// A config is the user's ~/.ssh/config. The ssh command parses the file (ssh -G), so that Include, Match and all
// patterns have the same meaning as in the user's version of ssh. Without that command or file, defaults apply. The
// file is read again for each connection, because it may change while corrald runs for weeks.
type config struct {
	home    string
	ignored []string // settings that Corral does not follow, for people
}

func (c *config) file() string { return filepath.Join(c.home, ".ssh", "config") }

const (
	maxConfig  = 1 << 20          // bytes
	configTime = 10 * time.Second // for ssh to read the file: a command in a Match may hang
)

// usual is appended to the user's lines. ssh uses the first value of a keyword, so "none" appears only if the user has
// not set it. This distinguishes the user's own identities from ssh's defaults, which ssh -G would list in the same
// way.
const usual = "\nMatch all\nIdentityFile none\nUserKnownHostsFile none\n"

// route lists the hosts to log in at, each reached through the previous host; the last host is the one at the address
// to. ProxyJump lists the other hosts in order. A jump host is used as the configuration describes it, except that its
// own ProxyJump is not followed as ssh would follow it; c.ignored records this.
func (c *config) route(ctx context.Context, to address) ([]hop, error) {
	last, said, err := c.resolve(ctx, to)
	if err != nil {
		return nil, err
	}
	var hops []hop
	for _, jump := range said.jumps() {
		u, err := url.Parse("ssh://" + jump)
		if err != nil || u.Hostname() == "" {
			return nil, corral.ErrorAt(corral.Invalid, c.file(), "ProxyJump %q: want [user@]host[:port]", jump)
		}
		h, said, err := c.resolve(ctx, address{u.User.Username(), u.Hostname(), u.Port()})
		if err != nil {
			return nil, err
		}
		if said.jumps() != nil {
			c.ignored = append(c.ignored, "ProxyJump of "+u.Hostname()+", which is itself jumped over")
		}
		hops = append(hops, h)
	}
	return append(hops, last), nil
}

// resolve determines the settings for a login at a host. ProxyCommand is rejected, because without it the connection
// would lead to a different host than the user intends. Other unsupported keywords only make a login fail, or succeed
// with another key; they are recorded in c.ignored, which is reported with a failure.
func (c *config) resolve(ctx context.Context, a address) (hop, settings, error) {
	said, err := c.ask(ctx, a)
	if err != nil {
		return hop{}, nil, err
	}
	if command := said.first("proxycommand"); command != "" {
		return hop{}, nil, corral.ErrorAt(corral.Invalid, c.file(),
			"ProxyCommand of %s is not supported: use ProxyJump", a.name)
	}
	for keyword, usual := range map[string]string{"HostKeyAlias": "", "IdentityAgent": "SSH_AUTH_SOCK",
		"PKCS11Provider": ""} {
		if value := said.first(strings.ToLower(keyword)); value != "" && value != usual {
			c.ignored = append(c.ignored, keyword+" of "+a.name)
		}
	}
	h := hop{
		user: cmp.Or(said.first("user"), a.user),
		port: cmp.Or(said.first("port"), a.port, "22"),
		host: cmp.Or(said.first("hostname"), a.name),

		identitiesOnly: said.first("identitiesonly") == "yes",
	}
	if h.user == "" {
		me, err := user.LookupId(strconv.Itoa(os.Getuid())) // user.Current caches the user at the start
		if err != nil {
			return hop{}, nil, corral.ErrorAt(corral.Invalid, "contact", "no user name: %w", err)
		}
		h.user = me.Username
	}
	h.identities = c.files(said["identityfile"], a, h)
	h.certificates = c.files(said["certificatefile"], a, h)
	h.knownHosts = c.files(strings.Fields(said.first("userknownhostsfile")), a, h)
	h.explicit = len(h.identities) > 0
	if !h.explicit {
		h.identities = c.files([]string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}, a, h)
	}
	if len(h.knownHosts) == 0 {
		h.knownHosts = c.files([]string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}, a, h)
	}
	h.knownHosts = append(h.knownHosts, "/etc/ssh/ssh_known_hosts")
	return h, said, nil
}

// files returns the files named by words as absolute paths. ssh -G leaves '~' and the tokens of ssh_config(5) to the
// caller; the tokens that are common in file names are expanded here. "none" names no file.
func (c *config) files(words []string, a address, h hop) []string {
	tokens := strings.NewReplacer("%%", "%", "%d", c.home, "%h", h.host, "%p", h.port, "%r", h.user, "%n", a.name)
	var files []string
	for _, word := range words {
		if word == "none" {
			continue
		}
		if rest, ok := strings.CutPrefix(word, "~/"); ok {
			word = "%d/" + rest
		}
		file := tokens.Replace(word)
		if !filepath.IsAbs(file) { // corrald's working directory means nothing to the user
			file = filepath.Join(c.home, file)
		}
		files = append(files, file)
	}
	return files
}

// settings are the output of ssh -G for a host: the values of each keyword, in order. A keyword that may be repeated,
// such as IdentityFile, has several values; every other keyword has a single value, which may consist of several words.
type settings map[string][]string

// first returns the first value of a keyword, or "" if the keyword has no value or the value is "none".
func (s settings) first(keyword string) string {
	if values := s[keyword]; len(values) > 0 && !strings.EqualFold(values[0], "none") {
		return values[0]
	}
	return ""
}

// jumps returns the jump hosts through which this host is reached.
func (s settings) jumps() []string {
	if jumps := s.first("proxyjump"); jumps != "" {
		return strings.Split(jumps, ",")
	}
	return nil
}

// ask makes ssh read the file for one host. Nothing is cached: ssh takes a few milliseconds, and a login takes far
// longer. The text is sent through stdin, so that the lines of usual can follow it; ssh then names the file /dev/stdin
// in its errors, which ask replaces.
func (c *config) ask(ctx context.Context, a address) (settings, error) {
	text, err := input.ReadFile(c.file(), maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, corral.Errorf(corral.Invalid, "reading the ssh configuration: %w", err)
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		c.ignored = append(c.ignored, c.file()+", because this machine has no ssh command to read it")
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, configTime)
	defer cancel()
	args := []string{"-G", "-F", "/dev/stdin"}
	if a.user != "" {
		args = append(args, "-l", a.user)
	}
	if a.port != "" {
		args = append(args, "-p", a.port)
	}
	cmd := exec.CommandContext(ctx, ssh, append(args, "--", a.name)...)
	cmd.Stdin = io.MultiReader(bytes.NewReader(text), strings.NewReader(usual))
	cmd.WaitDelay = gridsite.Linger
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, corral.ErrorAt(corral.Unavailable, c.file(), "ssh did not read it within %v: %w", configTime,
			context.Cause(ctx))
	}
	if err != nil {
		why, _, _ := strings.Cut(gridsite.Printable(said.String()), "\n")
		why = strings.ReplaceAll(why, "/dev/stdin", c.file())
		return nil, corral.Errorf(corral.Invalid, "ssh does not accept the configuration: %s (%w)", why, err)
	}
	return parseSettings(out), nil
}

// parseSettings parses the output of ssh -G: lines with a keyword in lower case and its value.
func parseSettings(out []byte) settings {
	s := settings{}
	for line := range strings.Lines(string(out)) {
		keyword, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		s[keyword] = append(s[keyword], value)
	}
	return s
}
