// Package credential says until when a credential is good, and what follows from that: when people are warned, and what
// is not begun with one any more.
//
// A Credential is what was read of a certificate, a proxy or a token: never its secret. Parse reads files of X.509
// certificates and proxies and of bearer tokens; certificates of OpenSSH are read in gridsite/ssh, which knows their
// format. Refuses, Turns and Warning decide; they read no clock, so that corrald and the simulator decide alike.
//
// The invariant: nothing is known of a credential but what it says of itself. One that says nothing, such as a password
// or a plain ssh key, is good until a site refuses it; one that a site has revoked looks good here.
package credential

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// A Kind says what sort of credential it is.
type Kind string

const (
	SSHKey          Kind = "ssh-key"          // says nothing of its end
	SSHCertificate  Kind = "ssh-certificate"  // OpenSSH's, for a user
	X509Certificate Kind = "x509-certificate" // with what else of its chain is in the file
	X509Proxy       Kind = "x509-proxy"       // RFC 3820, or older
	Token           Kind = "token"            // a JWT: SciTokens, WLCG, HTCondor's IDTOKENS
	Opaque          Kind = "opaque"           // something of which nothing can be read
)

// words are how people call a kind.
var words = map[Kind]string{
	SSHKey: "ssh key", SSHCertificate: "ssh certificate", X509Certificate: "certificate", X509Proxy: "proxy",
	Token: "token", Opaque: "credential",
}

// A Credential is what is known of one.
type Credential struct {
	Kind      Kind      `json:"kind"`
	Where     string    `json:"where"`               // the file, or who has it: ssh agent
	Subject   string    `json:"subject,omitempty"`   // whom it names, in its own words
	NotBefore time.Time `json:"not_before,omitzero"` // zero: it does not say
	NotAfter  time.Time `json:"expires_at,omitzero"` // zero: never, as far as can be seen

	// Carried means that pilots take it along: it must outlive them. Others are shown to the site when corrald logs in,
	// and what runs there by then needs them no longer. No site has one yet; simulations may.
	Carried bool `json:"-"`
}

// String names it for people.
func (c Credential) String() string {
	s := cmp.Or(words[c.Kind], string(c.Kind)) + " " + c.Where
	if c.Subject != "" {
		s += " (" + c.Subject + ")"
	}
	return s
}

// Expired reports whether it has ended by now. The last moment that it names is the first at which it is not good.
func (c Credential) Expired(now time.Time) bool {
	return !c.NotAfter.IsZero() && !now.Before(c.NotAfter)
}

// Problem says why it is no good now and what to do about that; empty: it is good. Whether one that is shown at a login
// is good already is for the site to say, whose clock may be before ours.
func (c Credential) Problem(now time.Time) string {
	switch {
	case c.Expired(now):
		return c.Ended()
	case c.Carried && now.Before(c.NotBefore):
		return fmt.Sprintf("the %s is not good before %s", c, stamp(c.NotBefore))
	}
	return ""
}

// Ended says that it has expired, and what to do about that.
func (c Credential) Ended() string {
	return fmt.Sprintf("the %s expired at %s: %s", c, stamp(c.NotAfter), c.remedy())
}

// remedy is what helps against its end.
func (c Credential) remedy() string {
	if filepath.IsAbs(c.Where) {
		return "put a new one into its place, which corrald reads by itself"
	}
	return "renew it there, which corrald sees by itself"
}

// stamp writes a time for people, to the second and the same everywhere.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// First returns the one of some that ends first; false: none says that it ends.
func First(all []Credential) (first Credential, ok bool) {
	for _, c := range all {
		if !c.NotAfter.IsZero() && (!ok || c.NotAfter.Before(first.NotAfter)) {
			first, ok = c, true
		}
	}
	return first, ok
}

// Refuses says why no job of this walltime is to be submitted at now at a site with these credentials; empty: it may
// be. One that is no good refuses every job. One that pilots carry refuses those, too, that it would not outlive even
// if they began at once: they would lose it in the middle of their work.
func Refuses(now time.Time, all []Credential, walltime time.Duration) string {
	for _, c := range all {
		if why := c.Problem(now); why != "" {
			return why
		}
	}
	for _, c := range all {
		if c.Carried && !c.NotAfter.IsZero() && now.Add(walltime).After(c.NotAfter) {
			return fmt.Sprintf("the %s expires at %s, before a pilot of %s that began now would be over: %s",
				c, stamp(c.NotAfter), walltime, c.remedy())
		}
	}
	return ""
}

// Turns are when the answer of Refuses for a walltime changes by time alone, in order.
func Turns(all []Credential, walltime time.Duration) []time.Time {
	var times []time.Time
	for _, c := range all {
		if !c.NotBefore.IsZero() {
			times = append(times, c.NotBefore)
		}
		if c.NotAfter.IsZero() {
			continue
		}
		times = append(times, c.NotAfter)
		if c.Carried { // the last moment at which Refuses lets it pass is this one itself
			times = append(times, c.NotAfter.Add(time.Nanosecond-walltime))
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}
