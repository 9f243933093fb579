package process

import (
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/decide/attempt"
)

// A Group is the children of this process. It starts them, hears all of them in one channel, notices their ends, and
// kills what those leave behind. Its methods belong to one goroutine, which receives from Heard and calls the others
// between; all of them take what there is and return at once, except End.
type Group struct {
	children []*Child
	dirty    bool      // a child has ended, and may have left strays
	lookedAt time.Time // when KillHung last looked

	heard chan Said
	done  chan struct{} // closed when nothing receives from heard any longer
	ears  sync.WaitGroup
}

// Said is one word of a child; a nil Word says that no more will come.
type Said struct {
	By   *Child
	Word *Word
}

// NewGroup returns a group without children. Its owner must call End.
func NewGroup() *Group { return &Group{heard: make(chan Said), done: make(chan struct{})} }

// Start starts a worker process on this node, which holds the files in held open.
func (g *Group) Start(o Order, held ...*os.File) (*Child, error) {
	return g.add(startChild(o, held...))
}

// StartFar starts a host on another node. Its first word is a Hello, to which the owner answers with a HostOrder.
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

// Heard delivers what the children say. Each of it must be given to Note.
func (g *Group) Heard() <-chan Said { return g.heard }

// Note records that a child has spoken, and keeps its last word. What the owner found wrong with the child before, so
// that it asked it to leave, is not replaced by the child's own good-bye. It reports whether there is a word.
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

// Collect reaps what has ended and returns the children of which nothing more will come. They leave the group.
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

// KillHung kills the children that have not said a word for too long, and returns them; local is the limit for a worker
// of this node. A worker that is stopped, or hangs, does not kill its tasks when its lease is over, and soon after that
// the dispatcher gives them to others.
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

// Beat lets hosts hear that their supervisor is there.
func (g *Group) Beat(now time.Time) {
	for _, c := range g.children {
		if c.far != nil && !c.ended && now.Sub(c.far.beatAt) >= WordGap {
			c.far.beatAt = now
			c.Tell(Ask{})
		}
	}
}

// KillStrays kills what ended children have left behind, and reports whether nothing of that is there. Until then no
// worker may start in their place: the tasks of a dead worker, which still run, must not meet themselves being done
// again.
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

// Empty reports whether there is neither a child nor, as far as KillStrays knows, anything that one left.
func (g *Group) Empty() bool { return len(g.children) == 0 && !g.dirty }

// Tell sends an ask to all children.
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

// End kills every process that descends from this one, and waits for what listens to the children. It returns the
// processes that could not be killed.
func (g *Group) End() (left []int) {
	close(g.done)
	for _, c := range g.children {
		c.close()
	}
	g.ears.Wait()
	return EndDescendants()
}
