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
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A note holds the data that the next corrald needs to find a stream's worker jobs. It is on disk before the first
// worker job is submitted.
type note struct {
	Name  string `json:"name"`  // unique in the schedd, where other corralds may have clusters with this number
	Token string `json:"token"` // admits worker jobs
	Last  int64  `json:"last"`  // number of the last submitted worker job

	path string
}

// maxNote is a length in bytes that exceeds the length of any note.
const maxNote = 4096

// recall reads the note, or begins a new note if there is none. A note that cannot be read is never replaced, because
// it may name jobs in the schedd.
func (n *note) recall() error {
	text, err := input.ReadFile(n.path, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		n.Name, n.Token = rand.Text(), rand.Text() // another corrald cannot choose the same name
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, n)
	}
	if err == nil && (n.Name == "" || n.Token == "") {
		err = errors.New("it has no name or token")
	}
	return wrap.Errorf(err, "reading %s, which names worker jobs in HTCondor", n.path)
}

// reserve reserves numbers for worker jobs and returns the first number. The reservation is on disk when reserve
// returns.
func (n *note) reserve(jobs int) (first int64, err error) {
	next := *n
	first, next.Last = next.Last+1, next.Last+int64(jobs)
	if err := next.write(); err != nil {
		return 0, fmt.Errorf("reserving numbers of worker jobs: %w", err)
	}
	*n = next
	return first, nil
}

// write writes the note so that it survives a power failure.
func (n *note) write() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return atomicfile.Keep(n.path, text, 0o600)
}

// digest returns the SHA-256 of the token, in hex.
func (n *note) digest() string {
	sum := sha256.Sum256([]byte(n.Token))
	return hex.EncodeToString(sum[:])
}

// tagStart is the prefix of the tags by which worker jobs identify themselves.
const tagStart = "corral-stream-"

// Tag returns the tag of a cluster's worker jobs.
func Tag(cluster corral.ClusterID) string { return tagStart + strconv.FormatInt(int64(cluster), 10) }

// ClusterOf returns the cluster whose worker jobs have this tag, or false if it is another kind of tag.
func ClusterOf(tag string) (corral.ClusterID, bool) {
	digits, ours := strings.CutPrefix(tag, tagStart)
	n, err := strconv.ParseInt(digits, 10, 64)
	return corral.ClusterID(n), ours && err == nil && n > 0 && Tag(corral.ClusterID(n)) == tag
}
