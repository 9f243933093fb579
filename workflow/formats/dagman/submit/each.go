package submit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// A Var is a macro that the caller passes to a description.
type Var struct{ Name, Value string }

// Given holds the data of the node for which a description is executed.
type Given struct {
	Vars    []Var  // macros set before the description
	Append  []Var  // macros set before each queue statement, overriding the description
	Cluster int    // number of the job cluster
	Most    int    // maximum number of jobs of all descriptions; 0: unlimited
	Taken   int    // number of these jobs that already exist
	Left    *int64 // remaining budget of bytes, for this description and others

	// Open opens the file that queue … from FILE names.
	Open Source
}

// A Proc is one job of a description. It is valid only until the function to which it was passed returns.
type Proc struct {
	macros macros
	at     workflow.Place
	left   *int64
	step   int // index of the job in the description, from 0
}

// At returns the place of the job's queue statement.
func (j *Proc) At() workflow.Place { return j.at }

// Value returns the value of the first of the named commands that the description contains, or "" if it contains none;
// names are in lower case. matched reports whether the value contains a $$(…), which would be replaced when the job is
// matched with a machine.
func (j *Proc) Value(names ...string) (value string, matched bool, err error) {
	for _, name := range names {
		if text, ok := j.macros[name]; ok {
			value, matched, err = j.expand(text)
			if err != nil {
				return "", false, j.at.Errorf("%s: %w", name, err)
			}
			return strings.TrimSpace(value), matched, nil
		}
	}
	return "", false, nil
}

// Charge deducts bytes that are stored or examined for a job from the budget. The budget is necessary because a
// description of a megabyte may belong to a million nodes.
func (j *Proc) Charge(bytes int) error {
	if *j.left -= int64(bytes); *j.left < 0 {
		return errors.New("the values of all jobs together exceed the size limit of a workflow")
	}
	return nil
}

// An obedience is the state of one execution of a description.
type obedience struct {
	d     *Description
	given *Given
	job   Proc
	each  func(*Proc) error
	skips []skip // states of the open if statements
}

// A skip is the state of an if statement.
type skip int

const (
	obeyed skip = iota // the current branch is executed
	undecided
	decided // an earlier branch was executed
)

// statementBytes is the number of bytes charged for executing a statement, storing or replacing a macro, or processing
// an item of a list, so that the time is also bounded: half a billion such steps take a minute or two.
const statementBytes = 4

// Each executes the description and calls the function each for every job. A description without a queue statement has
// one job. Errors have kind Invalid and name the line. An error of the function each stops the execution, and is
// returned unchanged.
func (d *Description) Each(given Given, each func(*Proc) error) error {
	o := &obedience{d: d, given: &given, each: each, job: Proc{
		macros: make(macros, len(d.statements)+len(given.Vars)), left: given.Left,
	}}
	o.set(given.Vars)
	cluster := strconv.Itoa(given.Cluster)
	o.job.macros["cluster"], o.job.macros["clusterid"] = cluster, cluster
	queued := false
	for i := range d.statements {
		s := &d.statements[i]
		queued = queued || s.kind == queueStatement
		if err := o.job.Charge(statementBytes); err != nil {
			return s.at.Errorf("%w", err)
		}
		if err := o.statement(s); err != nil {
			return err
		}
	}
	if !queued {
		end := statement{kind: queueStatement}
		if len(d.statements) > 0 {
			end.at = d.statements[len(d.statements)-1].at
		}
		return o.queue(&end)
	}
	return nil
}

func (o *obedience) set(vars []Var) {
	for _, v := range vars {
		o.job.macros[strings.ToLower(v.Name)] = v.Value
	}
}

func (o *obedience) statement(s *statement) error {
	last := len(o.skips) - 1
	switch s.kind {
	case ifStatement:
		return o.branch(s, append(o.skips, undecided))
	case elifStatement, elseStatement:
		if o.skips[last] == obeyed {
			o.skips[last] = decided
		}
		return o.branch(s, o.skips)
	case endifStatement:
		o.skips = o.skips[:last]
		return nil
	}
	if last >= 0 && o.skips[last] != obeyed {
		return nil
	}
	if s.kind == queueStatement {
		return o.queue(s)
	}
	value, err := s.value, error(nil)
	if s.own {
		value, err = withOwn(s.name, s.value, o.job.macros[s.name])
	}
	switch {
	case len(value) > maxValueBytes:
		err = errLongValue
	case err == nil && s.own:
		err = o.job.Charge(len(s.value) + len(value))
	}
	if err != nil {
		return s.at.Errorf("%s: %w", s.name, err)
	}
	o.job.macros[s.name] = value
	return nil
}

// branch determines whether the statements after s are executed. skips contains the states of all enclosing if
// statements, including the if statement to which s belongs.
func (o *obedience) branch(s *statement, skips []skip) error {
	o.skips = skips
	last := len(skips) - 1
	if last > 0 && skips[last-1] != obeyed {
		skips[last] = decided
	}
	if skips[last] != undecided {
		return nil
	}
	if s.kind != elseStatement {
		holds, err := o.holds(s)
		if err != nil || !holds {
			return err
		}
	}
	skips[last] = obeyed
	return nil
}

// holds evaluates the condition of an if or elif statement.
func (o *obedience) holds(s *statement) (bool, error) {
	text := strings.TrimSpace(s.value)
	not := false
	for strings.HasPrefix(text, "!") {
		text, not = strings.TrimSpace(text[1:]), !not
	}
	if err := o.job.Charge(len(s.value) - len(text)); err != nil {
		return false, s.at.Errorf("%w", err)
	}
	if word, rest := cutWord(text); strings.EqualFold(word, "defined") {
		name, _, err := o.job.expand(rest)
		if err != nil {
			return false, s.at.Errorf("%w", err)
		}
		return (o.job.macros[strings.ToLower(name)] != "") != not, nil
	}
	value, _, err := o.job.expand(text)
	if err != nil {
		return false, s.at.Errorf("%w", err)
	}
	if word, rest := cutWord(value); strings.EqualFold(word, "version") {
		at, err := atVersion(rest)
		if err != nil {
			return false, s.at.Errorf("%w", err)
		}
		return at != not, nil
	}
	value = strings.TrimSpace(value)
	switch number, err := strconv.ParseFloat(value, 64); {
	case strings.EqualFold(value, "true"), strings.EqualFold(value, "yes"):
		return !not, nil
	case strings.EqualFold(value, "false"), strings.EqualFold(value, "no"), value == "":
		return not, nil
	case err == nil:
		return (number != 0) != not, nil
	}
	return false, s.at.Errorf("the condition %.40q is not supported: use true, false, a number or defined NAME",
		s.value)
}

// version is the HTCondor version whose syntax is implemented.
var version = []int{23, 9, 6}

// atVersion reports whether version satisfies a comparison, which is the text after the word version in a condition,
// for example >= 8.1.6.
func atVersion(comparison string) (bool, error) {
	end := strings.IndexFunc(comparison, func(r rune) bool { return !strings.ContainsRune("<>=!", r) })
	if end <= 0 {
		return false, fmt.Errorf("the condition version %.40s is not supported: use version >= 8.1.6", comparison)
	}
	var than []int
	for _, part := range strings.Split(strings.TrimSpace(comparison[end:]), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false, fmt.Errorf("%.40q is not a version", comparison[end:])
		}
		than = append(than, n)
	}
	order := slices.Compare(version[:min(len(than), len(version))], than)
	switch comparison[:end] {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	case ">=":
		return order >= 0, nil
	case "!=":
		return order != 0, nil
	}
	return order == 0, nil
}
