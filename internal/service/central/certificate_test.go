package central

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// pair creates a certificate for localhost with a serial number, in PEM.
func pair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// replace replaces a file in the same way as programs that renew certificates.
func replace(t *testing.T, file string, content []byte) {
	t.Helper()
	next := file + ".new"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// At each handshake a listener uses the certificate in its files, or the previous one while they do not match; this
// is logged once. Existing connections continue.
func TestCertificatesFollowTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert1, key1 := pair(t, 1)
	cert2, key2 := pair(t, 2)
	replace(t, cert, cert1)
	replace(t, key, key1)
	var log bytes.Buffer
	c, err := LoadCertificates(slog.New(slog.NewTextHandler(&log, nil)), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Listener = tls.NewListener(s.Listener, c.Config())
	s.Start()
	defer s.Close()
	shown := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := shown(); got != 1 {
		t.Errorf("certificate %d", got)
	}
	replace(t, cert, cert2)
	for range 3 {
		if got := shown(); got != 1 {
			t.Errorf("with a key of another one: certificate %d", got)
		}
	}
	if n := strings.Count(log.String(), "cannot be renewed"); n != 1 {
		t.Errorf("that is reported %d times: %s", n, &log)
	}
	replace(t, key, key2)
	if got := shown(); got != 2 {
		t.Errorf("renewed: certificate %d", got)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if got := shown(); got != 2 {
		t.Errorf("without a file: certificate %d", got)
	}
	replace(t, cert, cert1)
	replace(t, key, key1)
	if err := c.Reload(); err != nil || c.Leaf().SerialNumber.Int64() != 1 {
		t.Errorf("asked to read them: %v", err)
	}
	replace(t, key, key2)
	if err := c.Reload(); corral.KindOf(err) != corral.Invalid || c.Leaf().SerialNumber.Int64() != 1 {
		t.Errorf("asked to read what does not fit: %v", err)
	}
}

func TestLoadCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for _, tt := range []struct {
		name string
		make func()
		kind corral.Kind
	}{
		{"nothing", func() {}, corral.Invalid},
		{"junk", func() { replace(t, cert, []byte("junk")); replace(t, key, []byte("junk")) }, corral.Invalid},
		{"a pair", func() {
			c, k := pair(t, 1)
			replace(t, cert, c)
			replace(t, key, k)
		}, ""},
		{"a key that everybody reads", func() {
			if err := os.Chmod(key, 0o644); err != nil {
				t.Fatal(err)
			}
		}, corral.Forbidden},
	} {
		tt.make()
		if _, err := LoadCertificates(slog.New(slog.DiscardHandler), cert, key); corral.KindOf(err) != tt.kind {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
