package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// certificateCmd creates a self-signed certificate for localhost that is valid for an hour, and its key.
func certificateCmd(ts *testscript.TestScript, args []string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	ts.Check(err)
	template := &x509.Certificate{SerialNumber: serial, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	ts.Check(err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	ts.Check(err)
	for name, block := range map[string]*pem.Block{args[0]: {Type: "CERTIFICATE", Bytes: der}, args[1]: {Type: "PRIVATE KEY", Bytes: key}} {
		next := ts.MkAbs(name) + ".new" // readers see either the old or the new file
		ts.Check(os.WriteFile(next, pem.EncodeToMemory(block), 0o600))
		ts.Check(os.Rename(next, ts.MkAbs(name)))
	}
}

var listensAt = regexp.MustCompile(`users with a token" address=127\.0\.0\.1:(\d+)`)

// frontCmd stores the URL of the central corrald that was started last in $CENTRAL; the port is taken from that
// corrald's log.
func frontCmd(ts *testscript.TestScript) {
	log, err := os.ReadFile(ts.Getenv("XDG_STATE_HOME") + "/corral/corrald.log")
	ts.Check(err)
	found := listensAt.FindAllSubmatch(log, -1)
	if found == nil {
		ts.Fatalf("corrald's log does not say where it listens:\n%s", log)
	}
	ts.Setenv("CENTRAL", "https://localhost:"+string(found[len(found)-1][1]))
}

// The text of a token is checked before it is sent anywhere, and never sent unencrypted over a network.
func TestTokensAreNotSentInTheClear(t *testing.T) {
	t.Parallel()
	text := api.NewTokenText()
	for server, want := range map[string]corral.Kind{
		"http://central.example": corral.Invalid, "http://10.0.0.1:80": corral.Invalid, "http://127.0.0.1.evil.example": corral.Invalid,
		"https://central.example": "", "http://localhost:8080": "", "http://127.0.0.1": "", "http://[::1]:80": "", "unix:/s": "",
	} {
		if _, err := api.Dial(server, api.Options{Token: text}); corral.KindOf(err) != want {
			t.Errorf("%s: %v", server, err)
		}
	}
}
