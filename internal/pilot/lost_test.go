package pilot

import (
	"testing"

	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/pool"
)

// A node is named where its only worker, or the last of them, has failed, and not for what another node would do as
// well.
func TestBlamedNode(t *testing.T) {
	t.Parallel()
	broken, serves, refused := process.Word{Left: process.LeftUnable, Error: "disk"}, process.Word{}, process.Word{Left: string(pool.LeaveRefused), Error: "no token"}
	for name, c := range map[string]struct {
		nodes   []string
		reasons []process.Word
		want    string // of the first worker
	}{
		"the only worker":                 {[]string{""}, []process.Word{broken}, "n1"},
		"one of two here":                 {[]string{"", ""}, []process.Word{broken, serves}, ""},
		"the last of two here":            {[]string{"", ""}, []process.Word{broken, broken}, "n1"},
		"the first node's, others serve":  {[]string{"", "n2"}, []process.Word{broken, serves}, "n1"},
		"another node's":                  {[]string{"n2", "", "n3"}, []process.Word{broken, serves, broken}, "n2"},
		"refused, as any node's would be": {[]string{"n2", ""}, []process.Word{refused, serves}, ""},
	} {
		s := &supervisor{me: holder{Host: "n1"}}
		for i, node := range c.nodes {
			s.workers = append(s.workers, &worker{number: i, node: node, reason: c.reasons[i]})
		}
		if got := s.blamed(s.workers[0]); got != c.want {
			t.Errorf("%s: %q is blamed, want %q", name, got, c.want)
		}
	}
}
