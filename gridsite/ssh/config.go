package ssh

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
)

// An address is how the user names a host. user and port may be empty.
type address struct{ user, name, port string }

// A hop is a host to log in at, with what the user's configuration says of it.
type hop struct {
	user, host, port string
	identities       []string // private key files
	explicit         bool     // identities are the user's, not the usual ones
	identitiesOnly   bool     // of an agent's keys only these
	certificates     []string
	knownHosts       []string
}

func (h hop) address() string { return net.JoinHostPort(h.host, h.port) }

// sshConfig is the part of ~/.ssh/config that Corral follows.
type sshConfig struct {
	file, home string
	settings   []setting
	ignored    []string // what it does not follow, in words
}

// A setting is one line of the file, under the patterns of its Host.
type setting struct {
	line     int
	patterns []string // nil: for every host
	keyword  string   // in lower case
	args     []string
}

// followed are the keywords that we act on.
var followed = []string{"certificatefile", "hostname", "identitiesonly", "identityfile", "port", "proxycommand", "proxyjump", "user", "userknownhostsfile"}

// missed are those that change where or how to log in, which we do not act on.
var missed = []string{"hostkeyalias", "identityagent", "pkcs11provider"}

// readSSHConfig reads the file, if it is there. Include, and what is under a Match, is not followed.
func readSSHConfig(file, home string) (*sshConfig, error) {
	c := &sshConfig{file: file, home: home}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, corral.Errorf(corral.Invalid, "reading the ssh configuration: %w", err)
	}
	defer f.Close()
	return c, c.parse(f)
}

func (c *sshConfig) parse(r io.Reader) error {
	var patterns []string
	inMatch := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words, err := configWords(lines.Text())
		if len(words) == 0 {
			continue
		}
		keyword, args := strings.ToLower(words[0]), words[1:]
		ours := keyword == "host" || !inMatch && slices.Contains(followed, keyword)
		switch {
		case err != nil && ours:
			return corral.ErrorAt(corral.Invalid, c.at(n), "%w", err)
		case len(args) == 0 && err == nil:
			return corral.ErrorAt(corral.Invalid, c.at(n), "%s has no value", words[0])
		case keyword == "host":
			patterns, inMatch = args, false
		case keyword == "match":
			inMatch = true
			c.ignored = append(c.ignored, "Match in "+c.at(n))
		case inMatch: // not followed
		case keyword == "include", slices.Contains(missed, keyword):
			c.ignored = append(c.ignored, words[0]+" in "+c.at(n))
		case ours:
			c.settings = append(c.settings, setting{n, patterns, keyword, args})
		}
	}
	if err := lines.Err(); err != nil {
		return corral.Errorf(corral.Invalid, "reading %s: %w", c.file, err)
	}
	return nil
}

func (c *sshConfig) at(line int) string { return fmt.Sprintf("%s:%d", c.file, line) }

// configWords splits a line of the file: a keyword, perhaps '=', and arguments, which may be in quotes. It returns those
// before an error, too.
func configWords(line string) (words []string, err error) {
	for rest := strings.TrimSpace(line); rest != "" && rest[0] != '#'; {
		ends := " \t"
		if len(words) == 0 {
			ends += "="
		}
		var word string
		for rest != "" && !strings.Contains(ends, rest[:1]) {
			part, after := rest[:1], rest[1:]
			if part == `"` || part == "'" {
				closed := false
				if part, after, closed = strings.Cut(after, part); !closed {
					return words, errors.New("a quote is not closed")
				}
			}
			word, rest = word+part, after
		}
		words = append(words, word)
		rest = strings.TrimSpace(rest)
		if len(words) == 1 {
			rest = strings.TrimSpace(strings.TrimPrefix(rest, "="))
		}
	}
	return words, nil
}

// applies reports whether the setting is for the host that the user named so.
func (s setting) applies(name string) bool {
	found := s.patterns == nil
	for _, p := range s.patterns {
		negated := strings.HasPrefix(p, "!")
		if ok, _ := path.Match(escapeClasses.Replace(strings.TrimPrefix(p, "!")), name); ok {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// escapeClasses leaves of path.Match's patterns '*' and '?', which are ssh's.
var escapeClasses = strings.NewReplacer(`[`, `\[`, `\`, `\\`)

// all returns every setting of the keyword for the host, in the order of the file.
func (c *sshConfig) all(name, keyword string) []setting {
	var found []setting
	for _, s := range c.settings {
		if s.keyword == keyword && s.applies(name) {
			found = append(found, s)
		}
	}
	return found
}

// first returns the value that counts, which is the first one; empty if there is none.
func (c *sshConfig) first(name, keyword string) string {
	if found := c.all(name, keyword); len(found) > 0 {
		return found[0].args[0]
	}
	return ""
}

// route lists the hosts to log in at, one through the other, to to itself last.
func (c *sshConfig) route(to address) ([]hop, error) {
	var hops []hop
	for _, jump := range strings.Split(c.first(to.name, "proxyjump"), ",") {
		if jump == "" || strings.EqualFold(jump, "none") {
			continue
		}
		u, err := url.Parse("ssh://" + strings.TrimPrefix(jump, "ssh://"))
		if err != nil || u.Hostname() == "" {
			return nil, corral.ErrorAt(corral.Invalid, c.file, "ProxyJump %q: want [user@]host[:port]", jump)
		}
		if further := c.first(u.Hostname(), "proxyjump"); further != "" && !strings.EqualFold(further, "none") {
			c.ignored = append(c.ignored, "ProxyJump of "+u.Hostname()+", which is itself jumped over")
		}
		h, err := c.resolve(address{u.User.Username(), u.Hostname(), u.Port()})
		if err != nil {
			return nil, err
		}
		hops = append(hops, h)
	}
	h, err := c.resolve(to)
	return append(hops, h), err
}

// resolve finds what is needed to log in at a host.
func (c *sshConfig) resolve(a address) (hop, error) {
	if command := c.all(a.name, "proxycommand"); len(command) > 0 && command[0].args[0] != "none" {
		return hop{}, corral.ErrorAt(corral.Invalid, c.at(command[0].line), "ProxyCommand is not supported: use ProxyJump")
	}
	h := hop{
		user: cmp.Or(a.user, c.first(a.name, "user")),
		port: cmp.Or(a.port, c.first(a.name, "port"), "22"),
		host: strings.ReplaceAll(cmp.Or(c.first(a.name, "hostname"), a.name), "%h", a.name),

		identitiesOnly: strings.EqualFold(c.first(a.name, "identitiesonly"), "yes"),
	}
	if n, err := strconv.Atoi(h.port); err != nil || n < 1 || n > 65535 {
		return hop{}, corral.ErrorAt(corral.Invalid, c.file, "%q is no port", h.port)
	}
	if h.user == "" {
		me, err := user.LookupId(strconv.Itoa(os.Getuid())) // user.Current remembers who we were before
		if err != nil {
			return hop{}, corral.ErrorAt(corral.Invalid, "contact", "no user name: %w", err)
		}
		h.user = me.Username
	}
	var errs [3]error
	h.identities, errs[0] = c.files(a.name, "identityfile", h)
	h.certificates, errs[1] = c.files(a.name, "certificatefile", h)
	h.knownHosts, errs[2] = c.files(a.name, "userknownhostsfile", h)
	h.explicit = len(h.identities) > 0
	dir := filepath.Join(c.home, ".ssh")
	if !h.explicit {
		h.identities = []string{filepath.Join(dir, "id_ed25519"), filepath.Join(dir, "id_ecdsa"), filepath.Join(dir, "id_rsa")}
	}
	if len(h.knownHosts) == 0 {
		h.knownHosts = []string{filepath.Join(dir, "known_hosts"), filepath.Join(dir, "known_hosts2")}
	}
	h.knownHosts = append(h.knownHosts, "/etc/ssh/ssh_known_hosts")
	return h, errors.Join(errs[:]...)
}

// files returns the files that the settings name: all of those for keys, the first setting's of known hosts.
func (c *sshConfig) files(name, keyword string, h hop) ([]string, error) {
	var files []string
	for _, s := range c.all(name, keyword) {
		args := s.args
		if keyword != "userknownhostsfile" {
			args = args[:1]
		} else if files != nil {
			break
		}
		for _, arg := range args {
			file, err := c.expand(arg, h)
			if err != nil {
				return nil, corral.ErrorAt(corral.Invalid, c.at(s.line), "%w", err)
			}
			if arg != "none" {
				files = append(files, file)
			}
		}
	}
	return files, nil
}

// expand replaces '~' and the tokens of ssh_config(5) that a file name commonly has.
func (c *sshConfig) expand(name string, h hop) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(c.home, rest)
	}
	var b strings.Builder
	for rest := name; ; {
		before, after, found := strings.Cut(rest, "%")
		b.WriteString(before)
		if !found {
			break
		}
		token := "%"
		if after != "" {
			token, rest = after[:1], after[1:]
		}
		value, ok := map[string]string{"%": "%", "d": c.home, "h": h.host, "p": h.port, "r": h.user}[token]
		if !ok || after == "" {
			return "", fmt.Errorf("%q: only %%%%, %%d, %%h, %%p and %%r are supported", name)
		}
		b.WriteString(value)
	}
	if !filepath.IsAbs(b.String()) {
		return filepath.Join(c.home, b.String()), nil // corrald has no directory that the user would think of
	}
	return b.String(), nil
}
