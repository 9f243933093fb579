package ssh_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xssh "golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// An authority signs users' keys. Its server trusts it, and accepts no key without a certificate.
type authority struct {
	t   testing.TB
	key xssh.Signer
}

func newKey(t testing.TB) (xssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return key, private
}

// certificate returns the authority's certificate for a key, in the format of a file.
func (a authority) certificate(key xssh.PublicKey, from, to uint64) string {
	a.t.Helper()
	cert := &xssh.Certificate{Key: key, CertType: xssh.UserCert, KeyId: "alice of the VO",
		ValidPrincipals: []string{"alice"}, ValidAfter: from, ValidBefore: to}
	if err := cert.SignCert(rand.Reader, a.key); err != nil {
		a.t.Fatal(err)
	}
	return string(xssh.MarshalAuthorizedKey(cert))
}

// lastsUntil returns a certificate whose validity begins an hour before its end.
func (a authority) lastsUntil(key xssh.PublicKey, end time.Time) string {
	return a.certificate(key, uint64(end.Add(-time.Hour).Unix()), uint64(end.Unix()))
}

func (a authority) config() *xssh.ServerConfig {
	checker := &xssh.CertChecker{IsUserAuthority: func(key xssh.PublicKey) bool {
		return string(key.Marshal()) == string(a.key.PublicKey().Marshal())
	}}
	return &xssh.ServerConfig{PublicKeyCallback: func(c xssh.ConnMetadata, key xssh.PublicKey) (*xssh.Permissions, error) {
		if _, ok := key.(*xssh.Certificate); !ok {
			return nil, errors.New("no certificate")
		}
		return checker.Authenticate(c, key)
	}}
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// owner gives the gate keeper's user a key, and returns the path of its certificate.
func (g *gateKeeper) owner(t testing.TB) (xssh.PublicKey, string) {
	t.Helper()
	key, private := newKey(t)
	block, err := xssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(g.home, ".ssh", "id_ed25519")
	write(t, file, string(pem.EncodeToMemory(block)))
	return key.PublicKey(), file + "-cert.pub"
}

// An expired certificate is not offered, and the error names that reason first. Its replacement is used at once, even
// during the pause after a refused login. The connection outlives the certificate, and reports the data of the current
// file.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	ca := authority{t, key}
	g := keepGate(t, ca.config())
	g.serve = runSession
	public, file := g.owner(t)
	second := time.Now().Truncate(time.Second).UTC()
	conn := g.open(t)
	run := func() error {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err
	}
	if got := conn.Credentials(); got != nil {
		t.Errorf("before any login: %v", got)
	}

	write(t, file, ca.lastsUntil(public, second.Add(-time.Minute)))
	var login *gridsite.LoginError
	for range 2 { // the second time during the pause
		if err := run(); !errors.As(err, &login) || len(login.Expired) != 1 {
			t.Fatalf("with an expired certificate: %v", err)
		}
	}
	want := fmt.Sprintf("does not let alice in: the ssh certificate %s (alice of the VO) expired at %s: replace it there",
		file, second.Add(-time.Minute).Format(time.RFC3339))
	if !strings.Contains(login.Error(), want) {
		t.Errorf("it says %q, want %q", login, want)
	}

	end := second.Add(time.Hour)
	write(t, file, ca.lastsUntil(public, end))
	if err := run(); err != nil {
		t.Fatalf("with a new one: %v", err)
	}
	known := []credential.Credential{{Kind: credential.SSHCertificate, Where: file, Subject: "alice of the VO",
		NotBefore: end.Add(-time.Hour), NotAfter: end}}
	if diff := cmp.Diff(known, conn.Credentials()); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}

	for _, end := range []time.Time{second.Add(2 * time.Hour), second.Add(-time.Second)} {
		write(t, file, ca.lastsUntil(public, end))
		if got := conn.Credentials(); len(got) != 1 || !got[0].NotAfter.Equal(end) {
			t.Errorf("of one that ends at %s: %v", end, got)
		}
	}
	if !conn.Stands() {
		t.Error("the connection ended with its certificate")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := conn.Credentials(); !cmp.Equal(known, got) {
		t.Errorf("of one whose file is gone: %v", got)
	}
}

// If the certificate of a connection has expired, a login requested by a person reconnects with another credential.
func TestStaleConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	ca := authority{t, key}
	config := ca.config()
	byCertificate := config.PublicKeyCallback
	config.PublicKeyCallback = func(c xssh.ConnMetadata, key xssh.PublicKey) (*xssh.Permissions, error) {
		if _, ok := key.(*xssh.Certificate); ok {
			return byCertificate(c, key)
		}
		return nil, nil
	}
	g := keepGate(t, config)
	public, file := g.owner(t)
	end := time.Now().Truncate(time.Second).Add(3 * time.Second)
	write(t, file, ca.lastsUntil(public, end))
	conn := g.open(t)
	if err := conn.Connect(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := conn.Credentials(); len(got) != 1 || got[0].Kind != credential.SSHCertificate {
		t.Fatalf("let in by %v", got)
	}
	lost := conn.Lost()
	<-time.After(time.Until(end))
	if err := conn.Connect(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := conn.Credentials(); len(got) != 1 || got[0].Kind != credential.SSHKey || !got[0].NotAfter.IsZero() {
		t.Errorf("let in by %v, want the key alone", got)
	}
	select {
	case <-lost:
	case <-time.After(2 * time.Minute):
		t.Error("the connection before stays")
	}
}

// Reading terminates for any content of a file, and any time in it can be formatted.
func FuzzCertificate(f *testing.F) {
	key, _ := newKey(f)
	ca := authority{f, key}
	f.Add([]byte(ca.certificate(key.PublicKey(), 0, xssh.CertTimeInfinity)))
	f.Add([]byte(ca.certificate(key.PublicKey(), 1<<62, 1<<62)))
	f.Add([]byte("ssh-ed25519-cert-v01@openssh.com AAAA\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := ssh.CertificateIn(content)
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
