package admission

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
	"os/user"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Key makes the tokens of attempts. A token is derived from the attempt's tag, so that the same
// attempt can be submitted again after a crash without any token ever having been stored.
type Key []byte

// minKey is how long a key is at least, in bytes: those of a SHA-256, which it keys.
const minKey = sha256.Size

// LoadKey reads the key in the file at path, which it makes, private, if there is none. The error is Invalid, and names
// the file, if what is there is too short for a key.
func LoadKey(path string) (Key, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(rand.Text() + rand.Text())
		fresh := path + ".new" // a key that was written by half would be another one at the next start
		err = errors.Join(os.WriteFile(fresh, b, 0o600), os.Rename(fresh, path))
	}
	if err != nil {
		return nil, fmt.Errorf("loading the token key: %w", err)
	}
	if len(b) < minKey {
		return nil, corral.ErrorAt(corral.Invalid, path,
			"holds no token key: remove it, and running pilots will be refused")
	}
	return b, nil
}

// sign returns a MAC of text that only this corrald can make.
func (k Key) sign(text string) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// A Token lets the workers of one attempt in.
type Token string

// Token returns the token of the attempt with this tag.
func (k Key) Token(tag string) Token {
	return Token(base64.RawURLEncoding.EncodeToString(k.sign(tag)))
}

// Digest is what corrald keeps of a token: its SHA-256 in hex.
func (t Token) Digest() string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:])
}

// Owner returns what the roots of this corrald's sites are marked with: something that no other corrald has, a blank,
// and words for people.
func (k Key) Owner() string {
	name := "somebody"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	host, _ := os.Hostname() // for people
	return hex.EncodeToString(k.sign("root")[:8]) + " " + name + "@" + host
}

// KindOfTag returns the kind of job that a tag of NewTag is for; ours is false for any other word.
func KindOfTag(tag string) (kind corral.JobKind, ours bool) {
	name, ok := strings.CutPrefix(tag, tagPrefix)
	word, random, found := strings.Cut(name, "-")
	kind = corral.JobKind(word)
	known := []corral.JobKind{corral.SetupJob, corral.PilotJob, corral.CleanupJob, ProbeJob}
	return kind, ok && found && random != "" && slices.Contains(known, kind)
}

// ProbeJob is the kind of a job that looks at a node, in its tag; no probe has a row among the jobs.
const ProbeJob = corral.JobKind("probe")

const tagPrefix = "corral-"

// NewTag returns a tag that no job had before. Batch systems show it as the job's name; kind says what the job is for.
func NewTag(kind corral.JobKind) string {
	return tagPrefix + string(kind) + "-" + strings.ToLower(rand.Text()[:12])
}
