package submit

import (
	"errors"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// queue creates the jobs of a queue statement, and calls each for them.
func (o *obedience) queue(s *statement) error {
	q, err := o.parseQueue(s)
	if err != nil {
		return err
	}
	if most := o.given.Most; most > 0 && len(q.items)*q.count > most-o.given.Taken-o.job.step {
		return s.at.Errorf("the workflow has more than %d tasks", most) // before the first job is created
	}
	if err := o.job.Charge(statementBytes * (len(o.job.macros) + len(o.given.Append))); err != nil {
		return s.at.Errorf("%w", err)
	}
	saved := maps.Clone(o.job.macros)
	o.set(o.given.Append)
	o.job.at = s.at
	for row, item := range q.items {
		if err := o.job.Charge(statementBytes*(1+len(q.vars)) + len(item)); err != nil {
			return s.at.Errorf("%w", err)
		}
		q.assign(o.job.macros, item)
		for step := range q.count {
			process := strconv.Itoa(o.job.step)
			o.job.macros["process"], o.job.macros["procid"] = process, process
			o.job.macros["step"] = strconv.Itoa(step)
			o.job.macros["row"] = strconv.Itoa(row)
			o.job.macros["itemindex"] = o.job.macros["row"]
			if err := o.each(&o.job); err != nil {
				return err
			}
			o.job.step++
		}
	}
	o.job.macros = saved
	return nil
}

// A queue is the contents of a queue statement, which creates count jobs for each item.
type queue struct {
	count int
	vars  []string // names of the macros for the parts of an item
	items []string
}

// parseQueue parses the text after queue: [COUNT] [VAR[,VAR]…] [in LIST | from LIST | from FILE].
func (o *obedience) parseQueue(s *statement) (queue, error) {
	q := queue{count: 1, items: []string{""}}
	text, _, err := o.job.expand(s.value)
	if err != nil {
		return q, s.at.Errorf("queue: %w", err)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(words) > 0 {
		if n, err := strconv.Atoi(words[0]); err == nil {
			q.count, words = n, words[1:]
		}
	}
	if q.count < 0 || q.count > workflow.DefaultMaxTasks {
		return q, s.at.Errorf("queue %d: want 0 to %d jobs", q.count, workflow.DefaultMaxTasks)
	}
	for i, word := range words {
		switch strings.ToLower(word) {
		case "in":
			q.vars, q.items = words[:i], words[i+1:]
			if s.rows != nil {
				q.items, err = o.words(s)
			}
			return q.named(s, err)
		case "from":
			q.vars = words[:i]
			q.items, err = o.rows(s, strings.Join(words[i+1:], " "))
			return q.named(s, err)
		case "matching":
			return q, s.at.Errorf("queue … matching is not supported, because it depends on the contents of the " +
				"folder: name the files with queue … in or queue … from")
		}
	}
	if len(words) > 0 || s.rows != nil {
		return q, s.at.Errorf("queue %.40q is not supported: use queue [COUNT] [VARS in LIST | VARS from LIST]", text)
	}
	return q, nil
}

// named checks the names of the macros for the parts of items, and converts them to lower case. The default is the
// single name item.
func (q queue) named(s *statement, err error) (queue, error) {
	for i, name := range q.vars {
		if !IsName(name) {
			return q, s.at.Errorf("queue: %.40q is not a valid macro name", name)
		}
		q.vars[i] = strings.ToLower(name)
	}
	if len(q.vars) == 0 {
		q.vars = []string{"item"}
	}
	return q, err
}

// words returns the items of a list in which items are separated by blanks or commas.
func (o *obedience) words(s *statement) ([]string, error) {
	list, _, err := o.job.expand(strings.Join(s.rows, " "))
	if err != nil {
		return nil, s.at.Errorf("queue: %w", err)
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }), nil
}

// rows returns the items of a list with one item per line, which is in the statement itself or in a file.
func (o *obedience) rows(s *statement, file string) ([]string, error) {
	if s.rows != nil {
		return s.rows, nil
	}
	if file == "" || strings.HasSuffix(file, "|") {
		return nil, s.at.Errorf("queue … from %s is not supported: it needs a file, or a list in parentheses", file)
	}
	lines, closer, err := o.given.Open(file, s.at)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	var rows []string
	for {
		row, err := lines.physical()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if len(rows) == workflow.DefaultMaxTasks {
			return nil, lines.Here().Errorf("the list has more than %d items", workflow.DefaultMaxTasks)
		}
		if row != "" {
			rows = append(rows, row)
		}
	}
}

// assign sets the macros of q to the parts of an item: each macro to one word, except the last one, which gets the
// rest.
func (q *queue) assign(m macros, item string) {
	for i, name := range q.vars {
		part := item
		if i < len(q.vars)-1 {
			part = item
			if end := strings.IndexAny(item, ", \t"); end >= 0 {
				part = item[:end]
			}
			item = strings.TrimLeft(item[len(part):], " \t")
			item = strings.TrimLeft(strings.TrimPrefix(item, ","), " \t")
		}
		m[name] = strings.TrimSpace(part)
	}
}
