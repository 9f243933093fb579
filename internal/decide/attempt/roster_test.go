package attempt

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

var start = time.Unix(1e9, 0)

// at returns the time the given number of seconds after the start.
func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func roster(hosts int, nodes ...string) *Roster {
	return NewRoster("t", jobfiles.PilotOrder{
		Shape: corral.Shape{Hosts: hosts},
		Idle:  corral.Seconds(10 * time.Second)}, nodes, "n1")
}

func TestNewRosterAssignsNodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		roster *Roster
		nodes  []string // nodes of the workers
		here   int
		lost   string
	}{
		"no batch system": {roster(2), []string{"", ""}, 2, ""},
		"one node":        {roster(2, "n1"), []string{"", ""}, 2, ""},
		"three nodes":     {roster(3, "n1", "n2", "n3"), []string{"", "n2", "n3"}, 1, ""},
		"a node too few": {roster(3, "n1", "n2"), []string{"", "n2"}, 1,
			"host 2: the batch system gave 2 nodes for 3 hosts"},
	} {
		var nodes []string
		for _, w := range c.roster.Workers {
			nodes = append(nodes, w.Node)
		}
		if !slices.Equal(nodes, c.nodes) || c.roster.Here() != c.here {
			t.Errorf("%s: workers on %q, %d here; want %q, %d", name, nodes, c.roster.Here(), c.nodes, c.here)
		}
		if lost := c.roster.Lost; (len(lost) > 0) != (c.lost != "") || len(lost) > 0 && lost[0].String() != c.lost {
			t.Errorf("%s: lost %v, want %q", name, lost, c.lost)
		}
	}
}

// A node is blamed if its only worker or all of its workers failed, but not if the same would happen on another node.
func TestBlamedNode(t *testing.T) {
	t.Parallel()
	type end struct {
		left    Left
		trouble string
	}
	broken, serves, refused := end{LeftUnable, "disk"}, end{}, end{LeftRefused, "no token"}
	for name, c := range map[string]struct {
		nodes []string
		ends  []end
		want  string // node of the first worker
	}{
		"the only worker":                 {[]string{""}, []end{broken}, "n1"},
		"one of two here":                 {[]string{"", ""}, []end{broken, serves}, ""},
		"the last of two here":            {[]string{"", ""}, []end{broken, broken}, "n1"},
		"the first node's, others serve":  {[]string{"", "n2"}, []end{broken, serves}, "n1"},
		"another node's":                  {[]string{"n2", "", "n3"}, []end{broken, serves, broken}, "n2"},
		"refused, as any node's would be": {[]string{"n2", ""}, []end{refused, serves}, ""},
	} {
		r := roster(0)
		for i, node := range c.nodes {
			w := &Worker{Node: node, number: i, left: c.ends[i].left, trouble: c.ends[i].trouble}
			r.Workers = append(r.Workers, w)
		}
		if got := r.blamed(r.Workers[0]); got != c.want {
			t.Errorf("%s: %q is blamed, want %q", name, got, c.want)
		}
	}
}

// The workers of a node share its resources: each has its place among them.
func TestPlace(t *testing.T) {
	t.Parallel()
	r := roster(5, "n1", "n2", "n2", "n3", "n2")
	for i, want := range [][2]int{{0, 1}, {0, 3}, {1, 3}, {0, 1}, {2, 3}} {
		if at, of := r.Place(r.Workers[i]); at != want[0] || of != want[1] {
			t.Errorf("worker %d is number %d of %d, want %d of %d", i, at, of, want[0], want[1])
		}
	}
}

// A worker that dies is restarted, with increasing delays on another node, until it has died four times in a row. A
// registration in between resets the count.
func TestRestarts(t *testing.T) {
	t.Parallel()
	const often = ": died, 4 times in a row without having registered"
	for name, c := range map[string]struct {
		node      string
		registers bool
		starts    []float64
		lost      string
	}{
		"here":               {"", false, []float64{0, 1, 2, 3}, "node n1" + often},
		"on another node":    {"n2", false, []float64{0, 1, 3, 7}, "node n2" + often},
		"registers":          {"", true, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, ""},
		"registers far away": {"n2", true, []float64{0, 1, 3, 5, 7, 9}, ""},
	} {
		r := roster(1)
		w := r.Workers[0]
		w.Node = c.node
		var starts []float64
		lost := ""
		for now := 0.0; now < 10; now += 0.5 {
			for range r.Due(at(now)) {
				starts = append(starts, now)
				w.Start()
				if len(r.Due(at(now+100))) != 0 {
					t.Errorf("%s: it is due, and runs", name)
				}
				if c.registers {
					w.Register(at(now))
				}
				if l := r.Die(w, "died"); l != nil {
					lost = l.String()
				}
			}
		}
		if !slices.Equal(starts, c.starts) || lost != c.lost {
			t.Errorf("%s: started at %v, lost %q; want %v, %q", name, starts, lost, c.starts, c.lost)
		}
	}
}

// A pilot is idle when all of its workers have been idle for as long as the order allows since their latest
// registration.
func TestIdle(t *testing.T) {
	t.Parallel()
	idle := func(w *Worker, now float64) { w.Idle(at(now).Sub(at(0)), at(now)) } // since the start
	for name, c := range map[string]struct {
		do   func(a, b *Worker)
		now  float64
		want bool
	}{
		"started again":                   {func(a, b *Worker) { a.Start(); idle(a, 11); idle(b, 11) }, 11, false},
		"for long":                        {func(a, b *Worker) { idle(a, 11); idle(b, 11) }, 11, true},
		"for just as long":                {func(a, b *Worker) { idle(a, 10); idle(b, 10) }, 10, true},
		"one works":                       {func(a, b *Worker) { idle(a, 11); b.Idle(0, at(11)) }, 11, false},
		"registered again":                {func(a, b *Worker) { a.Register(at(5)); idle(a, 11); idle(b, 11) }, 11, false},
		"one works, dispatcher away long": {func(a, b *Worker) { idle(a, 1); b.Idle(0, at(1)) }, 400, false},
		"dispatcher silent":               {func(a, b *Worker) { idle(a, 11); idle(b, 11) }, 14, true},
		"dispatcher away":                 {func(a, b *Worker) { idle(a, 11); idle(b, 11) }, 20, false},
		"dispatcher away long":            {func(a, b *Worker) { idle(a, 1); idle(b, 1) }, 311, true},
		"one has left":                    {func(a, b *Worker) { a.done = true; idle(b, 11) }, 11, true},
		"all have left":                   {func(a, b *Worker) { a.done, b.done = true, true }, 11, false},
	} {
		r := roster(2)
		for _, w := range r.Workers {
			w.Start()
			w.Register(at(0))
		}
		c.do(r.Workers[0], r.Workers[1])
		if got := r.idle(at(c.now)); got != c.want {
			t.Errorf("%s: idle %v, want %v", name, got, c.want)
		}
	}
	r := NewRoster("t", jobfiles.PilotOrder{Shape: corral.Shape{Hosts: 1}}, nil, "n1")
	r.Workers[0].Start()
	r.Workers[0].Register(at(0))
	idle(r.Workers[0], 1000)
	if r.idle(at(1000)) {
		t.Error("a pilot without a limit is idle")
	}
}

// A worker that reports trouble serves no longer; a worker that has left in good order did its part.
func TestServing(t *testing.T) {
	t.Parallel()
	r := roster(3)
	if got := r.Remaining(); got != "3 of 3 hosts are left" {
		t.Errorf("at the start %s", got)
	}
	r.Leave(r.Workers[0], LeftUnable, "disk")
	r.Leave(r.Workers[1], LeftDrained, "")
	if got := r.Remaining(); got != "2 of 3 hosts are left" {
		t.Errorf("after one has failed %s", got)
	}
}
