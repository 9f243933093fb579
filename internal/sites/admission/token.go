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

// A Key makes the tokens of attempts. A token is derived from the attempt's tag, so the same attempt can be submitted
// again after a crash although no token is ever stored.
type Key []byte

// minKey is the minimum length of a key in bytes: the length of a SHA-256 digest.
const minKey = sha256.Size

// LoadKey reads the key from the file at path, or creates a private one if the file does not exist. If the content is
// too short for a key, the error is Invalid and names the file.
func LoadKey(path string) (Key, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(rand.Text() + rand.Text())
		fresh := path + ".new" // a partly written key would change at the next start
		err = errors.Join(os.WriteFile(fresh, b, 0o600), os.Rename(fresh, path))
	}
	if err != nil {
		return nil, fmt.Errorf("loading the token key: %w", err)
	}
	if len(b) < minKey {
		return nil, corral.ErrorAt(corral.Invalid, path,
			"does not contain a token key: remove it, and running pilots will be refused")
	}
	return b, nil
}

// sign returns a MAC of text that only this corrald can make.
func (k Key) sign(text string) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// A Token admits the workers of one attempt.
type Token string

// Token returns the token of the attempt with this tag.
func (k Key) Token(tag string) Token {
	return Token(base64.RawURLEncoding.EncodeToString(k.sign(tag)))
}

// Digest returns the form of a token that corrald stores: its SHA-256 in hex.
func (t Token) Digest() string {
	sum := sha256.Sum256([]byte(t))
	return hex.EncodeToString(sum[:])
}

// Owner returns the mark for the roots of this corrald's sites: a value unique to this corrald, a space, and a
// description for people.
func (k Key) Owner() string {
	name := "somebody"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	host, _ := os.Hostname() // shown to people
	return hex.EncodeToString(k.sign("root")[:8]) + " " + name + "@" + host
}

// KindOfTag returns the kind of job of a tag made by NewTag; ours is false for any other string.
func KindOfTag(tag string) (kind corral.JobKind, ours bool) {
	name, ok := strings.CutPrefix(tag, tagPrefix)
	word, random, found := strings.Cut(name, "-")
	kind = corral.JobKind(word)
	known := []corral.JobKind{corral.SetupJob, corral.PilotJob, corral.CleanupJob, ProbeJob}
	return kind, ok && found && random != "" && slices.Contains(known, kind)
}

// ProbeJob is the kind, in a tag, of a job that examines a node. Probes have no rows among the jobs.
const ProbeJob = corral.JobKind("probe")

const tagPrefix = "corral-"

// NewTag returns a tag that no earlier job has had. Batch systems show it as the job's name; kind is the job's
// purpose.
func NewTag(kind corral.JobKind) string {
	return tagPrefix + string(kind) + "-" + strings.ToLower(rand.Text()[:12])
}
