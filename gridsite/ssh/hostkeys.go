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
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// hostKeys verifies a host's identity with the files that ssh uses. Package knownhosts reads and compares them. The
// code here requests a key of a known type from the host, examines the parts of a certificate, accepts an unknown host
// if a person has consented, and explains each problem and its remedy. One value serves one login.
type hostKeys struct {
	hop        hop
	files      []string
	callback   ssh.HostKeyCallback
	algorithms []string              // to request from the host: other types cannot be verified
	known      []knownhosts.KnownKey // keys of the host itself, not of its authorities
	refused    *gridsite.HostKeyError
	accept     bool   // trust a host whose key is in no file
	accepted   []byte // the accepted key, which is shown again on an old connection
}

// readHostKeys reads the existing files for a host. A host may have keys of several types and shows a key of a type
// that the client requests. If the client requested another type than the one in the file, the key of an honest host
// would seem to have changed, so the known types are requested first. They are determined by checking a key that cannot
// be known: the error lists the known keys.
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
		k.algorithms = nil // a host without a certificate may show any key
	}
	return k, nil
}

// nobodysKey is a key that no file contains. Checking it makes package knownhosts return all known keys of a host.
type nobodysKey struct{}

func (nobodysKey) Type() string                        { return "none" }
func (nobodysKey) Marshal() []byte                     { return []byte("none") }
func (nobodysKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

// isAuthority reports whether a line of a file belongs to a certificate authority, which package knownhosts does not
// report. The host itself never shows such a key, so its type does not matter for the request.
func isAuthority(known knownhosts.KnownKey) bool {
	text, _ := os.ReadFile(known.Filename) // an unreadable file has no such line
	lines := strings.Split(string(text), "\n")
	return known.Line <= len(lines) && strings.HasPrefix(strings.TrimSpace(lines[known.Line-1]), "@cert-authority")
}

// certificateAlgorithms are the algorithms of host certificates; an authority may have signed any of them.
var certificateAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// algorithmsOf lists the signature algorithms of a type of key. For RSA the type's own name means SHA-1, which is
// refused today.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// unique removes repetitions and keeps the order of preference.
func unique(words []string) []string {
	var found []string
	for _, w := range words {
		if !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	return found
}

// check is the callback at each login, and at each key renewal of a long connection. It stores the refusal, because
// package ssh converts the error of a callback to text. For a certificate, the refusal shows the key in the
// certificate, because ssh-keygen -l prints that key and a file without the authority can contain it.
func (k *hostKeys) check(name string, remote net.Addr, key ssh.PublicKey) error {
	err := k.callback(name, remote, key)
	var vain error
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key // the key printed by ssh-keygen -l
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
		return wrap.Errorf(k.remember(key), "keeping the host key")
	}
	return k.refused
}

// checkParts checks the parts of a certificate. Its authority or its key may be revoked, and the key may be known even
// if the certificate is not accepted; vain is the reason why it is not accepted.
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

// remember adds the key of an unknown host to the user's own file, as ssh does after "yes". If the last line of the
// file is incomplete, it is first completed with a newline; otherwise the new line would become part of it. A key that
// was accepted in this login is not written again when the host shows it again.
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

// name returns the host's name in known_hosts.
func (k *hostKeys) name() string { return knownhosts.Normalize(k.hop.address()) }

// places lists the files and lines that contain the known keys of the host, for people.
func (k *hostKeys) places() []string {
	var places []string
	for _, known := range k.known {
		places = append(places, place(known))
	}
	return places
}

// place formats a known key as FILE:LINE FINGERPRINT.
func place(k knownhosts.KnownKey) string {
	return fmt.Sprintf("%s:%d %s", k.Filename, k.Line, ssh.FingerprintSHA256(k.Key))
}

// explain replaces the error of a login with the error of the host key, if the host key was the cause. With a host that
// has no key of a known type, the login fails during the negotiation, before the callback; for the user this counts as
// a changed host.
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
