package gridsite

import (
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
)

// A Contact is the address of a site.
type Contact struct {
	Transport        string // local, ssh
	User, Host, Port string // for ssh; user and port may be empty
}

// ParseContact parses "local:" or "ssh://[user@]host[:port]". Any other text is a corral.Invalid error.
func ParseContact(text string) (Contact, error) {
	invalid := func(format string, args ...any) (Contact, error) {
		return Contact{}, corral.ErrorAt(corral.Invalid, "contact", format, args...)
	}
	if text == "local:" {
		return Contact{Transport: "local"}, nil
	}
	if hasPassword(text) { // first, because all other errors repeat the text
		return invalid("a password does not belong in a contact: use a key, or an agent, or log in with" +
			" `corral site login`")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "ssh" || u.Hostname() == "" || u.Path+u.RawQuery+u.Fragment != "" {
		return invalid("%.80q: want local: or ssh://[user@]host[:port]", text)
	}
	c := Contact{Transport: "ssh", User: u.User.Username(), Host: u.Hostname(), Port: u.Port()}
	for _, word := range []string{c.User, c.Host} {
		blank := strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if blank || strings.HasPrefix(word, "-") {
			return invalid("%.80q: %q is not a name", text, word)
		}
	}
	if n, err := strconv.Atoi(c.Port); c.Port != "" && (err != nil || n < 1 || n > math.MaxUint16) {
		return invalid("%.80q: %s is not a port: want 1 to %d", text, c.Port, math.MaxUint16)
	}
	return c, nil
}

// hasPassword reports whether a contact contains a password, even if the contact is malformed.
func hasPassword(contact string) bool {
	_, rest, found := strings.Cut(contact, "//")
	if !found {
		rest = contact
	}
	user, _, found := strings.Cut(rest, "@")
	return found && strings.Contains(user, ":")
}

// String returns the contact in the user's notation.
func (c Contact) String() string {
	if c.Transport == "local" {
		return "local:"
	}
	u := url.URL{Scheme: "ssh", Host: c.Host}
	if c.User != "" {
		u.User = url.User(c.User)
	}
	switch {
	case c.Port != "":
		u.Host = net.JoinHostPort(c.Host, c.Port)
	case strings.Contains(c.Host, ":"):
		u.Host = "[" + c.Host + "]"
	}
	return u.String()
}
