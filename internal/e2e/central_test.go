package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A central is a corrald that serves many users, each by tokens of their own.
type central struct {
	*user            // corrald's own user, who makes the first tokens at its socket
	url   string     // for everybody else
	ended chan error // has a value when corrald has ended
	cmd   *exec.Cmd
}

var servesAt = regexp.MustCompile(`token" address=127\.0\.0\.1:(\d+)`)

// newCentral starts one. prepare is given the path of the database before there is one.
func newCentral(t testing.TB, prepare func(database string), env ...string) *central {
	t.Helper()
	c := &central{user: newUser(t, append([]string{"CORRALD_TLS_LISTEN=127.0.0.1:0", "CORRALD_RATE=0"}, env...)...)}
	c.env = append(c.env, "CORRALD_TLS_CERT="+c.dir+"/cert.pem", "CORRALD_TLS_KEY="+c.dir+"/key.pem")
	c.certify()
	state := filepath.Join(c.dir, "state", "corral")
	for _, dir := range []string{state, filepath.Join(c.dir, "run", "corral")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if prepare != nil {
		prepare(c.database())
	}
	log, err := os.OpenFile(c.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, "corrald"))
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.cmd, c.ended = cmd, make(chan error, 1)
	go func() { c.ended <- cmd.Wait() }()
	c.until("corrald serves", time.Minute, func() bool {
		select {
		case err := <-c.ended:
			t.Fatalf("corrald ended: %v", err)
		default:
		}
		text, _ := os.ReadFile(c.log())
		if at := servesAt.FindSubmatch(text); at != nil {
			c.url = "https://localhost:" + string(at[1])
		}
		return c.url != ""
	})
	return c
}

// certify makes a certificate of localhost that is its own authority.
func (c *central) certify() {
	c.t.Helper()
	check := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	check(err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	check(err)
	check(os.WriteFile(c.dir+"/cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	check(os.WriteFile(c.dir+"/key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

func (c *central) database() string { return filepath.Join(c.dir, "state", "corral", "corrald.db") }

func (c *central) log() string { return filepath.Join(c.dir, "state", "corral", "corrald.log") }

// logged reports whether corrald's log has a text.
func (c *central) logged(text string) bool {
	log, _ := os.ReadFile(c.log())
	return strings.Contains(string(log), text)
}

// person makes a token of an owner and returns who asks with it; t is the test that asks.
func (c *central) person(t testing.TB, owner string, flags ...string) *user {
	t.Helper()
	dir, err := os.MkdirTemp(c.dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, dir: dir, bin: c.bin}
	file := filepath.Join(dir, "token")
	made := (&user{t: t, dir: c.dir, bin: c.bin, env: c.env})
	made.must(append([]string{"token", "create", filepath.Base(dir), "--owner", owner, "--out", file}, flags...)...)
	u.env = append(append([]string{}, c.env...), "CORRAL_SERVER="+c.url, "CORRAL_CA_FILE="+c.dir+"/cert.pem",
		"CORRAL_TOKEN_FILE="+file, "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "XDG_RUNTIME_DIR="+dir+"/run")
	return u
}

// readySite makes a site on corrald's own host, with a root of its own.
func (u *user) readySite(name string) {
	u.t.Helper()
	u.must("site", "create", name, "--contact", "local:", "--batch", "fork", "--root", filepath.Join(u.dir, "root", name), "--wait", "-q")
}

// stop ends corrald, and leaves what there is at sites.
func (c *central) stop() {
	c.t.Helper()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-c.ended; err != nil {
		c.t.Errorf("corrald ended: %v", err)
	}
}
