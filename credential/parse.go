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

// errNone means that the bytes contain something else.
var errNone = errors.New("it has no such credential")

// Parse reads a credential file of any kind. A file without an end, such as one with only a private key, a password or
// a token that is not a JWT, is valid forever as far as known. A file that begins as a certificate or JWT but is broken
// is an error, because its end would be missed.
func Parse(where string, content []byte) (Credential, error) {
	for _, read := range []func(string, []byte) (Credential, error){parseX509, parseToken} {
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

// parseX509 reads the certificates of a PEM file, such as a proxy with its chain. They are valid only together, from
// the latest beginning to the earliest end. Other content of the file, such as a key, is ignored.
func parseX509(where string, content []byte) (Credential, error) {
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
		if c.Subject == "" && !isProxy(cert) { // a proxy is named after the user that it represents
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

// proxyInfo lists the extensions that mark a certificate as a proxy: RFC 3820's, and Globus' earlier one.
var proxyInfo = []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 1, 14}, {1, 3, 6, 1, 4, 1, 3536, 1, 222}}

// isProxy reports whether a certificate is a proxy: by its extension or, for older proxies, by its last name.
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

// claims are the relevant claims of a JWT. Numbers are seconds since 1970, possibly with a fraction.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	NotBefore *float64 `json:"nbf"`
	Expires   *float64 `json:"exp"`
}

// parseToken reads a file with a bearer token that is a JWT, or with several, one per line, as HTCondor stores them. If
// there are several, it returns the one that ends first. A token without exp never ends. The signature is not checked,
// which is the task of the recipient.
func parseToken(where string, content []byte) (Credential, error) {
	var all []Credential
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		c, err := parseJWT(where, line)
		if errors.Is(err, errNone) && len(all) > 0 {
			err = errors.New("a line after the first token is not a token")
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

// parseJWT reads a JWT. A text without three parts, or whose header is not JSON, is errNone.
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

// maxSubject is the maximum length of a subject in runes.
const maxSubject = 200

// printable returns a name for people: without control characters, and limited in length.
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

// lastSecond is the end of the year 9999, after which a time cannot be formatted.
const lastSecond = 253402300799

// instant converts a claim to a whole second; a missing claim is the zero time.
func instant(name string, seconds *float64, whole func(float64) float64) (time.Time, error) {
	if seconds == nil {
		return time.Time{}, nil
	}
	s := whole(*seconds)
	if !(s >= 0 && s <= lastSecond) {
		return time.Time{}, fmt.Errorf("its claim %s is %g, which is not a time in seconds", name, *seconds)
	}
	return time.Unix(int64(s), 0).UTC(), nil
}
