// Package credential determines how long a credential is valid, when to warn people about its end, and which jobs must
// not be submitted with it any more.
//
// A Credential holds the public data of a certificate, proxy or token, never its secret. Parse reads files of X.509
// certificates, proxies and bearer tokens; OpenSSH certificates are read in gridsite/ssh, which knows their format.
// Refuses decides whether a job may be submitted, Turns when that decision changes, and Watch which warnings are due.
// They read no clock, so that corrald and the simulator decide alike.
//
// The invariant: the only source of information about a credential is its own content. One without an end, such as a
// password or a plain ssh key, is valid until a site refuses it; one that a site has revoked looks valid here.
package credential

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// A Kind is a type of credential.
type Kind string

const (
	SSHKey          Kind = "ssh-key"          // has no end
	SSHCertificate  Kind = "ssh-certificate"  // OpenSSH's, for a user
	X509Certificate Kind = "x509-certificate" // with the rest of its chain in the file
	X509Proxy       Kind = "x509-proxy"       // RFC 3820, or older
	Token           Kind = "token"            // a JWT: SciTokens, WLCG, HTCondor's IDTOKENS
	Opaque          Kind = "opaque"           // a credential whose content cannot be read
)

// words maps a kind to its name in messages.
var words = map[Kind]string{
	SSHKey: "ssh key", SSHCertificate: "ssh certificate", X509Certificate: "certificate", X509Proxy: "proxy",
	Token: "token", Opaque: "credential",
}

// A Credential is the available information about a credential.
type Credential struct {
	Kind      Kind      `json:"kind"`
	Where     string    `json:"where"`               // the file, or another holder: ssh agent
	Subject   string    `json:"subject,omitempty"`   // its subject, in its own notation
	NotBefore time.Time `json:"not_before,omitzero"` // zero: unspecified
	NotAfter  time.Time `json:"expires_at,omitzero"` // zero: never, as far as known

	// Carried means that pilots take the credential along, so that it must outlive them. Other credentials are needed
	// only when corrald logs in at the site; jobs already running there do not need them. No site has a carried one
	// yet, but simulations may.
	Carried bool `json:"-"`
}

// String describes the credential for people.
func (c Credential) String() string {
	s := cmp.Or(words[c.Kind], string(c.Kind)) + " " + c.Where
	if c.Subject != "" {
		s += " (" + c.Subject + ")"
	}
	return s
}

// Expired reports whether the credential has ended at now. It is already invalid at NotAfter itself.
func (c Credential) Expired(now time.Time) bool {
	return !c.NotAfter.IsZero() && !now.Before(c.NotAfter)
}

// problem explains why the credential is not valid at now and how to fix that; empty: it is valid. A login with a
// credential that is not valid yet is left to the site, whose clock may be ahead of ours.
func (c Credential) problem(now time.Time) string {
	switch {
	case c.Expired(now):
		return c.Ended()
	case c.Carried && now.Before(c.NotBefore):
		return fmt.Sprintf("the %s is not valid before %s", c, stamp(c.NotBefore))
	}
	return ""
}

// Ended says that the credential has expired, and how to fix that.
func (c Credential) Ended() string {
	return fmt.Sprintf("the %s expired at %s: %s", c, stamp(c.NotAfter), c.remedy())
}

// remedy says how to replace the credential.
func (c Credential) remedy() string {
	if filepath.IsAbs(c.Where) {
		return "replace it there; corrald reads the new one automatically"
	}
	return "renew it there; corrald notices that automatically"
}

// stamp formats a time for people, in UTC and to the second.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// First returns the credential that ends first; ok is false if none has an end.
func First(all []Credential) (first Credential, ok bool) {
	for _, c := range all {
		if !c.NotAfter.IsZero() && (!ok || c.NotAfter.Before(first.NotAfter)) {
			first, ok = c, true
		}
	}
	return first, ok
}

// Refuses explains why no job of this walltime may be submitted at now to a site with these credentials; empty: it may.
// An invalid credential refuses every job. A carried one also refuses a job that it would not outlive even if the job
// began at once, because the job would lose it in the middle of its work.
func Refuses(now time.Time, all []Credential, walltime time.Duration) string {
	for _, c := range all {
		if why := c.problem(now); why != "" {
			return why
		}
	}
	for _, c := range all {
		if c.Carried && !c.NotAfter.IsZero() && now.Add(walltime).After(c.NotAfter) {
			return fmt.Sprintf("the %s expires at %s, before a pilot of %s that started now would end: %s",
				c, stamp(c.NotAfter), walltime, c.remedy())
		}
	}
	return ""
}

// Turns returns the times, in order, at which the answer of Refuses for a walltime changes.
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
		if c.Carried { // Refuses still permits a job at exactly NotAfter-walltime
			times = append(times, c.NotAfter.Add(time.Nanosecond-walltime))
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}
