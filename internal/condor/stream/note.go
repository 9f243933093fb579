package stream

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// A note is what the next corrald has to know of a stream's worker jobs. It is on disk before the first of them is
// submitted.
type note struct {
	Name  string `json:"name"`  // of the stream in the schedd, where other corralds may have clusters of this number
	Token string `json:"token"` // by which worker jobs are let in
	Last  int64  `json:"last"`  // number of a worker job that was submitted

	path string
}

// maxNote is more than a note is long, in bytes.
const maxNote = 4096

// recall reads the note, or begins one if there is none. One that cannot be read may name jobs in the schedd, so it is
// never replaced.
func (n *note) recall() error {
	text, err := input.ReadFile(n.path, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		n.Name, n.Token = rand.Text(), rand.Text() // nothing that another corrald could choose too
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, n)
	}
	if err == nil && (n.Name == "" || n.Token == "") {
		err = errors.New("it has no name or token")
	}
	if err != nil {
		return fmt.Errorf("reading %s, which names worker jobs in HTCondor: %w", n.path, err)
	}
	return nil
}

// reserve makes numbers for so many worker jobs, and returns the first. They are nobody else's once it has returned.
func (n *note) reserve(jobs int) (first int64, err error) {
	next := *n
	first, next.Last = next.Last+1, next.Last+int64(jobs)
	if err := next.write(); err != nil {
		return 0, fmt.Errorf("noting worker jobs: %w", err)
	}
	*n = next
	return first, nil
}

// write puts the note where a power failure does not reach it.
func (n *note) write() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return atomicfile.Keep(n.path, text, 0o600)
}

// digest is the SHA-256 of the token, in hex.
func (n *note) digest() string {
	sum := sha256.Sum256([]byte(n.Token))
	return hex.EncodeToString(sum[:])
}

// tagStart is what the tags begin with by which worker jobs introduce themselves.
const tagStart = "corral-stream-"

// Tag is that of the worker jobs of a cluster.
func Tag(cluster corral.ClusterID) string { return tagStart + strconv.FormatInt(int64(cluster), 10) }

// ClusterOf returns the cluster whose worker jobs have this tag; false if it is another kind of tag.
func ClusterOf(tag string) (corral.ClusterID, bool) {
	digits, ours := strings.CutPrefix(tag, tagStart)
	n, err := strconv.ParseInt(digits, 10, 64)
	return corral.ClusterID(n), ours && err == nil && n > 0 && Tag(corral.ClusterID(n)) == tag
}
