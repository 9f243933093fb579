package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
)

const (
	tokenPrefix = "corral_" // lets people and scanners for leaked secrets recognize a token
	tokenBytes  = 32
)

// tokenForm matches the text of a token: 43 characters of base64 encode 32 bytes.
var tokenForm = regexp.MustCompile(`^corral_[A-Za-z0-9_-]{43}$`)

// NewTokenText returns the text of a new token, which cannot be guessed. It grants no access until corrald knows its
// digest.
func NewTokenText() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // it never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
}

// IsToken reports whether s looks like the text of a token.
func IsToken(s string) bool { return tokenForm.MatchString(s) }

// TokenDigest returns the digest of a token; corrald stores only the digest. The text has 256 random bits, so a plain
// hash needs neither salt nor a slow function.
func TokenDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
