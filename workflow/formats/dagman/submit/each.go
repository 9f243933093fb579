package submit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// A Var is a macro that is given to a description from outside.
type Var struct{ Name, Value string }

// Given is what a description is told of the node that it is obeyed for.
type Given struct {
	Vars    []Var  // before the description
	Append  []Var  // before each queue statement, over what the description says
	Cluster int    // the number of the cluster of jobs
	Most    int    // how many jobs there may be at most, of all descriptions; 0: any number
	Taken   int    // how many of them there are
	Left    *int64 // how many bytes may still be charged, for this description and others

	// Open opens the file that queue … from FILE names.
	Open Source
}

// A Job is one job of a description. It is valid until the function that got it returns.
type Job struct {
	macros macros
	at     workflow.Place
	left   *int64
	Step   int // which job of the description it is, from 0
}

// At is the place of the job's queue statement.
func (j *Job) At() workflow.Place { return j.at }

// Value returns the value of the first of several commands that is given; names are in lower case. matched says
// that the value holds a $$(…), which would be replaced when the job meets a machine.
func (j *Job) Value(names ...string) (value string, matched bool, err error) {
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

// Charge counts bytes that are kept of a job, or were looked at for it. A description of a megabyte may be that of a
// million nodes.
func (j *Job) Charge(bytes int) error {
	if *j.left -= int64(bytes); *j.left < 0 {
		return errors.New("the values of all jobs together are longer than the workflow may be")
	}
	return nil
}

// An obedience is one pass through a description.
type obedience struct {
	d     *Description
	given *Given
	job   Job
	each  func(*Job) error
	skips []skip // of the if statements that are open
}

// A skip says how far the statements of an if statement are obeyed.
type skip int

const (
	obeyed skip = iota // this branch is
	undecided
	decided // a branch before this was
)

// statementBytes is what obeying a statement, keeping or replacing a macro, or taking an item of a list is charged as,
// so that time is bounded, too: half a billion of them take a minute or two.
const statementBytes = 4

// Each obeys the description and calls each for each of its jobs. A description without a queue statement has one job.
// Errors have kind Invalid and name the line, but for those of each, which end it.
func (d *Description) Each(given Given, each func(*Job) error) error {
	o := &obedience{d: d, given: &given, each: each, job: Job{
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

// branch decides whether the statements that follow s are obeyed. skips is the state with s; all ifs around it count.
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

// holds evaluates the condition of an if.
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
	return false, s.at.Errorf("the condition %.40q is not read: true, false, a number or defined NAME", s.value)
}

// version is the one of HTCondor that descriptions are read as by.
var version = []int{23, 9, 6}

// atVersion compares version with what follows the word version in a condition, >= 8.1.6 say.
func atVersion(comparison string) (bool, error) {
	end := strings.IndexFunc(comparison, func(r rune) bool { return !strings.ContainsRune("<>=!", r) })
	if end <= 0 {
		return false, fmt.Errorf("the condition version %.40s is not read: version >= 8.1.6", comparison)
	}
	var than []int
	for _, part := range strings.Split(strings.TrimSpace(comparison[end:]), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false, fmt.Errorf("%.40q is no version", comparison[end:])
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
