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

// condor_submit reads a macro language in which dollar signs, quotes, commas, white space at line ends and backslashes
// have special meanings, which differ between commands. Values written here are always literal: each kind of value has
// one encoding, and a value without an encoding is rejected before HTCondor sees any part of the description. Differing
// jobs become rows of a table, so that thousands of them need only one submission.

// A Submit describes one cluster of jobs for condor_submit, in the vanilla universe. Every text is literal: neither
// quotes nor dollar signs have a meaning. Zero values select HTCondor's defaults. Requirements and Rank are
// expressions.
type Submit struct {
	Executable string // on the submit host; see Transfer.Executable
	// ExecutableOf names the attribute of the worker's ad that contains the executable's path on the worker, in place
	// of Executable.
	ExecutableOf string
	Dir          string // base of relative paths; empty: condor_submit's own folder
	Log          string // the event log
	BatchName    string // the name in condor_q's output
	Requirements classad.Expr
	Rank         classad.Expr
	Priority     int

	Request    Request
	Transfer   Transfer
	Attributes classad.Ad // further attributes of the jobs' ads

	Procs []Proc // at least one
}

// A Request states the resources of each job of a cluster.
type Request struct {
	Cpus, GPUs         int
	MemoryMiB, DiskMiB int64
}

// A Transfer says which files HTCondor transfers to and from the worker.
type Transfer struct {
	When       string   // "YES", "NO", or "IF_NEEDED": if the worker lacks the submit host's file system
	Executable bool     // transfer the executable; else it must be on the worker
	Input      []string // sent before the job starts, in addition to the executable and Stdin
	// Output is transferred when the job ends; nil means all new files of the job's top folder, empty means none.
	Output []string
}

// A Proc has the fields that differ between the jobs of a cluster. Paths are relative to Dir, or else to Submit.Dir.
// Output without a path is discarded.
type Proc struct {
	Arguments             []string
	Environment           map[string]string
	Stdin, Stdout, Stderr string
	Dir                   string // in place of Submit.Dir
	Attributes            classad.Ad
}

// ErrUnquotable is wrapped by errors about a text that no submit description can contain.
var ErrUnquotable = errors.New("cannot be written in a submit description")

// attributeName matches HTCondor's attribute names.
var attributeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WriteTo writes the description. An error that wraps [ErrUnquotable] names the value; in that case nothing was
// written.
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

// common writes the lines shared by all jobs of the cluster.
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

// varying returns all attributes set by individual jobs, with the value for jobs that do not set them: all jobs must
// have the same lines.
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

// A line of a description sets one value of a job; a line of a configuration sets one value.
type line struct{ key, value string }

// describe returns all lines of a job, including empty ones: all jobs have the same keys, in the same order.
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

// The table of jobs separates unquoted values with blanks, so that blanks and commas within them must be macros; a
// blank at the end of a macro would be cut off.
const separators = `Letters = a b,c	d
Blank = $SUBSTR(Letters,1,1)
Comma = $SUBSTR(Letters,3,1)
Tab = $SUBSTR(Letters,5,1)
`

var joined = strings.NewReplacer(" ", "$(Blank)", ",", "$(Comma)", "\t", "$(Tab)")

// queue writes common values as lines, and the others as a table with a row per job. It uses one statement, because
// HTCondor warns that several will not be accepted in future.
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

// differing returns the indices of lines that differ between jobs, or nil. If there are any, the first line is
// included, because its quotes keep the beginning of a row from being interpreted.
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

// A description has the text so far, and the errors about values that it cannot contain.
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

// attribute sets the value of key to that of an attribute of the worker's ad.
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

// list writes names separated by commas. No encoding can protect a comma within a name.
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

// plain returns a value without quotes: condor_submit strips white space from its ends, and takes a backslash at the
// end for a line continuation.
func (d *description) plain(key, value string) string {
	if strings.TrimSpace(value) != value || strings.HasSuffix(value, `\`) {
		d.refuse(key, value)
	}
	return Literal(d.oneLine(key, value))
}

// oneLine rejects a value that would not fit on one line.
func (d *description) oneLine(key, value string) string {
	if strings.ContainsAny(value, "\n\r\x00") {
		d.refuse(key, value)
	}
	return value
}

// refuse records that a value cannot be written.
func (d *description) refuse(key, value string) {
	d.errs = append(d.errs, fmt.Errorf("%s: %q %w", key, value, ErrUnquotable))
}

// file returns the path of a job's standard stream.
func (d *description) file(key, name string) string {
	return d.plain(key, cmp.Or(name, os.DevNull))
}

// args formats arguments in the new syntax: each in single quotes if necessary, with such quotes doubled.
func (d *description) args(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = Word(d.oneLine("arguments", a))
	}
	return strings.Join(quoted, " ")
}

// env formats an environment in the new syntax: like arguments, with NAME= before each value.
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
