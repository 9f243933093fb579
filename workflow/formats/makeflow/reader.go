package makeflow

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// A reader reads a file line by line, and passes one task for each rule to its builder.
type reader struct {
	lines   *lines
	wf      *workflow.Workflow
	builder *workflow.Builder

	vars     *variables
	maxKept  int64           // maximum bytes of variables' values
	maxUsed  int64           // maximum bytes inserted by variables, counting repetitions
	exported map[string]bool // :: variable → whether it is in the environment of tasks
	rule     *rule           // the rule whose command has not been read; nil: none

	targets  map[string]target
	absolute []source                  // sources with absolute paths
	under    []string                  // category of each task, for exported variables
	own      map[int]map[string]string // :: task → variables of its rule
	noted    map[string]*note
}

// A target is the task that makes a file, and the place of its rule.
type target struct {
	task string
	at   workflow.Place
}

// A source is a file that a task reads.
type source struct {
	task, file string
	at         workflow.Place
}

// A note is a warning that is reported once for all occurrences of the same kind.
type note struct {
	workflow.Warning
	times int
}

func newReader(l *lines, wf *workflow.Workflow, opts workflow.Options) *reader {
	b := workflow.NewBuilder(wf, opts)
	b.FileOrder = true
	return &reader{
		lines: l, wf: wf, builder: b,
		maxKept:  cmp.Or(opts.MaxValue, workflow.DefaultMaxValue),
		maxUsed:  cmp.Or(opts.MaxBytes, workflow.DefaultMaxBytes),
		vars:     &variables{given: make(map[scoped][]assignment), env: opts.Env},
		exported: make(map[string]bool), targets: make(map[string]target),
		own: make(map[int]map[string]string), noted: make(map[string]*note),
	}
}

// read reads the whole file. If ctx is cancelled, the returned error is meaningless.
func (r *reader) read(ctx context.Context) error {
	for {
		l, more, err := r.lines.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := r.take(l); err != nil {
			return err
		}
		if err := r.bound(l.at); err != nil {
			return err
		}
	}
	if r.rule != nil {
		return r.rule.at.Errorf("the rule has no command")
	}
	return r.finish(ctx)
}

// bound returns an error if variables expand the file excessively: with variables, a short file may represent any
// number of files and commands, or a long value for each rule.
func (r *reader) bound(at workflow.Place) error {
	switch {
	case r.vars.kept > r.maxKept:
		return at.Errorf("the values of variables are together %w", &input.TooLongError{Limit: r.maxKept})
	case r.vars.used > r.mayUse():
		return at.Errorf("with its variables expanded, the workflow is %w", &input.TooLongError{Limit: r.mayUse()})
	}
	return nil
}

// The limit on the text that variables insert is a constant plus a multiple of the length of the text. Without this
// limit, a short file could need as much memory as the longest allowed file.
const (
	freeBytes   = 128 << 20
	usedPerByte = 64
)

// mayUse returns the number of bytes that variables may have inserted into the text so far.
func (r *reader) mayUse() int64 { return min(r.maxUsed, freeBytes+usedPerByte*r.lines.read) }

// take processes one logical line. The kind of a line is determined by its first character or first word or, failing
// these, by whether the first colon or the first equals sign outside quotes comes earlier.
func (r *reader) take(l line) error {
	text := strings.TrimLeft(l.text, " \t")
	colon, equals := unquotedIndex(text, ":"), unquotedIndex(text, "=")
	word := text
	if end := strings.IndexAny(text, " \t"); end >= 0 {
		word = text[:end]
	}
	var err error
	switch {
	case strings.TrimSpace(text) == "":
	case text[0] == '@' && equals >= 0: // even after a tab, as in older versions: no command begins with @
		err = r.variable(text[1:], l)
	case l.text[0] == '\t':
		err = r.command(l)
	case isDirective(word):
		err = r.directive(word, text[len(word):], l)
	case colon >= 0 && (equals < 0 || colon < equals):
		err = r.begin(text, l)
	case word == "export":
		err = r.export(text[len(word):], l)
	case l.text[0] == ' ' && equals < 0:
		err = r.command(l)
	default:
		err = r.variable(text, l)
	}
	return err
}

// isDirective reports whether a word is a period followed by capital letters. File names may also begin with a period.
func isDirective(word string) bool {
	letters, ok := strings.CutPrefix(word, ".")
	return ok && letters != "" && strings.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// variable processes an assignment: NAME=VALUE or NAME+=VALUE.
func (r *reader) variable(text string, l line) error {
	text = strings.TrimLeft(text, " \t")
	name := text
	if end := strings.IndexAny(text, notInName); end >= 0 {
		name = text[:end]
	}
	rest := strings.TrimLeft(text[len(name):], " \t")
	adds := strings.HasPrefix(rest, "+=")
	switch {
	case name == "" || !adds && !strings.HasPrefix(rest, "="):
		return l.at.Errorf("%.40q is not a rule (FILES: FILES), a variable (NAME=VALUE) or a command (after a tab)",
			text)
	case adds:
		rest = rest[1:]
	}
	return r.assign(name, rest[1:], adds, l)
}

// assign expands a value and assigns it to a variable. A category changes the scope of the following variables.
func (r *reader) assign(name, text string, adds bool, l line) error {
	if l.commented {
		text = strings.TrimRight(text, " \t")
	}
	v, err := value(text, r.vars.get)
	if err != nil {
		return l.at.Errorf("variable %q: %w", name, err)
	}
	if adds {
		r.vars.add(name, v)
		if sum, _ := r.vars.get(name); len(sum) > maxExpanded {
			return l.at.Errorf("variable %q: %w", name, tooLong("the value", maxExpanded))
		}
		return nil
	}
	r.vars.set(name, v)
	if slices.Contains(resources, name) || name == "CATEGORY" {
		r.exported[name] = true // as in Makeflow, if the file assigns a value
	}
	switch name {
	case "CATEGORY", "SYMBOL":
		r.categorize(unquote(v))
	case "BATCH_OPTIONS", "BATCH_QUEUE", "BATCH_LOCAL":
		r.note(l.at, name+" is ignored: it is for a batch system")
	}
	return nil
}

// resources lists the variables that specify the needs of a category's tasks.
var resources = []string{"CORES", "MEMORY", "DISK", "GPUS", "WALL_TIME"}

// categorize assigns the current rule to a category or, outside a rule, all following rules.
func (r *reader) categorize(category string) {
	r.vars.set("CATEGORY", category)
	if r.rule == nil {
		r.vars.among = category
	}
}

// export adds the named variables to the tasks' environment; the line may instead assign a value to a single variable,
// which is then added.
func (r *reader) export(text string, l line) error {
	if equals := unquotedIndex(text, "="); equals >= 0 {
		name := strings.Trim(strings.TrimRight(text[:equals], "+ \t"), " \t")
		r.exported[name] = true
		return r.variable(text, l)
	}
	names := strings.Fields(text)
	if len(names) == 0 {
		return l.at.Errorf("export names no variable")
	}
	for _, name := range names {
		r.exported[name] = true
	}
	return nil
}

// directive processes a line that begins with a word such as .MAKEFLOW.
func (r *reader) directive(word, text string, l line) error {
	fields := strings.Fields(text)
	if word != ".MAKEFLOW" && word != ".RESOURCE" && word != ".SIZE" {
		return l.at.Errorf("%.40s is not supported; want .MAKEFLOW, .RESOURCE or .SIZE", word)
	}
	if len(fields) != 2 {
		return l.at.Errorf("%s has %d arguments, want 2: a name and a value", word, len(fields))
	}
	name, text := fields[0], fields[1]
	if word == ".SIZE" {
		n, err := amount(text, 1)
		if err != nil {
			return l.at.Errorf(".SIZE: %w", err)
		}
		return r.builder.File(path.Clean(name), n, l.at)
	}
	switch name {
	case "MODE", "MPI_PROCESSES":
		r.note(l.at, word+" "+name+" is ignored")
		return nil
	}
	if name == "CATEGORY" || slices.Contains(resources, name) {
		return r.assign(name, text, false, l)
	}
	return l.at.Errorf("%s %.40s is not supported; want CATEGORY, CORES, MEMORY, DISK, GPUS or WALL_TIME", word, name)
}

// note records a warning, which is reported once for all warnings with the same words.
func (r *reader) note(at workflow.Place, words string) {
	if n := r.noted[words]; n != nil {
		n.times++
		return
	}
	r.noted[words] = &note{workflow.Warning{Place: at, Message: words}, 1}
}

// absent warns of sources with absolute paths that no rule makes. If a rule makes such a file, absent adds an edge
// between the two tasks.
func (r *reader) absent() {
	var first source
	files := make(map[string]bool)
	for _, s := range r.absolute {
		if made, ok := r.targets[s.file]; ok {
			r.builder.Edge(made.task, s.task, s.at)
			continue
		}
		if len(files) == 0 {
			first = s
		}
		files[s.file] = true
	}
	if len(files) > 0 {
		r.builder.Warn(first.at, "source %q is an absolute path; it must exist on every worker%s", first.file,
			workflow.AndMore(len(files)-1))
	}
}

// finish adds to the tasks the data that are known only at the end of the file: which variables are exported, and which
// absolute paths are made by rules.
func (r *reader) finish(ctx context.Context) error {
	r.absent()
	if err := r.environment(ctx); err != nil {
		return err
	}
	all := slices.SortedFunc(maps.Values(r.noted), func(a, b *note) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Message, b.Message))
	})
	for _, n := range all {
		r.builder.WarnFor(n.Warning, n.times-1)
	}
	return nil
}

// entryBytes is the approximate size of a variable in the environment of a task.
const entryBytes = 64

// lookBytes is the number of bytes charged for each lookup of a variable for a task, so that the time is also limited:
// a quarter of a billion lookups take a minute or two.
const lookBytes = 8

// environment sets each task's environment to the exported variables, with the values that they have at the task's
// rule.
func (r *reader) environment(ctx context.Context) error {
	var last map[string]string // most tasks have the same environment
	for i := range r.wf.Tasks {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.vars.used += int64(len(r.exported)) * lookBytes
		env := make(map[string]string)
		for name := range r.exported {
			v, ok := r.own[i][name]
			if !ok {
				v, ok = r.vars.at(i, r.under[i], name)
			}
			if ok {
				env[name] = v
			}
		}
		if last == nil || !maps.Equal(env, last) {
			last = env
			r.vars.kept += int64(len(env)) * entryBytes
		}
		if err := r.bound(r.wf.Place(i)); err != nil {
			return err
		}
		if len(last) > 0 {
			r.wf.Tasks[i].Env = last
		}
	}
	return nil
}

// unquote removes the quotes around a value.
func unquote(text string) string {
	text = strings.TrimSpace(text)
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}
