package corral

import (
	"fmt"
	"strconv"
	"strings"
)

// Clustering says how tasks of a workflow become jobs. The zero value makes each task a job of its own.
type Clustering struct {
	Groups int // horizontal: the tasks of a level become at most so many jobs; 0: none
}

// NoClustering and horizontalClustering are how clusterings are written.
const (
	NoClustering         = "none"
	horizontalClustering = "horizontal="
)

// ParseClustering reads none, which the empty text means too, or horizontal=N with N at least 1.
func ParseClustering(s string) (Clustering, error) {
	if s == NoClustering || s == "" {
		return Clustering{}, nil
	}
	n, ok := strings.CutPrefix(s, horizontalClustering)
	groups, err := strconv.Atoi(n)
	if !ok || err != nil || groups < 1 {
		return Clustering{}, fmt.Errorf("%q is neither %s nor %sN with N at least 1", s, NoClustering,
			horizontalClustering)
	}
	return Clustering{groups}, nil
}

// String writes it as ParseClustering reads it.
func (c Clustering) String() string {
	if c.Groups == 0 {
		return NoClustering
	}
	return horizontalClustering + strconv.Itoa(c.Groups)
}

// MarshalText writes it as ParseClustering reads it.
func (c Clustering) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads it as ParseClustering does.
func (c *Clustering) UnmarshalText(text []byte) (err error) {
	*c, err = ParseClustering(string(text))
	return err
}
