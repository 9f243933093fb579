package makeflow

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// A rule is a rule of the file whose command has not been read yet.
type rule struct {
	*fileList
	at       workflow.Place
	category string
}

// nameBytes is the number of bytes charged for each file that variables insert into a rule, in addition to the file's
// name: a list of short names requires far more memory and time than its text suggests.
const nameBytes = 16

// begin processes the first line of a rule.
func (r *reader) begin(text string, l line) error {
	if r.rule != nil {
		return r.rule.at.Errorf("the rule has no command before the next one (%s)", l.at)
	}
	list, err := files(text, r.vars.get)
	switch {
	case err != nil:
		return l.at.Errorf("%w", err)
	case len(list.targets) == 0:
		return l.at.Errorf("the rule has no target")
	}
	r.vars.used += int64(list.names) * nameBytes
	category, _ := r.vars.get("CATEGORY")
	r.rule = &rule{list, l.at, category}
	r.vars.within = true
	return nil
}

// command processes the command line, which ends a rule.
func (r *reader) command(l line) error {
	if r.rule == nil {
		return l.at.Errorf("there is a command without a rule; " +
			"a rule has one command: join several with a semicolon")
	}
	text, err := command(l.text, r.vars.get)
	if err != nil {
		return l.at.Errorf("%w", err)
	}
	for {
		word, rest, _ := strings.Cut(text, " ")
		if word == "MAKEFLOW" {
			return l.at.Errorf("nested makeflows are not supported; convert each of them separately")
		}
		if word != "LOCAL" {
			break
		}
		r.note(l.at, "LOCAL is ignored: the task runs on a worker like the others")
		text = strings.TrimLeft(rest, " ")
	}
	if text == "" {
		return l.at.Errorf("the rule's command is empty")
	}
	if err := r.add(text); err != nil {
		return err
	}
	r.rule, r.vars.own, r.vars.within = nil, nil, false
	r.vars.rule++
	return nil
}

// add creates the task of the current rule, and passes it to the builder.
func (r *reader) add(text string) error {
	at := r.rule.at
	t := workflow.Task{ID: r.id(), Argv: []string{"/bin/sh", "-c", text}, Name: r.name(text)}
	for _, f := range r.rule.targets {
		f = path.Clean(f)
		if other, ok := r.targets[f]; ok && other.at != at {
			return at.Errorf("file %q is a target of two rules (%s)", f, other.at)
		}
		r.targets[f] = target{t.ID, at}
		t.Outputs = append(t.Outputs, f)
	}
	for _, f := range r.rule.sources {
		f = path.Clean(f)
		if path.IsAbs(f) {
			r.absolute = append(r.absolute, source{t.ID, r.builder.Intern(f), at})
			continue
		}
		t.Inputs = append(t.Inputs, f)
		if r.targets[f].task == t.ID { // the Builder does not make a task that reads and writes a file depend on itself
			r.builder.Edge(t.ID, t.ID, at)
		}
	}
	if err := r.needs(&t); err != nil {
		return err
	}
	if len(r.vars.own) > 0 {
		r.own[len(r.wf.Tasks)] = r.vars.own
	}
	r.under = append(r.under, r.vars.among)
	return r.builder.Add(t, at)
}

// maxIDBytes is the maximum length in bytes of an id derived from a target.
const maxIDBytes = 100

// id returns the task's id, which is derived from the rule's first target or, if that is not suitable, from the rule's
// number.
func (r *reader) id() string {
	first := path.Clean(r.rule.targets[0])
	if len(first) > maxIDBytes || path.IsAbs(first) || strings.Contains(first, ":") || strings.Trim(first, "./") == "" {
		return fmt.Sprintf("rule:%d", r.vars.rule+1)
	}
	return strings.ReplaceAll(first, "/", ":")
}

// name returns the transformation: the category, or the program at the beginning of the command.
func (r *reader) name(text string) string {
	if category := unquote(cmp.Or(r.vars.own["CATEGORY"], r.rule.category)); category != "" {
		return category
	}
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, `"'`+";&|(){}")
		if word != "" && !strings.ContainsAny(word, "=<>") { // neither a redirection nor an environment variable
			return path.Base(word)
		}
	}
	return ""
}

// needs sets the task's needs from the resources of the rule or of its category.
func (r *reader) needs(t *workflow.Task) error {
	var walltime int
	for _, need := range []struct {
		name string
		unit int64 // unit in bytes of a number without a suffix; 0: not a size
		to   *int
	}{
		{"CORES", 0, &t.CPUs}, {"GPUS", 0, &t.GPUs}, {"MEMORY", 1 << 20, &t.MemoryMiB}, {"DISK", 1 << 20, &t.DiskMiB},
		{"WALL_TIME", 0, &walltime},
	} {
		text, ok := r.vars.get(need.name)
		if text = unquote(text); !ok || text == "" {
			continue
		}
		n, err := amount(text, need.unit)
		if err != nil {
			return r.rule.at.Errorf("%s: %w", need.name, err)
		}
		if need.unit > 0 { // mebibytes, rounded up
			n = n>>20 + min(1, n&(1<<20-1))
		}
		*need.to = int(min(n, math.MaxInt32))
	}
	t.Timeout = time.Duration(walltime) * time.Second
	return nil
}

// amount parses an integer with an optional suffix K, M, G or T. A size without a suffix is a multiple of unit.
func amount(text string, unit int64) (int64, error) {
	number, factor := text, max(unit, 1)
	if i := strings.IndexByte("KMGT", text[len(text)-1]&^0x20); i >= 0 {
		number, factor = text[:len(text)-1], 1<<(10*(i+1))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%.40q is not an integer in range with an optional suffix K, M, G or T", text)
	}
	return n * factor, nil
}
