package process

import (
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/decide/attempt"
)

// A Group manages the children of this process. It starts them, merges their words into one channel, detects their
// ends, and kills the processes that they leave behind. Its methods must be called from one goroutine, which also
// receives from Heard; all methods except End return at once.
type Group struct {
	children []*Child
	dirty    bool      // a child has ended, and may have left strays
	lookedAt time.Time // time of the last KillHung

	heard chan Said
	done  chan struct{} // closed when nothing receives from heard any more
	ears  sync.WaitGroup
}

// Said is one word of a child; a nil Word means that no more will follow.
type Said struct {
	By   *Child
	Word *Word
}

// NewGroup returns a group without children. The caller must call End.
func NewGroup() *Group { return &Group{heard: make(chan Said), done: make(chan struct{})} }

// Start starts a worker process on this node, which keeps the files in held open.
func (g *Group) Start(o Order, held ...*os.File) (*Child, error) {
	return g.add(startChild(o, held...))
}

// StartFar starts a host on another node. Its first word is a Hello, to which the caller must reply with a HostOrder.
func (g *Group) StartFar(f Fanout, node string) (*Child, error) { return g.add(startFar(f, node)) }

func (g *Group) add(c *Child, err error) (*Child, error) {
	if err != nil {
		return nil, err
	}
	g.children = append(g.children, c)
	g.ears.Go(func() { c.listen(g.heard, g.done) })
	if c.far != nil {
		g.ears.Go(c.far.listen)
	}
	return c, nil
}

// Heard returns the channel for the words of the children. Each word must be passed to Note.
func (g *Group) Heard() <-chan Said { return g.heard }

// Note records that a child has sent a word, and keeps its last word. If the supervisor has already found a fault and
// asked the child to leave, the child's own last word does not replace the fault. Note reports whether s contains a
// word.
func (g *Group) Note(s Said) bool {
	if s.Word == nil {
		s.By.silent = true
		return false
	}
	s.By.spoken, s.By.quiet = true, 0
	if s.Word.Last() && s.By.Last.Left != attempt.LeftUnable {
		s.By.Last = *s.Word
	}
	return true
}

// Collect reaps children, removes those that are finished from the group, and returns them.
func (g *Group) Collect() (gone []*Child) {
	ended := Reap()
	var there []*Child
	for _, c := range g.children {
		if status, ok := ended[c.PID]; ok {
			c.ended, c.status = true, status
		}
		if !c.gone() {
			there = append(there, c)
			continue
		}
		c.close()
		gone, g.dirty = append(gone, c), true
	}
	g.children = there
	return gone
}

// KillHung kills the children that have been silent for too long, and returns them; local is the limit for a worker on
// this node. A suspended or hanging worker does not kill its tasks when its lease ends, and soon after that the
// dispatcher assigns the tasks to others.
func (g *Group) KillHung(now time.Time, local time.Duration) (hung []*Child) {
	passed := now.Sub(g.lookedAt)
	g.lookedAt = now
	for _, c := range g.children {
		if limit, hangs := c.hangs(passed, local); hangs {
			c.Last = Word{Error: "said nothing for " + limit.String()}
			c.Kill()
			hung = append(hung, c)
		}
	}
	return hung
}

// Beat shows the hosts that their supervisor is running.
func (g *Group) Beat(now time.Time) {
	for _, c := range g.children {
		if c.far != nil && !c.ended && now.Sub(c.far.beatAt) >= WordGap {
			c.far.beatAt = now
			c.Tell(Ask{})
		}
	}
}

// KillStrays kills the processes that ended children have left, and reports whether none remains. Until then no
// replacement may start: the running tasks of a dead worker must not run at the same time as their repetition.
func (g *Group) KillStrays() (none bool) {
	if g.dirty {
		keep := map[int]bool{}
		for _, c := range g.children {
			keep[c.PID] = true
		}
		g.dirty = len(killStrays(keep)) > 0
	}
	return !g.dirty
}

// Empty reports whether the group has no children and, according to KillStrays, no processes of ended children remain.
func (g *Group) Empty() bool { return len(g.children) == 0 && !g.dirty }

// Tell sends a message to all children.
func (g *Group) Tell(a Ask) {
	for _, c := range g.children {
		c.Tell(a)
	}
}

// Kill kills all children.
func (g *Group) Kill() {
	for _, c := range g.children {
		c.Kill()
	}
}

// End kills every descendant of this process, and waits for the goroutines that listen to the children. It returns the
// processes that could not be killed.
func (g *Group) End() (left []int) {
	close(g.done)
	for _, c := range g.children {
		c.close()
	}
	g.ears.Wait()
	return EndDescendants()
}
