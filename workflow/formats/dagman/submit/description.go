package submit

import (
	"errors"
	"io"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// A Description is a parsed submit description.
type Description struct {
	statements []statement
	Warnings   []workflow.Warning // warnings about ignored commands
}

type kind int

const (
	assign kind = iota
	ifStatement
	elifStatement
	elseStatement
	endifStatement
	queueStatement
)

// A statement is one line of a description, or several lines if it contains a list or a value of several lines.
type statement struct {
	kind  kind
	name  string   // of assign: name in lower case; attribute names begin with "my."
	value string   // value of assign; condition of if and elif; text after queue
	own   bool     // of assign: the value refers to the macro that is assigned
	rows  []string // of queue: the list in parentheses; nil: none
	at    workflow.Place
}

// A Source is a function that opens a file that a description names, for example in an include statement.
type Source func(name string, at workflow.Place) (*Lines, io.Closer, error)

// Limits of a description. The number of statements is limited because the time for each job of a description is
// proportional to it.
const (
	maxStatements = 100_000
	maxIncludes   = 20
)

// Parse parses a description up to the end of the text. Errors have kind Invalid and name the line.
func Parse(lines *Lines, source Source) (*Description, error) {
	d, _, err := ParseTo(lines, "", source)
	return d, err
}

// ParseTo parses a description up to a line that begins with the word given by end, and returns the rest of that line.
func ParseTo(lines *Lines, end string, source Source) (d *Description, rest string, err error) {
	d = &Description{}
	rest, err = d.parse(lines, end, source, 0)
	if err == nil {
		err = d.checkIfs(lines.Here())
	}
	return d, rest, err
}

func (d *Description) parse(lines *Lines, end string, source Source, depth int) (rest string, err error) {
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF) && end == "":
			return "", nil
		case errors.Is(err, io.EOF):
			return "", lines.Here().Errorf("the submit description has no end, a line %s", end)
		case err != nil:
			return "", err
		case len(d.statements) == maxStatements:
			return "", line.At.Errorf("the submit description has more than %d statements", maxStatements)
		}
		if word, rest := cutWord(line.Text); end != "" && word == end {
			return rest, nil
		}
		if file, ok := included(line.Text); ok {
			if err := d.include(file, line.At, source, depth+1); err != nil {
				return "", err
			}
			continue
		}
		if err := d.statement(line, lines); err != nil {
			return "", err
		}
	}
}

// included returns the file named by an include statement.
func included(text string) (file string, ok bool) {
	word, rest := cutWord(text)
	if !strings.EqualFold(word, "include") {
		before, after, colon := strings.Cut(text, ":")
		return strings.TrimSpace(after), colon && strings.EqualFold(strings.TrimSpace(before), "include")
	}
	_, file, ok = strings.Cut(rest, ":")
	if fields := strings.Fields(rest); ok && fields[0] != ":" && !strings.HasPrefix(fields[0], ":") {
		file = "" // include command : …, include ifexist : …
	}
	return strings.TrimSpace(file), ok
}

func (d *Description) include(file string, at workflow.Place, source Source, depth int) error {
	if file == "" || strings.HasSuffix(file, "|") || strings.Contains(file, "$(") {
		return at.Errorf("only include : FILE is supported, not the output of commands")
	}
	if depth > maxIncludes {
		return at.Errorf("more than %d submit descriptions are nested by include", maxIncludes)
	}
	lines, closer, err := source(file, at)
	if err != nil {
		return err
	}
	defer closer.Close()
	_, err = d.parse(lines, "", source, depth)
	return err
}

// statement parses the statement that begins with line.
func (d *Description) statement(line Line, lines *Lines) error {
	word, rest := cutWord(line.Text)
	s := statement{value: rest, at: line.At}
	switch lower := strings.ToLower(word); lower {
	case "if":
		s.kind = ifStatement
	case "elif":
		s.kind = elifStatement
	case "else":
		s.kind = elseStatement
	case "endif":
		s.kind = endifStatement
	case "queue":
		s.kind = queueStatement
		if err := s.list(lines); err != nil {
			return err
		}
	case "use":
		d.Warnings = append(d.Warnings, workflow.Warning{Place: s.at, Message: "use " + rest + " is ignored"})
		return nil
	default:
		return d.assignment(line, lines)
	}
	d.statements = append(d.statements, s)
	return nil
}

// assignment parses NAME = VALUE, or NAME @=TAG; in the latter case the value consists of the lines up to @TAG.
func (d *Description) assignment(line Line, lines *Lines) error {
	name, value, ok := strings.Cut(line.Text, "=")
	name, tagged := strings.CutSuffix(strings.TrimSpace(name), "@")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	attribute := strings.TrimPrefix(name, "+")
	if !ok || !IsName(attribute) {
		return line.At.Errorf("%.40q is not a command of a submit description: use NAME = VALUE or queue", line.Text)
	}
	if attribute != name {
		name = "my." + attribute
	}
	if tagged {
		var err error
		if value, err = tail(lines, "@"+value); err != nil {
			return err
		}
	}
	s := statement{name: strings.ToLower(name), value: value, own: ownIndex(name, value) >= 0, at: line.At}
	d.statements = append(d.statements, s)
	return nil
}

// tail returns the lines up to a line that equals end.
func tail(lines *Lines, end string) (string, error) {
	at := lines.Here()
	var text strings.Builder
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return "", at.Errorf("the value has no end, a line %s", end)
		case err != nil:
			return "", err
		case line.Text == end:
			return strings.TrimSuffix(text.String(), "\n"), nil
		case text.Len() > maxValueBytes:
			return "", at.Errorf("the value is longer than 1 MiB")
		}
		text.WriteString(line.Text + "\n")
	}
}

// list parses the list of a queue statement if the list is in parentheses. It may be on the same line or on the
// following lines.
func (s *statement) list(lines *Lines) error {
	before, inside, ok := strings.Cut(s.value, "(")
	if !ok || strings.HasSuffix(before, "$") {
		return nil
	}
	s.value, s.rows = strings.TrimSpace(before), []string{}
	if row, closed := strings.CutSuffix(inside, ")"); closed {
		s.rows = append(s.rows, strings.TrimSpace(row))
		return nil
	}
	if inside != "" {
		s.rows = append(s.rows, strings.TrimSpace(inside))
	}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return s.at.Errorf("the list of queue has no end, a line )")
		}
		if err != nil {
			return err
		}
		row, closed := strings.CutSuffix(line.Text, ")")
		if row = strings.TrimSpace(row); row != "" {
			s.rows = append(s.rows, row)
		}
		if closed {
			return nil
		}
	}
}

// checkIfs returns an error if the if statements are not balanced; here is the end of the text.
func (d *Description) checkIfs(here workflow.Place) error {
	var open []kind // the last branch of each open if
	for _, s := range d.statements {
		last := len(open) - 1
		switch s.kind {
		case ifStatement:
			open = append(open, ifStatement)
		case elifStatement, elseStatement:
			if last < 0 || open[last] == elseStatement {
				return s.at.Errorf("this else or elif belongs to no if")
			}
			open[last] = s.kind
		case endifStatement:
			if last < 0 {
				return s.at.Errorf("this endif belongs to no if")
			}
			open = open[:last]
		}
	}
	if len(open) > 0 {
		return here.Errorf("an if has no endif")
	}
	return nil
}

// cutWord returns the first word of text and the rest of the text.
func cutWord(text string) (word, rest string) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(text[i:])
}
