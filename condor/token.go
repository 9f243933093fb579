package condor

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Token is an IDTOKEN: its bearer is Identity to the pool, until Expires or until its ID is revoked, with at most the
// rights that it names. The text must never appear in logs.
type Token struct {
	ID       string // HTCondor's jti
	Identity string
	Rights   []string
	Expires  time.Time
	text     string
}

// Secret returns the text, for a file of mode 0600 in the SEC_TOKEN_DIRECTORY of a glidein.
func (t Token) Secret() string { return t.text }

// String names the token without the secret.
func (t Token) String() string { return "token " + t.ID + " of " + t.Identity }

// GoString is String, so that no formatting verb shows the secret.
func (t Token) GoString() string { return t.String() }

// glideinRights are the only rights that a glidein needs: to offer slots, to advertise its master, and to find the
// pool's daemons.
var glideinRights = []string{"ADVERTISE_STARTD", "ADVERTISE_MASTER", "READ"}

// GlideinIdentity returns the identity of the glidein with a number in the pool: the AuthenticatedIdentity that the
// collector writes into the ads of its daemons.
func GlideinIdentity(n int64) string { return fmt.Sprintf("%s-%d@%s", glideinName, n, domain) }

// Mint creates a token for the glidein with a number, valid for lifetime, which is rounded up to a second. It needs no
// daemon, because signing requires only the pool's key. HTCondor's own condor_token_create would take 40 ms of
// processor time, which is much when there are hundreds of tokens.
func (p *Pool) Mint(n int64, lifetime time.Duration) (Token, error) {
	if lifetime <= 0 {
		return Token{}, errors.New("minting a token: its lifetime must be positive")
	}
	key, err := os.ReadFile(filepath.Join(p.config.Dir, "keys", signingKey))
	if err != nil {
		return Token{}, fmt.Errorf("minting a token: %w", err)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	now := time.Now()
	c := claims{ID: hex.EncodeToString(id), Issuer: domain, Subject: GlideinIdentity(n), IssuedAt: now.Unix(),
		Expires: now.Add(lifetime + time.Second - 1).Unix()}
	for _, right := range glideinRights {
		c.Scope = strings.TrimSpace(c.Scope + " " + scopePrefix + right)
	}
	text, err := c.sign(key)
	if err != nil {
		return Token{}, fmt.Errorf("minting a token: %w", err)
	}
	return ParseToken(text)
}

// signingKey is the name of a pool's key, in its folder of keys and in tokens.
const signingKey = "POOL"

// scopePrefix precedes each right in a token's scope.
const scopePrefix = "condor:/"

// claims are the claims of a token, by the names of RFC 7519 and, for the rights, RFC 8693.
type claims struct {
	ID       string `json:"jti"`
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Scope    string `json:"scope"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

// sign returns the token's text, signed like HTCondor's: the pool's key file is scrambled and ends at the first NUL,
// the secret is the key twice, and the signing key is derived from that. TestTokenClaims checks that a real collector
// accepts such tokens; otherwise a token is an ordinary JSON Web Token.
func (c claims) sign(file []byte) (string, error) {
	for i := range file {
		file[i] ^= [...]byte{0xde, 0xad, 0xbe, 0xef}[i%4]
	}
	key, _, _ := bytes.Cut(file, []byte{0})
	derived, err := hkdf.Key(sha256.New, slices.Concat(key, key), []byte("htcondor"), "master jwt", sha256.Size)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err // unreachable: every field can be encoded
	}
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"` + signingKey + `"}`))
	text := header + "." + base64.RawURLEncoding.EncodeToString(payload)
	mac := hmac.New(sha256.New, derived)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// ParseToken parses a token's claims. It does not verify the signature, which only the pool can do.
func ParseToken(text string) (Token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Token{}, errors.New("reading a token: it does not have three parts")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, errors.New("reading a token: its claims are not in base64")
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return Token{}, errors.New("reading a token: its claims are not JSON")
	}
	t := Token{ID: c.ID, Identity: c.Subject, text: text}
	if c.Expires != 0 {
		t.Expires = time.Unix(c.Expires, 0)
	}
	for _, s := range strings.Fields(c.Scope) {
		t.Rights = append(t.Rights, strings.TrimPrefix(s, scopePrefix))
	}
	return t, nil
}
