package pilot

import (
	"log/slog"
	"net"
	"os/exec"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/pool"
)

// A node is named where its only worker, or the last of them, has failed, and not for what another node would do as well.
func TestBlamedNode(t *testing.T) {
	t.Parallel()
	broken, serves, refused := word{Left: leftUnable, Error: "disk"}, word{}, word{Left: string(pool.LeaveRefused), Error: "no token"}
	for name, c := range map[string]struct {
		nodes   []string
		reasons []word
		want    string // of the first worker
	}{
		"the only worker":                 {[]string{""}, []word{broken}, "n1"},
		"one of two here":                 {[]string{"", ""}, []word{broken, serves}, ""},
		"the last of two here":            {[]string{"", ""}, []word{broken, broken}, "n1"},
		"the first node's, others serve":  {[]string{"", "n2"}, []word{broken, serves}, "n1"},
		"another node's":                  {[]string{"n2", "", "n3"}, []word{broken, serves, broken}, "n2"},
		"refused, as any node's would be": {[]string{"n2", ""}, []word{refused, serves}, ""},
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

// Of a node that does not answer it is said so, and not which signal the way there was killed with.
func TestSilentNodeIsGivenUp(t *testing.T) {
	t.Parallel()
	nobody := exec.Command("sleep", "1000")
	nobody.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := nobody.Start(); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	s := &supervisor{lg: slog.New(slog.DiscardHandler)}
	w := &worker{id: "t/1", node: "n2", deaths: maxDeaths}
	w.child = &child{pid: nobody.Process.Pid, conn: ours, quiet: farStart, far: &far{way: "srun", node: "n2"}}
	s.workers, s.order.Hosts = []*worker{w, {}}, 2
	s.killHung(wordGap)
	if err := nobody.Wait(); err == nil {
		t.Error("what leads to it was not killed")
	}
	s.bury(w)
	if want := "node n2: said nothing for 2m0s, 4 times in a row without having registered"; len(s.lost) != 1 || s.lost[0].String() != want {
		t.Errorf("lost %v, want %s", s.lost, want)
	}
}
