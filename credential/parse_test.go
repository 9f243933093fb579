package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon is the time of all tests.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// certificate returns a certificate in PEM. Each is self-signed: of a chain, only times and names are read.
func certificate(t testing.TB, name string, from, to time.Time, extensions ...pkix.Extension) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{Organization: []string{"VO"}, CommonName: name},
		NotBefore: from, NotAfter: to, ExtraExtensions: extensions}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// proxyExtension is RFC 3820's extension, which must be critical.
var proxyExtension = pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}, Critical: true,
	Value: []byte{0x30, 0x0c, 0x30, 0x0a, 0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 21, 1}}

// jwt returns a JWT with a header, claims, and a signature that is not checked.
func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signed"))
}

func TestParse(t *testing.T) {
	t.Parallel()
	hour := noon.Add(time.Hour)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")}))
	user := certificate(t, "Ann", noon.Add(-time.Hour), noon.AddDate(1, 0, 0))
	const long = "CN=Ann,O=VO"
	for name, c := range map[string]struct {
		content string
		want    Credential
	}{
		"certificate with its key": {key + user, Credential{Kind: X509Certificate, Subject: long,
			NotBefore: noon.Add(-time.Hour), NotAfter: noon.AddDate(1, 0, 0)}},
		"proxy": {certificate(t, "4711", noon, hour, proxyExtension) + key + user, Credential{Kind: X509Proxy,
			Subject: long, NotBefore: noon, NotAfter: hour}},
		"proxy of an older kind": {certificate(t, "proxy", noon, hour) + key + user, Credential{
			Kind: X509Proxy, Subject: long, NotBefore: noon, NotAfter: hour}},
		"proxy that its user's certificate does not outlive": {
			certificate(t, "4711", noon, hour, proxyExtension) + certificate(t, "Ann", noon.Add(time.Minute), noon.Add(2*time.Minute)),
			Credential{Kind: X509Proxy, Subject: long, NotBefore: noon.Add(time.Minute),
				NotAfter: noon.Add(2 * time.Minute)}},
		"WLCG token": {jwt(`{"iss":"https://vo.example","sub":"ann","nbf":1795348800,"exp":1795352400,"wlcg.ver":"1.0"}`) + "\n",
			Credential{Kind: Token, Subject: "ann@https://vo.example", NotBefore: noon, NotAfter: hour}},
		"token without an end": {jwt(`{"iss":"pool","sub":"condor@pool","iat":1795348800}`), Credential{
			Kind: Token, Subject: "condor@pool@pool"}},
		"the first of several to end": {"# of two pools\n" + jwt(`{"sub":"a"}`) + "\n\n" + jwt(`{"sub":"b","exp":1795352400.9}`),
			Credential{Kind: Token, Subject: "b", NotAfter: hour}},
		"a name that steers terminals": {jwt(`{"sub":"\u001b[2J"}`), Credential{Kind: Token, Subject: "?[2J"}},
		"ssh key":                      {"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", Credential{Kind: SSHKey}},
		"password":                     {"open sesame", Credential{Kind: Opaque}},
		"token that is not a JWT":      {"a.b.c", Credential{Kind: Opaque}},
		"nothing":                      {"", Credential{Kind: Opaque}},
	} {
		c.want.Where = "/f"
		got, err := Parse("/f", []byte(c.content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A broken certificate or token is an error, not a credential without an end.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	encode := base64.RawURLEncoding.EncodeToString
	for name, c := range map[string]struct{ content, want string }{
		"certificate": {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "/f: x509"},
		"claims":      {encode([]byte(`{}`)) + "." + encode([]byte(`[1]`)) + ".c", "its claims"},
		"encoding":    {encode([]byte(`{}`)) + ".!.c", "its claims"},
		"time":        {jwt(`{"exp":"tomorrow"}`), "its claims"},
		"past":        {jwt(`{"exp":-1}`), "exp is -1"},
		"future":      {jwt(`{"nbf":1e300}`), "nbf is 1e+300"},
		"second line": {jwt(`{}`) + "\nmore", "after the first token"},
	} {
		if got, err := Parse("/f", []byte(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want an error with %q", name, got, err, c.want)
		}
	}
}

// Parse terminates for every content, and every time that it returns can be formatted.
func FuzzParse(f *testing.F) {
	f.Add([]byte(jwt(`{"exp":1795352400,"nbf":1}`)))
	f.Add([]byte(certificate(f, "4711", noon, noon.Add(time.Hour), proxyExtension)))
	f.Add([]byte("# a comment\n-----BEGIN CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := Parse("/f", content)
		if err != nil {
			return
		}
		for _, at := range []time.Time{c.NotBefore, c.NotAfter} {
			if _, err := at.MarshalJSON(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
