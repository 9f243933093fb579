package dagman

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/workflow"
)

// Job attributes in which settingsOf stores the data for which HTCondor has no command, so that the reader can restore
// them.
const (
	attributeTask = "My.CorralTask"           // id of the task, if the name of the node differs from it
	attributeName = "My.CorralTransformation" // name of the task, if it differs from the name of the executable
	// attributeSearched states that the program is the first argument, for which /usr/bin/env searches.
	attributeSearched = "My.CorralSearched"
	attributeKept     = "My.CorralKept"     // the words output and error, if the stream is not an output file
	attributeEstimate = "My.CorralEstimate" // in seconds
	attributeLabel    = "My.CorralLabel"    // tasks with the same label may share a job
	attributeTimeout  = "My.CorralTimeout"  // in seconds, if not an integer number of seconds
)

// searcher is a program that searches for another program in the same way as a run does, which HTCondor itself does
// not.
const searcher = "/usr/bin/env"

// A setting is a command of a submit description together with its value, in the syntax of submit descriptions.
type setting struct{ Command, Value string }

// macro returns the name of the macro that is used, in VARS, for a value that differs between the tasks with the same
// description.
func (s setting) macro() string {
	return "task_" + strings.ToLower(strings.TrimPrefix(s.Command, "My."))
}

// settingsOf returns the commands that describe a task as the job of a node, in the same order for all tasks. The error
// names the first value that no command can represent.
func settingsOf(t *workflow.Task, node string) ([]setting, error) {
	d := describer{t: t}
	d.command()
	d.files()
	d.needs()
	d.final()
	if t.ID != node {
		d.attribute(attributeTask, t.ID)
	}
	return d.all, d.err
}

// A describer collects the settings of a task.
type describer struct {
	t    *workflow.Task
	all  []setting
	deep bool  // the job uses a file under a path that contains a folder
	err  error // error about the first value that no command can represent
}

// set adds a setting with a literal value.
func (d *describer) set(command, value string) { d.all = append(d.all, setting{command, value}) }

func (d *describer) refuse(what, value string) {
	if d.err == nil {
		d.err = fmt.Errorf("%s %q", what, value)
	}
}

// plain returns the form of a value that is written without quotes. It refuses a value that has no such form.
func (d *describer) plain(command, value string) string {
	if strings.TrimSpace(value) != value || strings.HasSuffix(value, `\`) || strings.HasPrefix(value, `"`) ||
		strings.ContainsAny(value, "\n\r\x00") {
		d.refuse(command, value)
	}
	return condor.Literal(value)
}

// attribute adds an attribute with a text value.
func (d *describer) attribute(name, text string) {
	if strings.ContainsAny(text, "\n\r\x00") {
		d.refuse(name, text)
	}
	d.set(name, condor.Literal(classad.FormatOld(text)))
}

// command adds the settings for the process.
func (d *describer) command() {
	t := d.t
	name := ""
	if t.Control != nil && t.Control.Noop {
		name = "noop"
		d.set("noop_job", "true")
	} else if len(t.Argv) > 0 {
		name = d.program()
	}
	if t.Name != name {
		d.attribute(attributeName, t.Name)
	}
	if len(t.Env) > 0 {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			if name == "" || strings.ContainsAny(name, "= \t\n\r\x00'\"") ||
				strings.ContainsAny(t.Env[name], "\n\r\x00") {
				d.refuse("environment", name+"="+t.Env[name])
			}
			pairs = append(pairs, name+"="+condor.Word(t.Env[name]))
		}
		d.set("environment", condor.Words(strings.Join(pairs, " ")))
	}
}

// program adds the settings for the program and arguments in Argv: a program that is a file of the workflow is
// transferred with the job; any other program must exist where the job runs. It returns the name of the transformation
// that a reader would derive from these settings.
func (d *describer) program() (name string) {
	program, arguments := d.t.Argv[0], d.t.Argv[1:]
	switch file, travels := d.sentAlong(); {
	case travels:
		program = file
	case !strings.Contains(program, "/"):
		program, arguments = searcher, d.t.Argv
		d.set(attributeSearched, "true")
		fallthrough
	default:
		d.set("transfer_executable", "false")
	}
	d.set("executable", d.plain("executable", program))
	var words []string
	for _, argument := range arguments {
		if strings.ContainsAny(argument, "\n\r\x00") {
			d.refuse("arguments", argument)
		}
		words = append(words, condor.Word(argument))
	}
	if len(words) > 0 {
		d.set("arguments", condor.Words(strings.Join(words, " ")))
	}
	if program == searcher && len(d.t.Argv) > 0 && d.t.Argv[0] != searcher {
		program = d.t.Argv[0]
	}
	return path.Base(program)
}

// sentAlong returns the task's program if the program is an input file, and is thus transferred with the job.
func (d *describer) sentAlong() (file string, ok bool) {
	if len(d.t.Argv) == 0 {
		return "", false
	}
	file, ok = strings.CutPrefix(d.t.Argv[0], "./")
	return file, ok && slices.Contains(d.t.Inputs, file) && d.t.Names[file] == "" && path.Clean(file) == file
}

// files adds the settings for the files that the job reads and writes.
func (d *describer) files() {
	t := d.t
	d.stream("input", t.Stdin)
	d.stream("output", t.Stdout)
	d.stream("error", t.Stderr)
	var kept []string
	for _, s := range []struct{ command, file string }{{"output", t.Stdout}, {"error", t.Stderr}} {
		if s.file != "" && !slices.Contains(t.Outputs, s.file) {
			kept = append(kept, s.command)
		}
	}
	if len(kept) > 0 {
		d.attribute(attributeKept, strings.Join(kept, " "))
	}
	if bare := d.inputs(); bare {
		d.outputs(true)
	} else if d.outputs(false); d.deep {
		d.set("preserve_relative_paths", "true")
	}
}

func (d *describer) stream(command, file string) {
	if file != "" {
		d.set(command, d.plain(command, file))
	}
}

// inputs adds the settings for the job's input files, and reports whether the job uses them by their bare names instead
// of their paths: a job must use the same form for all files.
func (d *describer) inputs() (bare bool) {
	program, _ := d.sentAlong()
	var list []string
	paths, names := 0, 0
	for _, file := range d.t.Inputs {
		if file == program || file == d.t.Stdin && d.t.Names[file] == "" {
			continue
		}
		list = append(list, d.listed("transfer_input_files", file))
		switch name := d.t.Names[file]; {
		case name != "" && name != path.Base(file):
			d.refuse("another name than its own of file", file)
		case name != "":
			names++
		case path.Base(file) != file:
			paths++
			d.deep = true
		}
	}
	if names > 0 && paths > 0 && d.err == nil {
		d.err = errors.New("both files with their paths and files with their bare names")
	}
	if len(list) > 0 {
		d.set("transfer_input_files", strings.Join(list, ","))
	}
	return names > 0
}

// outputs adds the settings for the job's output files.
func (d *describer) outputs(bare bool) {
	var list, remaps []string
	for _, file := range d.t.Outputs {
		name := d.t.Names[file]
		if name == "" && (file == d.t.Stdout || file == d.t.Stderr) {
			continue
		}
		name = cmp.Or(name, file)
		d.deep = d.deep || path.Base(name) != name
		list = append(list, d.listed("transfer_output_files", name))
		if name != file || bare && path.Base(file) != file {
			if strings.ContainsAny(name+file, `;="\`) {
				d.refuse("transfer_output_remaps", name)
			}
			remaps = append(remaps,
				d.listed("transfer_output_remaps", name)+" = "+d.listed("transfer_output_remaps", file))
		}
	}
	if len(list) > 0 {
		d.set("transfer_output_files", strings.Join(list, ","))
	}
	if len(remaps) > 0 {
		d.set("transfer_output_remaps", `"`+strings.Join(remaps, "; ")+`"`)
	}
}

// listed returns a file as an element of a comma-separated list.
func (d *describer) listed(command, file string) string {
	if strings.ContainsAny(file, `,"`) || strings.Contains(file, "://") || strings.HasSuffix(file, "/") || file == "" {
		d.refuse(command, file)
	}
	return d.plain(command, file)
}

// needs adds the settings for the job's requests, its time limit and its estimate.
func (d *describer) needs() {
	t := d.t
	d.set("request_cpus", strconv.Itoa(t.CPUs))
	if t.MemoryMiB != 0 {
		d.set("request_memory", strconv.Itoa(t.MemoryMiB))
	}
	if t.DiskMiB != 0 {
		d.set("request_disk", strconv.Itoa(t.DiskMiB)+"M")
	}
	if t.GPUs != 0 {
		d.set("request_gpus", strconv.Itoa(t.GPUs))
	}
	if label := t.Label(); label != "" {
		d.attribute(attributeLabel, label)
	}
	if whole := t.Timeout / time.Second; t.Timeout > 0 {
		if t.Timeout != whole*time.Second {
			d.set(attributeTimeout, inSeconds(t.Timeout))
			whole++
		}
		d.set("allowed_execute_duration", strconv.FormatInt(int64(whole), 10))
	}
	estimate, known := t.Estimated()
	if noop := t.Control != nil && t.Control.Noop; known && !(noop && estimate == 0) {
		d.set(attributeEstimate, inSeconds(estimate))
	}
}

// final adds the retries and the priority of the job of a FINAL node; for other nodes the .dag contains these settings.
func (d *describer) final() {
	c := d.t.Control
	if c == nil || !c.Final {
		return
	}
	if d.t.Retries != nil {
		d.set("max_retries", strconv.Itoa(*d.t.Retries))
	}
	if c.Priority != 0 {
		d.set("priority", strconv.Itoa(c.Priority))
	}
}

func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
