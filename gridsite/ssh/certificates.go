package ssh

// Certificates, and until when they are good. A certificate is a file that somebody replaces while corrald runs, every
// few hours at some sites: each login reads it anew, and so does whoever asks by what a connection stands.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// inAgent is where a key is that an agent has and no file.
const inAgent = "ssh agent"

// certified joins each certificate with the key that it is for. KEY-cert.pub belongs to KEY without being named, and a
// mistake in it is only a problem; one that the configuration names must be there and must be sound.
func (k *keyring) certified(own []named) ([]named, error) {
	var found []named
	add := func(cert *ssh.Certificate, file string, key named) error {
		signer, err := ssh.NewCertSigner(cert, key)
		if err != nil {
			return err
		}
		found = append(found, named{Signer: signer, from: file, shut: key.shut})
		return nil
	}
	for _, key := range own {
		file := key.from + "-cert.pub"
		cert, err := readCertificate(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = add(cert, file, key)
		}
		if err != nil { // the key may do without
			k.problems = append(k.problems, fmt.Errorf("%s: %w", file, err))
		}
	}
	for _, file := range k.hop.certificates {
		cert, err := readCertificate(file)
		if err != nil {
			return nil, corral.ErrorAt(corral.Invalid, file, "%w", err)
		}
		for _, key := range own {
			if bytes.Equal(cert.Key.Marshal(), key.PublicKey().Marshal()) {
				if err := add(cert, file, key); err != nil {
					return nil, corral.ErrorAt(corral.Invalid, file, "%w", err)
				}
			}
		}
	}
	return found, nil
}

// readCertificate reads a certificate; a file with a plain public key is an error.
func readCertificate(file string) (*ssh.Certificate, error) {
	line, err := input.ReadFile(file, maxKeyFile)
	if err != nil {
		return nil, err
	}
	return parseCertificate(line)
}

func parseCertificate(line []byte) (*ssh.Certificate, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil, err
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, errors.New("this is not a certificate")
	}
	return cert, nil
}

// lastSecond is the end of the year 9999, behind which a time cannot be written; certificates without an end say later.
const lastSecond = 253402300799

// describe says what is known of a key: of a certificate whom it names and since and until when it is good. An agent
// hands certificates out as keys, so the form on the wire is what counts.
func describe(key ssh.PublicKey, from string) credential.Credential {
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		parsed, err := ssh.ParsePublicKey(key.Marshal())
		if cert, ok = parsed.(*ssh.Certificate); err != nil || !ok {
			return credential.Credential{Kind: credential.SSHKey, Where: from, Subject: ssh.FingerprintSHA256(key)}
		}
	}
	c := credential.Credential{Kind: credential.SSHCertificate, Where: from, Subject: gridsite.Printable(cert.KeyId)}
	if cert.ValidAfter > 0 && cert.ValidAfter <= lastSecond {
		c.NotBefore = time.Unix(int64(cert.ValidAfter), 0).UTC()
	}
	if cert.ValidBefore <= lastSecond {
		c.NotAfter = time.Unix(int64(cert.ValidBefore), 0).UTC()
	}
	return c
}

// again is what is known now of a credential that was read before: the file may have been replaced. If it cannot be
// read, or is in an agent, what was known stays.
func again(c credential.Credential) credential.Credential {
	if c.Kind != credential.SSHCertificate || !filepath.IsAbs(c.Where) {
		return c
	}
	cert, err := readCertificate(c.Where)
	if err != nil {
		return c
	}
	return describe(cert, c.Where)
}

// Credentials implements gridsite.Bearer: of the connection that stands, or stood last, what each host on the way let
// us in by. Files are read again.
func (c *Conn) Credentials() []credential.Credential {
	conn := c.link.current.Load()
	if conn == nil {
		return nil
	}
	var all []credential.Credential
	for _, s := range conn.shown {
		all = append(all, again(s))
	}
	return all
}

// stale reports whether a credential that a connection was made with is, as its file is now, one that has expired. The
// hosts let the connection be; for a new one they would want something else.
func (c *connection) stale() bool {
	now := time.Now()
	for _, s := range c.shown {
		if again(s).Expired(now) {
			return true
		}
	}
	return false
}

// renewed reports whether a certificate that had expired when a login failed has been replaced since. Then there is no
// need to wait for the end of the pause.
func renewed(failure error) bool {
	login, ok := errors.AsType[*gridsite.LoginError](failure)
	if !ok {
		return false
	}
	now := time.Now()
	for _, c := range login.Expired {
		if !again(c).Expired(now) {
			return true
		}
	}
	return false
}
