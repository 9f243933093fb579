package condor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/condor/classad"
)

// condor_submit reads a language of macros, in which dollar signs, quotes, commas, white space at the ends of lines
// and backslashes mean something, and something else in each command. What is written here means nothing but itself:
// each kind of value has one way into the text, and what no way can hold is refused before HTCondor sees any of it.
// Jobs that differ become rows of a table, so that thousands of them take one submission.

// A Submit describes one cluster of jobs for condor_submit, in the vanilla universe. Every text is taken
// literally: neither quotes nor dollar signs mean anything to HTCondor. Zero values leave a matter to
// HTCondor's defaults. Requirements and Rank are expressions.
type Submit struct {
	Executable string // on the submit host; see Transfer.Executable
	// ExecutableOf names the attribute of the worker's ad that says where the executable is there, in place of
	// Executable.
	ExecutableOf string
	Dir          string // what relative paths are relative to; by default condor_submit's own folder
	Log          string // the event log
	BatchName    string // what condor_q shows
	Requirements classad.Expr
	Rank         classad.Expr
	Priority     int

	Request    Request
	Transfer   Transfer
	Attributes classad.Ad // further attributes of the jobs' ads

	Procs []Proc // at least one
}

// A Request is what each job of a cluster takes of its worker.
type Request struct {
	Cpus, GPUs         int
	MemoryMiB, DiskMiB int64
}

// A Transfer says which files HTCondor brings to the worker and back.
type Transfer struct {
	When       string   // "YES", "NO", or "IF_NEEDED": if the worker does not have the submit host's file system
	Executable bool     // the executable too; else it must be on the worker
	Input      []string // sent before the job starts, beside the executable and Stdin
	// Output comes back when the job ends; nil means all new files of the job's top folder, empty means none.
	Output []string
}

// A Proc is what differs between the jobs of a cluster. Paths are relative to Dir, or else to
// Submit.Dir; without one, what the job prints is lost.
type Proc struct {
	Arguments             []string
	Environment           map[string]string
	Stdin, Stdout, Stderr string
	Dir                   string // in place of Submit.Dir
	Attributes            classad.Ad
}

// ErrUnquotable is wrapped by errors about a text that no submit description can hold.
var ErrUnquotable = errors.New("cannot stand in a submit description")

// attributeName is what HTCondor takes for a name.
var attributeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WriteTo writes the description. An error that wraps [ErrUnquotable] names the value; nothing was written
// then.
func (s Submit) WriteTo(w io.Writer) (int64, error) {
	d := &description{}
	s.common(d)
	folders := slices.ContainsFunc(s.Procs, func(p Proc) bool { return p.Dir != "" })
	varying := s.varying()
	jobs := make([][]line, len(s.Procs))
	for i, p := range s.Procs {
		own := maps.Clone(varying)
		maps.Copy(own, p.Attributes)
		p.Attributes = own
		if folders {
			p.Dir = cmp.Or(p.Dir, s.Dir, ".")
		}
		jobs[i] = p.describe(d)
	}
	d.queue(jobs)
	if err := errors.Join(d.errs...); err != nil {
		return 0, fmt.Errorf("describing jobs: %w", err)
	}
	n, err := io.WriteString(w, d.text.String())
	return int64(n), err
}

// common writes what all jobs of the cluster share.
func (s Submit) common(d *description) {
	d.expr("universe", "vanilla")
	d.word("executable", s.Executable)
	if s.ExecutableOf != "" {
		d.attribute("executable", s.ExecutableOf)
	}
	d.expr("transfer_executable", classad.Expr(strconv.FormatBool(s.Transfer.Executable)))
	d.word("initialdir", s.Dir)
	d.word("log", s.Log)
	d.word("batch_name", s.BatchName)
	d.expr("should_transfer_files", classad.Expr(s.Transfer.When))
	d.list("transfer_input_files", s.Transfer.Input)
	if s.Transfer.Output != nil && len(s.Transfer.Output) == 0 {
		d.expr("transfer_output_files", `""`)
	}
	d.list("transfer_output_files", s.Transfer.Output)
	d.number("request_cpus", int64(s.Request.Cpus), "")
	d.number("request_gpus", int64(s.Request.GPUs), "")
	d.number("request_memory", s.Request.MemoryMiB, " MB")
	d.number("request_disk", s.Request.DiskMiB, " MB")
	d.number("priority", int64(s.Priority), "")
	d.expr("requirements", s.Requirements)
	d.expr("rank", s.Rank)
	d.expr("notification", "never")
	d.attributes(s.Attributes)
}

// varying returns every attribute that some job has for itself, as those have it that do not: all jobs have the same
// lines.
func (s Submit) varying() classad.Ad {
	all := classad.Ad{}
	for _, p := range s.Procs {
		for name := range p.Attributes {
			all[name] = classad.Undefined
			if common, ok := s.Attributes[name]; ok {
				all[name] = common
			}
		}
	}
	return all
}

// A line of a description says one thing of a job; one of a configuration sets one value.
type line struct{ key, value string }

// describe returns every line of a job, also the empty ones: all jobs have the same keys, in the same order.
func (p Proc) describe(d *description) []line {
	lines := []line{
		{"arguments", Words(d.args(p.Arguments))},
		{"My.Environment", Literal(classad.FormatOld(d.env(p.Environment)))},
	}
	if p.Dir != "" {
		lines = append(lines, line{"initialdir", d.plain("initialdir", p.Dir)})
	}
	for _, stream := range [][2]string{{"input", p.Stdin}, {"output", p.Stdout}, {"error", p.Stderr}} {
		lines = append(lines, line{stream[0], d.file(stream[0], stream[1])})
	}
	return append(lines, d.own(p.Attributes)...)
}

// The table of jobs: its values have blanks between them and no quotes, so that blanks and commas of their own must be
// macros; and a blank at a macro's end would be cut off.
const separators = `Letters = a b,c	d
Blank = $SUBSTR(Letters,1,1)
Comma = $SUBSTR(Letters,3,1)
Tab = $SUBSTR(Letters,5,1)
`

var joined = strings.NewReplacer(" ", "$(Blank)", ",", "$(Comma)", "\t", "$(Tab)")

// queue writes what all jobs say alike as lines, and the rest as a table with a row for each job: one statement, since
// HTCondor warns that it will not take several any longer.
func (d *description) queue(jobs [][]line) {
	if len(jobs) == 0 {
		d.errs = append(d.errs, errors.New("a submission without jobs"))
		return
	}
	own := differing(jobs)
	if len(own) == 0 {
		for _, l := range jobs[0] {
			d.line(l.key, l.value)
		}
		fmt.Fprintf(&d.text, "queue %d\n", len(jobs))
		return
	}
	d.text.WriteString(separators)
	var names []string
	for i, l := range jobs[0] {
		if slices.Contains(own, i) {
			names = append(names, "Own"+strconv.Itoa(i))
			l.value = "$(Own" + strconv.Itoa(i) + ")"
		}
		d.line(l.key, l.value)
	}
	fmt.Fprintf(&d.text, "queue %s from (\n", strings.Join(names, ", "))
	for _, job := range jobs {
		row := make([]string, len(own))
		for n, i := range own {
			row[n] = joined.Replace(job[i].value)
		}
		d.text.WriteString(strings.Join(row, " ") + "\n")
	}
	d.text.WriteString(")\n")
}

// differing returns which of the lines of jobs differ, nil if none do. The first line is one of them, since its quotes
// make the beginning of a row mean nothing else.
func differing(jobs [][]line) (own []int) {
	for i, l := range jobs[0] {
		if slices.ContainsFunc(jobs, func(job []line) bool { return job[i] != l }) {
			own = append(own, i)
		}
	}
	if len(own) > 0 && own[0] != 0 {
		own = slices.Insert(own, 0, 0)
	}
	return own
}

// A description is the text so far, and what could not be put into it.
type description struct {
	text strings.Builder
	errs []error
}

func (d *description) line(key, value string) { fmt.Fprintf(&d.text, "%s = %s\n", key, value) }

func (d *description) expr(key string, e classad.Expr) {
	if e != "" {
		d.line(key, d.oneLine(key, string(e)))
	}
}

// attribute makes the value of key that of an attribute of the worker's ad.
func (d *description) attribute(key, name string) {
	if !attributeName.MatchString(name) {
		d.refuse(key, name)
		return
	}
	d.line(key, "$$("+name+")")
}

func (d *description) word(key, value string) {
	if value != "" {
		d.line(key, d.plain(key, value))
	}
}

func (d *description) number(key string, n int64, unit string) {
	if n != 0 {
		d.line(key, strconv.FormatInt(n, 10)+unit)
	}
}

// list writes names with commas between them. No way of writing a name keeps a comma in it from being one of these.
func (d *description) list(key string, names []string) {
	if len(names) == 0 {
		return
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		if strings.ContainsAny(name, `,"`) || name == "" {
			d.refuse(key, name)
		}
		quoted[i] = d.plain(key, name)
	}
	d.line(key, strings.Join(quoted, ", "))
}

func (d *description) attributes(ad classad.Ad) {
	for _, l := range d.own(ad) {
		d.line(l.key, l.value)
	}
}

func (d *description) own(ad classad.Ad) (lines []line) {
	for _, name := range slices.Sorted(maps.Keys(ad)) {
		if !attributeName.MatchString(name) {
			d.refuse("attribute", name)
			continue
		}
		value := classad.FormatOld(ad[name])
		if text, ok := ad[name].(string); ok {
			value = classad.FormatOld(d.oneLine(name, text))
		}
		lines = append(lines, line{"My." + name, Literal(value)})
	}
	return lines
}

// plain is a value without quotes: condor_submit cuts white space off its ends, and takes a backslash at
// the end for a continued line.
func (d *description) plain(key, value string) string {
	if strings.TrimSpace(value) != value || strings.HasSuffix(value, `\`) {
		d.refuse(key, value)
	}
	return Literal(d.oneLine(key, value))
}

func (d *description) oneLine(key, value string) string {
	if strings.ContainsAny(value, "\n\r\x00") {
		d.refuse(key, value)
	}
	return value
}

func (d *description) refuse(key, value string) {
	d.errs = append(d.errs, fmt.Errorf("%s: %q %w", key, value, ErrUnquotable))
}

// file returns where a job's standard stream is.
func (d *description) file(key, name string) string {
	if name == "" {
		name = os.DevNull
	}
	return d.plain(key, name)
}

// args is the new syntax of arguments: each, where it must be, in single quotes, and such a quote doubled.
func (d *description) args(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = Word(d.oneLine("arguments", a))
	}
	return strings.Join(quoted, " ")
}

// env is the new syntax of environments: as that of arguments, with NAME= before each value.
func (d *description) env(env map[string]string) string {
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "= \t\n\r\x00'\"") {
			d.refuse("environment", name)
			continue
		}
		quoted = append(quoted, name+"="+Word(d.oneLine("environment", env[name])))
	}
	return strings.Join(quoted, " ")
}
