package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// hostKeys decides whether a host is the one that it says it is, by the files that ssh itself uses. Package knownhosts
// reads them and compares; what it leaves to us is to ask the host for a key of a type that is known, to look at the
// parts of a certificate, to accept an unknown host if a person has said so, and to say in each case what is wrong and
// what to do about it. One value serves one login.
type hostKeys struct {
	hop        hop
	files      []string
	callback   ssh.HostKeyCallback
	algorithms []string              // to ask the host for: a key of another type than the known ones proves nothing
	known      []knownhosts.KnownKey // the host's own, not its authorities'
	refused    *gridsite.HostKeyError
	accept     bool   // of a host that no file knows
	accepted   []byte // the key that was, which is shown again when a connection is old
}

// readHostKeys reads the files that there are for a host. A host may have keys of several types, and shows one of those
// that the client asks for. If it were asked for another type than the file has, an honest host would look like a
// changed one; so the types that are known come first. They are learned by asking for a key that cannot be known: the
// error lists those that would have done.
func readHostKeys(h hop, accept bool) (*hostKeys, error) {
	k := &hostKeys{hop: h, accept: accept}
	for _, file := range h.knownHosts {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			k.files = append(k.files, file)
		}
	}
	var err error
	if k.callback, err = knownhosts.New(k.files...); err != nil {
		return nil, corral.Errorf(corral.Invalid, "reading known hosts: %w", err)
	}
	unknown, ok := errors.AsType[*knownhosts.KeyError](k.callback(h.address(), &net.TCPAddr{}, nobodysKey{}))
	if !ok {
		return k, nil
	}
	for _, known := range unknown.Want {
		if isAuthority(known) {
			k.algorithms = append(k.algorithms, certificateAlgorithms...)
			continue
		}
		k.known = append(k.known, known)
		k.algorithms = append(k.algorithms, algorithmsOf(known.Key.Type())...)
	}
	if k.algorithms = unique(k.algorithms); len(k.known) == 0 {
		k.algorithms = nil // a host that has no certificate yet may show any key
	}
	return k, nil
}

// nobodysKey is a key that no file has. To check it makes package knownhosts tell all keys that are known for a host.
type nobodysKey struct{}

func (nobodysKey) Type() string                        { return "none" }
func (nobodysKey) Marshal() []byte                     { return []byte("none") }
func (nobodysKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

// isAuthority reports whether a line of a file is that of a certificate authority, which package knownhosts does not
// tell. Such a key never comes from the host itself, so its type says nothing of what to ask the host for.
func isAuthority(known knownhosts.KnownKey) bool {
	text, _ := os.ReadFile(known.Filename) // one that can no longer be read has no such line
	lines := strings.Split(string(text), "\n")
	return known.Line <= len(lines) && strings.HasPrefix(strings.TrimSpace(lines[known.Line-1]), "@cert-authority")
}

// certificateAlgorithms are those of host certificates, any of which an authority may have signed.
var certificateAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// algorithmsOf lists the signature algorithms of a type of key. With RSA they are not the type's own name: SHA-1, which
// that stands for, is refused today.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// unique drops repetitions and keeps the order, which is that of preference.
func unique(words []string) []string {
	var found []string
	for _, w := range words {
		if !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	return found
}

// check is the callback at each login, and again when the keys of a long connection are renewed. The refusal is kept,
// because package ssh turns the error of a callback into text. A certificate is shown to people as the key in it: that
// is what ssh-keygen -l prints, and what a file without its authority can hold.
func (k *hostKeys) check(name string, remote net.Addr, key ssh.PublicKey) error {
	err := k.callback(name, remote, key)
	var vain error
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key // what ssh-keygen -l prints, and what a file without its authority can hold
		vain, err = err, k.checkParts(name, remote, cert, err)
	}
	if err == nil {
		return nil
	}
	k.refused = &gridsite.HostKeyError{
		Problem: gridsite.HostKeyUnknown, User: k.hop.user, Address: k.hop.address(), Name: k.name(), Type: key.Type(),
		Fingerprint: ssh.FingerprintSHA256(key),
		Certificate: vain, Files: k.hop.knownHosts,
	}
	if revoked, ok := errors.AsType[*knownhosts.RevokedError](err); ok {
		k.refused.Problem, k.refused.Known = gridsite.HostKeyRevoked, []string{place(revoked.Revoked)}
	} else if len(k.known) > 0 {
		k.refused.Problem, k.refused.Known = gridsite.HostKeyChanged, k.places()
	}
	if k.refused.Problem == gridsite.HostKeyUnknown && k.accept {
		k.refused = nil
		if err := k.remember(key); err != nil {
			return fmt.Errorf("keeping the host key: %w", err)
		}
		return nil
	}
	return k.refused
}

// checkParts looks at what a certificate is made of. Its authority, or the key itself, may be revoked, and a key whose
// certificate does not count, for the reason vain, may be known all the same.
func (k *hostKeys) checkParts(name string, remote net.Addr, cert *ssh.Certificate, vain error) error {
	var revoked *knownhosts.RevokedError
	if err := k.callback(name, remote, cert.SignatureKey); errors.As(err, &revoked) {
		return err
	}
	if err := k.callback(name, remote, cert.Key); vain != nil || errors.As(err, &revoked) {
		return err
	}
	return nil
}

// remember writes the key of an unknown host into the user's own file, as ssh does after "yes". A last line without its
// end gets one first, or the new line would become part of it. A key that was accepted in this login is not written
// again when it is shown once more.
func (k *hostKeys) remember(key ssh.PublicKey) error {
	if bytes.Equal(k.accepted, key.Marshal()) {
		return nil
	}
	file := k.hop.knownHosts[0]
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line := knownhosts.Line([]string{k.hop.address()}, key) + "\n"
	if len(before) > 0 && before[len(before)-1] != '\n' {
		line = "\n" + line
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	k.accepted = key.Marshal()
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// name is what known_hosts calls the host.
func (k *hostKeys) name() string { return knownhosts.Normalize(k.hop.address()) }

func (k *hostKeys) places() []string {
	var places []string
	for _, known := range k.known {
		places = append(places, place(known))
	}
	return places
}

func place(k knownhosts.KnownKey) string {
	return fmt.Sprintf("%s:%d %s", k.Filename, k.Line, ssh.FingerprintSHA256(k.Key))
}

// explain turns the error of a login into the one of the host key, if it was that. A host that has no key of any known
// type fails before the callback is asked, in the negotiation: to the user it is a changed host all the same.
func (k *hostKeys) explain(err error) error {
	_, negotiation := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	switch {
	case k.refused != nil:
		return k.refused
	case negotiation && len(k.known) > 0 && strings.Contains(err.Error(), "host key"):
		return &gridsite.HostKeyError{
			Problem: gridsite.HostKeyChanged, User: k.hop.user, Address: k.hop.address(), Name: k.name(),
			Known: k.places(), Files: k.hop.knownHosts,
		}
	}
	return err
}
