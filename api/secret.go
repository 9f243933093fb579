package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
)

const (
	tokenPrefix = "corral_" // by which scanners of leaked secrets, and people, know a token
	tokenBytes  = 32
)

// tokenForm is what the text of a token looks like: 43 characters of base64 are 32 bytes.
var tokenForm = regexp.MustCompile(`^corral_[A-Za-z0-9_-]{43}$`)

// NewTokenText returns the text of a new token, which nobody can guess. It lets nobody in before corrald knows its
// digest.
func NewTokenText() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // it never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
}

// IsToken reports whether s looks like the text of a token.
func IsToken(s string) bool { return tokenForm.MatchString(s) }

// TokenDigest is what corrald keeps of a token. The text has 256 random bits, so that a plain hash needs neither salt
// nor time.
func TokenDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
