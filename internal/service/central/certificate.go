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

// Certificates are the certificate of a listener, in two files of PEM that somebody renews while corrald runs. At each
// handshake the two files are looked at; if they are others than before they are read. A pair that cannot be used, such
// as a new certificate before its new key is there, is logged once, and the one before stays. Nothing runs in between.
type Certificates struct {
	lg        *slog.Logger
	cert, key string // files

	mu    sync.Mutex // guards following
	seen  [2]stamp   // of the pair that was read last, whether it could be used or not
	inUse *tls.Certificate
}

// A stamp tells a file from what was in its place before.
type stamp struct {
	size     int64
	modified time.Time
	file     os.FileInfo // for its inode
}

func (s stamp) same(o stamp) bool {
	return s.size == o.size && s.modified.Equal(o.modified) && (s.file == nil) == (o.file == nil) &&
		(s.file == nil || os.SameFile(s.file, o.file))
}

// LoadCertificates reads the pair for the first time, and refuses what cannot be used.
func LoadCertificates(lg *slog.Logger, cert, key string) (*Certificates, error) {
	c := &Certificates{lg: lg, cert: cert, key: key}
	return c, c.Reload()
}

// Config is that of a listener with these certificates.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // a wait holds up its connection only
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// Leaf is the certificate that is shown now.
func (c *Certificates) Leaf() *x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inUse.Leaf
}

// Reload reads the files now, whether they have changed or not.
func (c *Certificates) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read(c.stamps())
}

// current is the certificate to show, after a look at the files.
func (c *Certificates) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stamps()
	if now[0].same(c.seen[0]) && now[1].same(c.seen[1]) {
		return c.inUse
	}
	if err := c.read(now); err != nil {
		c.lg.Error("the certificate cannot be renewed; the one before is shown", "error", err)
	} else {
		c.lg.Info("the certificate was renewed", "file", c.cert, "expires", c.inUse.Leaf.NotAfter)
	}
	return c.inUse
}

// stamps looks at both files; c.mu is held.
func (c *Certificates) stamps() (now [2]stamp) {
	for i, file := range []string{c.cert, c.key} {
		if info, err := os.Stat(file); err == nil {
			now[i] = stamp{info.Size(), info.ModTime(), info}
		}
	}
	return now
}

// read reads the pair, which has these stamps; c.mu is held. The stamps are from before: what is replaced while it is
// read is read again at the next handshake.
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
