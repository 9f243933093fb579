package credential

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// MaxFile is how long a file with a credential may be, in bytes: a proxy with the chains of several VOs has some ten
// KiB.
const MaxFile = 1 << 20

// errNone means that the bytes are something else.
var errNone = errors.New("there is no such credential in it")

// Parse reads what a file says of itself, whatever kind it is. A file that says nothing, such as one with a private key
// alone, a password or a token that is no JWT, is good for ever as far as can be seen; one that begins as a certificate
// or a JWT and is broken is an error, because its end would be missed.
func Parse(where string, content []byte) (Credential, error) {
	for _, read := range []func(string, []byte) (Credential, error){ParseX509, ParseToken} {
		c, err := read(where, content)
		if !errors.Is(err, errNone) {
			return c, err
		}
	}
	if bytes.Contains(content, []byte("-----BEGIN OPENSSH PRIVATE KEY-----")) {
		return Credential{Kind: SSHKey, Where: where}, nil
	}
	return Credential{Kind: Opaque, Where: where}, nil
}

// ParseX509 reads the certificates of a PEM file, such as a proxy with its chain. They are good only together: from the
// latest beginning to the earliest end among them. What else is in the file, such as a key, is passed over.
func ParseX509(where string, content []byte) (Credential, error) {
	c := Credential{Kind: X509Certificate, Where: where}
	found := 0
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return c, fmt.Errorf("reading %s: %w", where, err)
		}
		if found++; found == 1 && isProxy(cert) {
			c.Kind = X509Proxy
		}
		if c.Subject == "" && !isProxy(cert) { // a proxy is named by whom it stands for
			c.Subject = printable(cert.Subject.String())
		}
		if c.NotAfter.IsZero() || cert.NotAfter.Before(c.NotAfter) {
			c.NotAfter = cert.NotAfter.UTC()
		}
		if cert.NotBefore.After(c.NotBefore) {
			c.NotBefore = cert.NotBefore.UTC()
		}
	}
	if found == 0 {
		return c, fmt.Errorf("reading %s: %w", where, errNone)
	}
	return c, nil
}

// proxyInfo are the names of the extension by which a certificate is a proxy: that of RFC 3820, and Globus' before it.
var proxyInfo = []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 1, 14}, {1, 3, 6, 1, 4, 1, 3536, 1, 222}}

// isProxy reports whether a certificate is a proxy: by its extension, or, before there was one, by its last name.
func isProxy(cert *x509.Certificate) bool {
	for _, e := range cert.Extensions {
		for _, id := range proxyInfo {
			if e.Id.Equal(id) {
				return true
			}
		}
	}
	last := cert.Subject.CommonName
	return last == "proxy" || last == "limited proxy"
}

// claims are those of a JWT that matter here. Numbers are seconds since 1970, with a fraction if its maker likes.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	NotBefore *float64 `json:"nbf"`
	Expires   *float64 `json:"exp"`
}

// ParseToken reads a file with a bearer token that is a JWT, or with several, one in each line, as HTCondor keeps them;
// of several the one that ends first is returned. A token without exp never ends. The signature is not checked: that is
// for who takes it.
func ParseToken(where string, content []byte) (Credential, error) {
	var all []Credential
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		c, err := parseJWT(where, line)
		if errors.Is(err, errNone) && len(all) > 0 {
			err = errors.New("a line behind its first token is none")
		}
		if err != nil {
			return c, fmt.Errorf("reading %s: %w", where, err)
		}
		all = append(all, c)
	}
	if first, ok := First(all); ok {
		return first, nil
	}
	if len(all) > 0 {
		return all[0], nil
	}
	return Credential{}, fmt.Errorf("reading %s: %w", where, errNone)
}

// parseJWT reads one. What has not three parts, or a head that is no JSON, is something else.
func parseJWT(where, token string) (Credential, error) {
	c := Credential{Kind: Token, Where: where}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errNone
	}
	head, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || !json.Valid(head) || head[0] != '{' {
		return c, errNone
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, fmt.Errorf("its claims: %w", err)
	}
	var of claims
	if err := json.Unmarshal(body, &of); err != nil {
		return c, fmt.Errorf("its claims: %w", err)
	}
	c.Subject = printable(strings.Trim(of.Subject+"@"+of.Issuer, "@"))
	if c.NotBefore, err = instant("nbf", of.NotBefore, math.Ceil); err == nil {
		c.NotAfter, err = instant("exp", of.Expires, math.Floor)
	}
	return c, err
}

// maxSubject is how much of a name is kept, in runes.
const maxSubject = 200

// printable is a name for people: nothing in it steers a terminal, and it has an end.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > maxSubject {
		name = string(runes[:maxSubject]) + "…"
	}
	return name
}

// lastSecond is the end of the year 9999, behind which a time cannot be written.
const lastSecond = 253402300799

// instant is a claim's time, a whole second; a claim that is missing is the zero time.
func instant(name string, seconds *float64, whole func(float64) float64) (time.Time, error) {
	if seconds == nil {
		return time.Time{}, nil
	}
	s := whole(*seconds)
	if !(s >= 0 && s <= lastSecond) {
		return time.Time{}, fmt.Errorf("its claim %s is %g, which is no time in seconds", name, *seconds)
	}
	return time.Unix(int64(s), 0).UTC(), nil
}
