package dagman

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// obeyJob processes JOB NAME FILE|{…} [DIR FOLDER] [NOOP] [DONE].
func obeyJob(s *scope, st *statement) error {
	n, name, err := st.newNode(s, "the submit description")
	if err != nil {
		return err
	}
	if strings.HasSuffix(n.file, ".condor.sub") {
		return wrong("%s was made from a DAG: use SUBDAG EXTERNAL to run it", n.file)
	}
	return s.define(n, name)
}

// obeyFinal processes FINAL, which is a JOB that runs at the end.
func obeyFinal(s *scope, st *statement) error {
	n, name, err := st.newNode(s, "the submit description")
	if err != nil {
		return err
	}
	switch {
	case s.isSplice():
		return wrong("a splice cannot have a FINAL node")
	case s.final != none:
		return wrong("there is another FINAL node (%s)", s.r.nodes[s.final].at)
	case n.control != nil && n.control.Done:
		return wrong("a FINAL node cannot be DONE")
	}
	n.controls().Final = true
	s.final = len(s.r.nodes)
	return s.define(n, name)
}

// newNode reads the common part of statements that define nodes; what describes the file in errors.
func (st *statement) newNode(s *scope, what string) (n node, name string, err error) {
	n = node{at: st.At, dir: s.dir}
	if name, err = st.words.word("the node's name"); err != nil {
		return n, "", err
	}
	if n.file = st.words.file(); n.file == "" {
		return n, "", wrong("%s is missing", what)
	}
	if end := inlineEnd(n.file); end != "" {
		n.file = ""
		if n.description, err = st.inline(s, end); err != nil {
			return n, "", err
		}
	}
	for word := st.words.next(); word != ""; word = st.words.next() {
		switch strings.ToUpper(word) {
		case "DIR":
			folder := st.words.file()
			if folder == "" {
				return n, "", wrong("the folder after DIR is missing")
			}
			n.dir = submit.Join(s.dir, folder)
		case "NOOP":
			n.controls().Noop = true
		case "DONE":
			n.controls().Done = true
		default:
			return n, "", wrong("%.40q is not DIR, NOOP or DONE", word)
		}
	}
	return n, name, nil
}

// inlineEnd returns the word that ends an inline description with the given first word, or "" if it is not an inline
// description.
func inlineEnd(begin string) string {
	if begin == "{" {
		return "}"
	}
	if tag, ok := strings.CutPrefix(begin, "@="); ok && tag != "" {
		return "@" + tag
	}
	return ""
}

// inline reads the description on the following lines. Words after the end of the description continue the statement.
func (st *statement) inline(s *scope, end string) (*submit.Description, error) {
	d, rest, err := submit.ParseTo(st.lines, end, s.r.sourceIn(s.dir))
	st.words.text += " " + rest
	if err == nil {
		s.r.builder.Warnings = append(s.r.builder.Warnings, d.Warnings...)
	}
	return d, err
}

// obeySubmitDescription processes SUBMIT-DESCRIPTION NAME {…}.
func obeySubmitDescription(s *scope, st *statement) error {
	name, err := st.words.word("the description's name")
	if err != nil {
		return err
	}
	end := inlineEnd(st.words.next())
	switch {
	case end == "":
		return wrong("the description is missing: { at the end of the line, and } on one of its own")
	case s.descriptions[name] != nil:
		return wrong("there is another description %q", name)
	}
	if s.descriptions[name], err = st.inline(s, end); err != nil {
		return err
	}
	return st.words.end()
}

// obeySubdag processes SUBDAG EXTERNAL NAME FILE [DIR FOLDER] [NOOP] [DONE]. The nodes of the sub-DAG follow the node
// itself. If the file does not exist, the node becomes a task without a command, because an earlier node may create the
// file.
func obeySubdag(s *scope, st *statement) error {
	if word := st.words.next(); !strings.EqualFold(word, "EXTERNAL") {
		return wrong("%.40q is not EXTERNAL", word)
	}
	n, name, err := st.newNode(s, "the sub-DAG's file")
	if err != nil {
		return err
	}
	if n.description != nil {
		return wrong("the sub-DAG's file is missing")
	}
	if err := s.define(n, name); err != nil || n.skipped() {
		return err
	}
	i := s.nodes[name]
	inner := s.r.newScope(s, name, n.dir)
	inner.holder = i
	lines, closer, err := s.enter(submit.Join(n.dir, n.file), st.At)
	if errors.Is(err, errNoFile) {
		s.r.builder.Warn(st.At, "SUBDAG: %s: no such file; node %q has no command",
			s.r.files.called(submit.Join(n.dir, n.file)), name)
		s.r.nodes[i].file = ""
		return nil
	}
	if err != nil {
		return err
	}
	defer s.leave(closer)
	if err := inner.read(lines); err != nil {
		return err
	}
	if inner.first == inner.end {
		return wrong("%s has no nodes", s.r.files.called(submit.Join(n.dir, n.file)))
	}
	s.r.nodes[i].sub = inner
	return nil
}

// obeySplice processes SPLICE NAME FILE [DIR FOLDER].
func obeySplice(s *scope, st *statement) error {
	name, err := st.words.word("the splice's name")
	if err != nil {
		return err
	}
	file := st.words.file()
	if file == "" {
		return wrong("the splice's file is missing")
	}
	if err := s.unused(name); err != nil {
		return err
	}
	dir := s.dir
	if word := st.words.next(); strings.EqualFold(word, "DIR") {
		dir = submit.Join(dir, st.words.file())
	} else if word != "" {
		return wrong("%.40q is not DIR", word)
	}
	if err := st.words.end(); err != nil {
		return err
	}
	if len(s.prefix)+len(name) > maxPath || len(dir) > maxPath { // also if it has no nodes: each scope stores both
		return wrong("the name or the folder of the splice has more than %d bytes", maxPath)
	}
	inner := s.r.newScope(s, name, dir)
	s.inner[name] = inner
	lines, closer, err := s.enter(submit.Join(dir, file), st.At)
	if err != nil {
		return err
	}
	defer s.leave(closer)
	return inner.read(lines)
}

// obeyInclude processes INCLUDE FILE: the lines of the file are processed in place of the statement.
func obeyInclude(s *scope, st *statement) error {
	file := st.words.file()
	if file == "" {
		return wrong("the file is missing")
	}
	if err := st.words.end(); err != nil {
		return err
	}
	lines, closer, err := s.enter(submit.Join(s.dir, file), st.At)
	if err != nil {
		return err
	}
	defer s.leave(closer)
	return s.lines(lines)
}

// obeyParent processes PARENT NODE… CHILD NODE…; a node may be a splice.
func obeyParent(s *scope, st *statement) error {
	var parents, children []int
	list, at := &parents, lasts
	behind := false // whether CHILD was read
	for word := st.words.next(); word != ""; word = st.words.next() {
		if strings.EqualFold(word, "CHILD") && !behind {
			list, at, behind = &children, firsts, true
			continue
		}
		nodes, err := s.endsOf(word, at)
		if err != nil {
			return err
		}
		*list = append(*list, nodes...)
	}
	if len(parents) == 0 || len(children) == 0 {
		return wrong("a parent or a child is missing: PARENT NODE… CHILD NODE…")
	}
	return s.r.order(unique(parents), unique(children), st.At)
}

func unique(nodes []int) []int {
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// endsOf returns the nodes that a name in a PARENT statement represents: the node itself, or the given end of a splice
// or sub-DAG.
func (s *scope) endsOf(name string, at int) ([]int, error) {
	if inner := s.inner[name]; inner != nil {
		if inner.first == inner.end {
			return nil, wrong("splice %q has no nodes", name)
		}
		return inner.ends[at], nil // if this is empty, its nodes form a cycle, which is refused later
	}
	i, err := s.node(name)
	if err != nil {
		return nil, err
	}
	n := &s.r.nodes[i]
	if n.isFinal() {
		return nil, wrong("FINAL node %q has no parents and no children", name)
	}
	if n.sub != nil {
		return n.sub.ends[at], nil
	}
	return []int{i}, nil
}

// A pin is a point at which nodes of a splice can be connected to nodes of another.
type pin struct {
	out    bool
	number int
}

func obeyPinIn(s *scope, st *statement) error  { return st.pin(s, false) }
func obeyPinOut(s *scope, st *statement) error { return st.pin(s, true) }

// pin processes PIN_IN NODE NUMBER or PIN_OUT NODE NUMBER.
func (st *statement) pin(s *scope, out bool) error {
	return st.target(s, func(n *node) error {
		number, err := st.words.number("the pin's number", 1, most)
		if err != nil {
			return err
		}
		i, _ := s.node(strings.TrimPrefix(n.name, s.prefix))
		p := pin{out, number}
		s.pins[p] = append(s.pins[p], i)
		return nil
	})
}

// obeyConnect processes CONNECT SPLICE SPLICE: nodes at an outgoing pin of the first splice become parents of the nodes
// at the second splice's incoming pin with the same number.
func obeyConnect(s *scope, st *statement) error {
	var pair [2]*scope
	for k := range pair {
		name, err := st.words.word("the splice's name")
		if err != nil {
			return err
		}
		if pair[k] = s.inner[name]; pair[k] == nil || !pair[k].isSplice() {
			return &unknownError{"splice", name}
		}
	}
	from, to := pair[0].pinned(true), pair[1].pinned(false)
	if from == 0 || from != to {
		return wrong("%d pins out of one splice and %d into the other: the numbers must be equal, and pins numbered "+
			"from 1", from, to)
	}
	for number := range from {
		out, in := pair[0].pins[pin{true, number + 1}], pair[1].pins[pin{false, number + 1}]
		if err := s.r.order(out, in, st.At); err != nil {
			return err
		}
	}
	for _, i := range pair[1].ends[firsts] {
		if n := &s.r.nodes[i]; !n.hasParent {
			return wrong("node %q has neither a parent nor a pin into its splice", n.name)
		}
	}
	return st.words.end()
}

// pinned returns the number of pins of the scope in one direction, or 0 if the pins are not numbered consecutively from
// 1.
func (s *scope) pinned(out bool) int {
	count, largest := 0, 0
	for p := range s.pins {
		if p.out == out {
			count, largest = count+1, max(largest, p.number)
		}
	}
	if count != largest {
		return 0
	}
	return count
}

// sourceIn returns a function that opens the files that a submit description names, for nodes that are submitted from
// the given folder.
func (r *reader) sourceIn(dir string) submit.Source {
	return func(name string, at workflow.Place) (*submit.Lines, io.Closer, error) {
		lines, closer, err := r.files.open(submit.Join(dir, name))
		if err != nil {
			return nil, nil, at.Errorf("%s: %w", r.files.called(submit.Join(dir, name)), reason(err))
		}
		return lines, closer, nil
	}
}
