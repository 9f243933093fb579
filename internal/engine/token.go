package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Key makes the tokens of attempts. A token is derived from the attempt's tag, so that the same
// attempt can be submitted again after a crash without any token ever having been stored.
type Key []byte

// LoadKey reads the key in the file at path, which it makes, private, if there is none.
func LoadKey(path string) (Key, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(rand.Text() + rand.Text())
		err = keep(b, path, path+".new", 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("loading the token key: %w", err)
	}
	if len(b) < 32 {
		return nil, corral.ErrorAt(corral.Invalid, path, "holds no token key: remove it, and running pilots will be refused")
	}
	return b, nil
}

// A Token lets the workers of one attempt in.
type Token string

// Token returns the token of the attempt with this tag.
func (k Key) Token(tag string) Token {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(tag))
	return Token(base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
}

// Digest is what corrald keeps of a token: its SHA-256 in hex.
func (t Token) Digest() string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:])
}

// newTag returns a tag that no job had before; batch systems show it as the job's name.
func newTag(kind corral.JobKind) string {
	return "corral-" + string(kind) + "-" + strings.ToLower(rand.Text()[:12])
}
