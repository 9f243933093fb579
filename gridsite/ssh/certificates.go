package ssh

// This file handles certificates and their validity. A certificate is a file that is replaced while corrald is running,
// at some sites every few hours. Therefore each login reads it again, as does each query for the credentials of a
// connection.

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

// inAgent is the source of a key that an agent has and no file contains.
const inAgent = "ssh agent"

// certified combines each certificate with its key. KEY-cert.pub implicitly belongs to KEY, and an error in it is only
// recorded; a certificate named by the configuration must exist and be valid.
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
		if err != nil { // the key may suffice without it
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

// lastSecond is the end of the year 9999, after which a time cannot be formatted; certificates that never expire have a
// later end.
const lastSecond = 253402300799

// describe returns a key's public data; for a certificate, its subject and validity. An agent returns certificates as
// keys, so the wire format decides.
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

// again returns the current data of a credential that was read earlier, because the file may have been replaced. If the
// file cannot be read, or the key is in an agent, the data is unchanged.
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

// Credentials implements gridsite.Bearer: it returns the credential accepted by each host of the current or last
// connection, read again from its file.
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

// stale reports whether a credential of the connection, in the current version of its file, has expired. The hosts keep
// the connection, but would not accept the credential for a new connection.
func (c *connection) stale() bool {
	now := time.Now()
	for _, s := range c.shown {
		if again(s).Expired(now) {
			return true
		}
	}
	return false
}

// renewed reports whether a certificate that had expired at a failed login has been replaced since. If so, the next
// login need not wait for the end of the pause.
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
