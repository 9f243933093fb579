package central

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
)

// Certificates holds a listener's certificate and key from two PEM files that may be renewed while corrald runs. At
// each handshake both files are checked, and read again if they have changed. A pair that cannot be used, such as a
// new certificate without its key, is logged once, and the previous pair stays in use. Nothing runs between
// handshakes.
type Certificates struct {
	lg        *slog.Logger
	cert, key string // file names

	mu    sync.Mutex // guards the fields below
	seen  [2]stamp   // of the pair that was read last, whether or not it was usable
	inUse *tls.Certificate
}

// A stamp identifies a version of a file.
type stamp struct {
	size     int64
	modified time.Time
	file     os.FileInfo // for its inode
}

func (s stamp) same(o stamp) bool {
	return s.size == o.size && s.modified.Equal(o.modified) && (s.file == nil) == (o.file == nil) &&
		(s.file == nil || os.SameFile(s.file, o.file))
}

// LoadCertificates reads the pair for the first time and returns an error if it is not usable.
func LoadCertificates(lg *slog.Logger, cert, key string) (*Certificates, error) {
	c := &Certificates{lg: lg, cert: cert, key: key}
	return c, c.Reload()
}

// Config returns the configuration of a listener with these certificates.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // so that a waiting request blocks only its own connection
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// Leaf returns the certificate that is now in use.
func (c *Certificates) Leaf() *x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inUse.Leaf
}

// Reload reads the files now, even if they are unchanged.
func (c *Certificates) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read(c.stamps())
}

// current returns the certificate to use after checking the files.
func (c *Certificates) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stamps()
	if now[0].same(c.seen[0]) && now[1].same(c.seen[1]) {
		return c.inUse
	}
	if err := c.read(now); err != nil {
		c.lg.Error("the certificate cannot be renewed; the previous one stays in use", "error", err)
	} else {
		c.lg.Info("the certificate was renewed", "file", c.cert, "expires", c.inUse.Leaf.NotAfter)
	}
	return c.inUse
}

// stamps returns the stamps of both files. The caller holds c.mu.
func (c *Certificates) stamps() (now [2]stamp) {
	for i, file := range []string{c.cert, c.key} {
		if info, err := os.Stat(file); err == nil {
			now[i] = stamp{info.Size(), info.ModTime(), info}
		}
	}
	return now
}

// read reads the pair with these stamps. The caller holds c.mu. The stamps were taken before the read: if a file is
// replaced during the read, it is read again at the next handshake.
func (c *Certificates) read(now [2]stamp) error {
	c.seen = now
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "--tls-cert, --tls-key", "%w", err)
	}
	if key := now[1].file; key != nil && key.Mode().Perm()&0o007 != 0 {
		return corral.ErrorAt(corral.Forbidden, "--tls-key", "%s has mode %04o: everybody can read it; chmod 640 "+
			"or 600", c.key, key.Mode().Perm())
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("reading %s: %w", c.cert, err)
		}
	}
	c.inUse = &pair
	return nil
}
