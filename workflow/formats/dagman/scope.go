package dagman

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// A scope is the state of reading a file of nodes once: the .dag, a splice or a sub-DAG. A file that is spliced in
// twice has two scopes.
type scope struct {
	r      *reader
	holder int    // index of the node whose sub-DAG the file is; none: it is the .dag or a splice
	prefix string // prefix of the full names of its nodes: SPLICE+
	dir    string // its folder, relative to the folder of the .dag

	first, end   int            // range of its nodes, including those of inner scopes
	nodes        map[string]int // indices of its own nodes, by their names in its file
	inner        map[string]*scope
	descriptions map[string]*submit.Description
	final        int           // index of its FINAL node, or none
	pins         map[pin][]int // the nodes at each pin
	waiting      []submit.Line // statements that name undefined items
	ends         [2][]int      // the jobs without parents in it, and those without children in it
	over         bool          // its file has been read to the end
	outer        *scope        // the enclosing scope; nil for the .dag
}

const none = -1

// isSplice reports whether the scope's file is a splice, i.e. part of the enclosing DAG. A splice must not have a FINAL
// node.
func (s *scope) isSplice() bool { return s.outer != nil && s.holder == none }

// newScope returns a new scope inside outer, which is nil for the .dag; name is the name of the splice or sub-DAG, and
// dir is its folder.
func (r *reader) newScope(outer *scope, name, dir string) *scope {
	s := &scope{
		r: r, outer: outer, dir: dir, first: len(r.nodes), final: none, holder: none,
		nodes: make(map[string]int), inner: make(map[string]*scope),
		descriptions: make(map[string]*submit.Description), pins: make(map[pin][]int),
	}
	if outer != nil {
		s.prefix = outer.prefix + name + "+"
	}
	return s
}

// read reads the scope's file, and then processes the deferred statements.
func (s *scope) read(lines *submit.Lines) error {
	if s.r.scopes++; s.r.scopes > maxScopes {
		return lines.Here().Errorf("more than %d splices and sub-DAGs", maxScopes)
	}
	if err := s.lines(lines); err != nil {
		return err
	}
	s.over, s.end = true, len(s.r.nodes)
	for _, line := range s.waiting {
		if err := s.statement(line, lines); err != nil {
			return err
		}
	}
	s.waiting = nil
	if err := s.endWithFinal(); err != nil {
		return err
	}
	s.ends[firsts] = s.those(func(n *node) bool { return !n.hasParent })
	s.ends[lasts] = s.those(func(n *node) bool { return !n.hasChild })
	return nil
}

// lines processes the lines of a file, which is the scope's own file or an included file.
func (s *scope) lines(lines *submit.Lines) error {
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.statement(line, lines)
		}
		if err != nil {
			return err
		}
	}
}

// An unknownError reports that a statement names an item that is not yet defined.
type unknownError struct{ what, name string }

func (e *unknownError) Error() string { return fmt.Sprintf("there is no %s %q", e.what, e.name) }

// statement processes one line. A line is deferred if it names an item that may still be defined later. Subsequent
// statements that may refer to such items are then also deferred, because the last of several statements about the same
// item applies.
func (s *scope) statement(line submit.Line, lines *submit.Lines) error {
	words := fields{text: line.Text}
	word := words.next()
	do, ok := s.r.statements[keyword(word)]
	if !ok {
		return line.At.Errorf("%.40q is not a DAGMan statement", word)
	}
	if do.waits && len(s.waiting) > 0 && !s.over {
		s.waiting = append(s.waiting, line)
		return nil
	}
	err := do.obey(s, &statement{line, strings.ToUpper(word), &words, lines})
	var placed *corral.Error
	var unknown *unknownError
	switch {
	case err == nil || errors.As(err, &placed): // the error is about a line of another file
		return err
	case errors.As(err, &unknown) && !s.over:
		s.waiting = append(s.waiting, line)
		return nil
	case unknown != nil, errors.As(err, new(*syntaxError)):
		return line.At.Errorf("%s: %w", strings.ToUpper(word), err)
	}
	return err
}

// enter opens a nested file and adds it to the stack.
func (s *scope) enter(name string, at workflow.Place) (*submit.Lines, io.Closer, error) {
	f := s.r.files
	for i, outer := range f.stack {
		if outer == name {
			return nil, nil, at.Errorf("the files form a cycle: %s -> %s", strings.Join(f.stack[i:], " -> "), name)
		}
	}
	if len(f.stack) == maxNested {
		return nil, nil, at.Errorf("more than %d files are nested", maxNested)
	}
	lines, closer, err := f.open(name)
	if err != nil {
		return nil, nil, at.Errorf("%s: %w", f.called(name), reason(err))
	}
	f.stack = append(f.stack, name)
	if f.seen[name] && f.repeats == 0 {
		f.repeats = len(f.stack)
	}
	f.seen[name] = true
	if err := f.repeat(at); err != nil {
		s.leave(closer)
		return nil, nil, err
	}
	return lines, closer, nil
}

func (s *scope) leave(closer io.Closer) {
	_ = closer.Close()
	f := s.r.files
	if f.stack = f.stack[:len(f.stack)-1]; len(f.stack) < f.repeats {
		f.repeats = 0
	}
}

var errNoFile = errors.New("no such file")

var errAbsent = &fs.PathError{Op: "open", Err: fs.ErrNotExist}

// reason returns the reason why a file could not be opened, without the file's name, which precedes the reason in
// messages.
func reason(err error) error {
	var notRegular *input.NotRegularError
	var pathError *fs.PathError
	switch {
	case errors.As(err, &notRegular):
		return notRegular
	case errors.Is(err, fs.ErrNotExist):
		return errNoFile
	case errors.As(err, &pathError):
		return pathError.Err
	}
	return err
}

// node returns the index of the node to which a name in this scope's file refers.
func (s *scope) node(name string) (int, error) {
	if i, ok := s.nodes[name]; ok {
		return i, nil
	}
	return 0, &unknownError{"node", name}
}

// fullNode is like node, but the name may consist of the names of splices and a node, separated by plus signs.
func (s *scope) fullNode(name string) (int, error) {
	if head, rest, ok := strings.Cut(name, "+"); ok && s.inner[head] != nil {
		return s.inner[head].fullNode(rest)
	}
	return s.node(name)
}

// The two ends of a scope. Its last jobs become the parents of the scope's children, and its first jobs become the
// children of the scope's parents. Both ends are known once the scope's file has been read, and no edge from outside
// changes them.
const (
	firsts = iota
	lasts
)

// those returns the jobs of the scope and of its inner scopes that satisfy a condition.
func (s *scope) those(is func(*node) bool) []int {
	var all []int
	for i := s.first; i < s.end; i++ {
		if n := &s.r.nodes[i]; n.sub == nil && is(n) {
			all = append(all, i)
		}
	}
	return all
}

// endWithFinal orders the FINAL node after all others.
func (s *scope) endWithFinal() error {
	if s.final == none {
		return nil
	}
	lasts := s.those(func(n *node) bool { return !n.hasChild && n != &s.r.nodes[s.final] })
	return s.r.order(lasts, []int{s.final}, s.r.nodes[s.final].at)
}

// order makes each of the given parents a parent of each of the given children.
func (r *reader) order(parents, children []int, at workflow.Place) error {
	if len(parents)*len(children) > maxEdges-len(r.edges) {
		return at.Errorf("the DAG has more than %d edges", maxEdges)
	}
	for _, p := range parents {
		for _, c := range children {
			r.edges = append(r.edges, [2]int32{int32(p), int32(c)})
			r.nodes[c].hasParent = true
		}
		r.nodes[p].hasChild = r.nodes[p].hasChild || len(children) > 0
	}
	return nil
}
