package wire

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// certFile contains the certificate and key of the worker port, in PEM, in the directory that its owner chose.
const certFile = "worker-port.pem"

// LoadOrCreateCertificate returns the worker port's certificate from dir, or creates one there, and dir if necessary:
// peers pin its digest, so it must outlive corrald. The file is private (0600).
func LoadOrCreateCertificate(dir string) (tls.Certificate, error) {
	path := filepath.Join(dir, certFile)
	if pair, err := os.ReadFile(path); err == nil {
		cert, err := tls.X509KeyPair(pair, pair)
		return cert, wrap.Errorf(err, "reading worker port's certificate %s", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, fmt.Errorf("reading worker port's certificate: %w", err)
	}
	pair, err := createCertificate(time.Now())
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("creating worker port's certificate: %w", err)
	}
	tmp := path + ".new"
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(tmp, pair, 0o600), os.Rename(tmp, path)); err != nil {
		return tls.Certificate{}, fmt.Errorf("saving worker port's certificate: %w", err)
	}
	return tls.X509KeyPair(pair, pair)
}

// createCertificate returns a self-signed certificate and its key. Only its digest matters; its names and times are not
// checked.
func createCertificate(now time.Time) ([]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "corral worker port"},
		NotBefore:    now.Add(-24 * time.Hour),
		NotAfter:     now.AddDate(30, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	pair := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(pair, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
}

// CertDigest returns the digest that peers must know: sha256:HEX of the certificate's DER.
func CertDigest(cert tls.Certificate) string { return digestOf(cert.Certificate[0]) }

func digestOf(der []byte) string {
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}
