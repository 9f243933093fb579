package dagman

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// A jobRecord holds the state that all jobs of a workflow share.
type jobRecord struct {
	warn    func(thing string, at workflow.Place, format string, args ...any)
	streams map[string]bool // files to which standard streams are written
	looked  map[string]bool // queue statements whose commands were checked for warnings
}

// newJobRecord returns a record in which no jobs are recorded yet. warn is called for each job to which a warning
// applies.
func newJobRecord(warn func(thing string, at workflow.Place, format string, args ...any)) *jobRecord {
	return &jobRecord{warn, make(map[string]bool), make(map[string]bool)}
}

// A jobNode holds the data of a job's node.
type jobNode struct {
	Name string
	Dir  string // folder from which the job is submitted, relative to the .dag's folder
}

// task returns the task for a job; the task's id is the name of the node. The error has kind Invalid and names the line
// of the submit description.
func (r *jobRecord) task(n jobNode, j *submit.Proc) (workflow.Task, error) {
	m := maker{record: r, n: n, job: j}
	m.t.ID = n.Name
	m.command()
	m.environment()
	m.files()
	m.needs()
	m.conduct()
	m.ours()
	m.warnOfUnheeded()
	if m.unknown != "" {
		m.t.Argv = nil
		r.warn(j.At().String()+m.unknown, j.At(), "%s: node %q has no command", m.unknown, n.Name)
	}
	var quoted *quotingError
	if errors.As(m.err, &quoted) {
		m.err = j.At().Errorf("node %q: %w", n.Name, quoted)
	}
	return m.t, m.err
}

// A maker is the state of creating one task.
type maker struct {
	record *jobRecord
	n      jobNode
	job    *submit.Proc

	t       workflow.Task
	unknown string // the reason why its program is unknown; "": it is known
	err     error  // the first error; all further results are ignored
}

// value returns the value of the first command that is present.
func (m *maker) value(names ...string) string {
	value, matched, err := m.job.Value(names...)
	if m.err == nil && err != nil {
		m.err = err
	}
	if matched && m.unknown == "" {
		m.unknown = names[0] + " contains a $$(…), whose value depends on the machine"
	}
	return value
}

// A quotingError reports a problem with a value.
type quotingError struct{ error }

func (m *maker) wrong(format string, args ...any) {
	if m.err == nil {
		m.err = &quotingError{fmt.Errorf(format, args...)}
	}
}

// flag returns the value of a Boolean command, or otherwise if the command is missing.
func (m *maker) flag(otherwise bool, names ...string) bool {
	switch value := strings.ToLower(m.value(names...)); value {
	case "":
		return otherwise
	case "true", "yes", "t", "y", "1":
		return true
	case "false", "no", "f", "n", "0":
		return false
	default:
		m.wrong("%s = %.40s: want true or false", names[0], value)
		return otherwise
	}
}

// universes lists the names and numbers of the universes in which a job is an ordinary process.
var universes = []string{"", "vanilla", "5", "local", "12", "scheduler", "7"}

func (m *maker) command() {
	executable := m.value("executable", "cmd")
	universe := strings.ToLower(m.value("universe"))
	switch {
	case m.flag(false, "noop_job"):
		m.t.Name, m.t.Argv, m.t.Instant = "noop", []string{"true"}, true
		m.t.Control = &workflow.Control{Noop: true}
		return
	case !slices.Contains(universes, universe):
		m.unknown = "universe " + universe + " is not supported"
	case m.value("docker_image", "container_image") != "":
		m.unknown = "container images are not supported"
	case executable == "":
		m.unknown = "the submit description names no executable"
	}
	if executable != "" {
		m.t.Name = path.Base(executable)
	}
	program := executable
	if m.flag(true, "transfer_executable") && !path.IsAbs(executable) && executable != "" {
		file := submit.Join(m.n.Dir, executable)
		m.t.Inputs = append(m.t.Inputs, file)
		program = "./" + file
	}
	arguments, err := condor.Arguments(m.value("arguments", "args"))
	if err != nil {
		m.wrong("%w", err)
	}
	if m.flag(false, strings.ToLower(attributeSearched)) && executable == searcher && len(arguments) > 0 {
		program, arguments = arguments[0], arguments[1:]
		m.t.Name = path.Base(program)
	}
	m.t.Argv = append([]string{program}, arguments...)
}

func (m *maker) environment() {
	env, err := condor.Environment(m.value("environment", "env"))
	if err != nil {
		m.wrong("%w", err)
	}
	if len(env) > 0 {
		m.t.Env = env
	}
	if get := m.value("getenv"); get != "" && !strings.EqualFold(get, "false") {
		m.note("getenv", "the submitter's environment is not passed on")
	}
}

// note warns, once per description, of a feature that is not available to its jobs.
func (m *maker) note(name, format string, args ...any) {
	at := m.job.At()
	m.record.warn(at.File+"\x00"+name, at, "%s: %s", name, fmt.Sprintf(format, args...))
}

// charge charges bytes that are stored in addition to the job's values.
func (m *maker) charge(bytes int) {
	if err := m.job.Charge(bytes); err != nil && m.err == nil {
		m.err = &quotingError{err}
	}
}

// files determines the files that the job reads and writes. Their ids are paths relative to the .dag's folder.
func (m *maker) files() {
	dir := submit.Join(m.n.Dir, m.value("initialdir", "initial_dir", "iwd"))
	if len(dir) > maxPath {
		m.wrong("initialdir has more than %d bytes", maxPath)
		return
	}
	preserved := m.flag(false, "preserve_relative_paths")
	if m.t.Stdin = m.stream(dir, "input", "stdin"); m.t.Stdin != "" {
		m.t.Inputs = append(m.t.Inputs, m.t.Stdin)
	}
	for _, file := range submit.List(m.value("transfer_input_files", "transferinputfiles")) {
		switch {
		case strings.Contains(file, "://"):
			m.note("transfer_input_files", "%s is not fetched", file)
		case strings.HasSuffix(file, "/"):
			m.note("transfer_input_files", "folder %s is not transferred: name its files", file)
		default:
			m.t.Inputs = append(m.t.Inputs, submit.Join(dir, file))
			m.name(submit.Join(dir, file), file, preserved)
			m.charge(len(dir))
		}
	}
	remaps, err := submit.Remaps(m.value("transfer_output_remaps"))
	if err != nil {
		m.wrong("%w", err)
	}
	for _, file := range submit.List(m.value("transfer_output_files", "transferoutputfiles")) {
		m.output(dir, file, preserved, remaps)
		m.charge(len(dir))
	}
	kept, _ := m.attribute(attributeKept)
	m.t.Stdout = m.written(m.stream(dir, "output", "stdout"), "output", kept)
	m.t.Stderr = m.written(m.stream(dir, "error", "stderr"), "error", kept)
	switch transfers := m.value("should_transfer_files"); {
	case strings.EqualFold(transfers, "no"):
		m.note("should_transfer_files", "a job gets only the files of transfer_input_files")
	case transfers != "" && m.value("transfer_output_files", "transferoutputfiles") == "":
		m.note("transfer_output_files", "it is missing; only the output and error of the job are kept")
	}
}

// stream returns the file of a standard stream, or "" if it has none.
func (m *maker) stream(dir string, names ...string) string {
	file := m.value(names...)
	if file == "" || file == "/dev/null" {
		return ""
	}
	return submit.Join(dir, file)
}

// name records the name that a file has where the job runs, which is its bare name unless paths are preserved.
func (m *maker) name(id, file string, preserved bool) {
	name := path.Clean(file)
	if !preserved || path.IsAbs(file) {
		name = path.Base(file)
	}
	if name == id {
		return
	}
	if m.t.Names == nil {
		m.t.Names = make(map[string]string)
	}
	m.t.Names[id] = name
}

// output adds an output file. Its path relative to the initial folder is its bare name, unless paths are preserved or
// the file is remapped.
func (m *maker) output(dir, file string, preserved bool, remaps map[string]string) {
	file = path.Clean(file)
	to := path.Base(file)
	if preserved {
		to = file
	}
	for _, known := range []string{file, path.Base(file)} {
		if remap, ok := remaps[known]; ok {
			to = remap
			break
		}
	}
	id := submit.Join(dir, to)
	m.t.Outputs = append(m.t.Outputs, id)
	m.name(id, file, true)
}

// written makes the file of a standard stream an output. If several jobs use the same file, only the first job writes
// it; in HTCondor the result would be random if the jobs ran at the same time.
func (m *maker) written(file, command, kept string) string {
	if file == "" || slices.Contains(m.t.Outputs, file) || slices.Contains(strings.Fields(kept), command) {
		return file
	}
	if m.record.streams[file] {
		m.note(command, "file %s also belongs to another job; that of node %q stays with its attempt", file, m.n.Name)
		return ""
	}
	m.record.streams[file] = true
	m.t.Outputs = append(m.t.Outputs, file)
	return file
}

// conduct reads the job's priority, retries and time limit; settings of the node take precedence.
func (m *maker) conduct() {
	if value := m.value("priority", "prio"); value != "" {
		if n, err := strconv.Atoi(value); err == nil && n != 0 {
			controlOf(m).Priority = n
		}
	}
	if value := m.value("max_retries"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			m.wrong("max_retries is %.40q, want a number", value)
		}
		m.t.Retries = &n
	}
	if value := m.value("allowed_execute_duration"); value != "" {
		m.t.Timeout = m.seconds("allowed_execute_duration", value)
	}
}

// seconds parses a duration with a resolution of a nanosecond.
func (m *maker) seconds(name, value string) time.Duration {
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || s < 0 || s > math.MaxInt64/2/float64(time.Second) {
		m.note(name, "%.60s is not a number of seconds", value)
		return 0
	}
	return time.Duration(math.Round(s * float64(time.Second)))
}

// ours reads the attributes that Write uses for data for which HTCondor has no command.
func (m *maker) ours() {
	if id, ok := m.attribute(attributeTask); ok {
		m.t.ID = id
	}
	if name, ok := m.attribute(attributeName); ok {
		m.t.Name = name
	}
	if label, ok := m.attribute(attributeLabel); ok {
		controlOf(m).Label = label
	}
	if value := m.value(strings.ToLower(attributeEstimate)); value != "" {
		m.t.Estimate = m.seconds(attributeEstimate, value)
		m.t.Instant = m.t.Estimate == 0
	}
	if value := m.value(strings.ToLower(attributeTimeout)); value != "" {
		m.t.Timeout = m.seconds(attributeTimeout, value)
	}
}

// controlOf returns the task's control for modification.
func controlOf(m *maker) *workflow.Control {
	if m.t.Control == nil {
		m.t.Control = &workflow.Control{}
	}
	return m.t.Control
}

// attribute returns the value of an attribute; ok is false if its value is not a text.
func (m *maker) attribute(name string) (text string, ok bool) {
	value := m.value(strings.ToLower(name))
	if value == "" {
		return "", false
	}
	text, ok = classad.ParseOld(value).(string)
	return text, ok
}

// warnOfUnheeded warns of unsupported commands that may affect the job, once for each queue statement.
func (m *maker) warnOfUnheeded() {
	at := m.job.At().String()
	if m.record.looked[at] {
		return
	}
	m.record.looked[at] = true
	for _, name := range slices.Sorted(maps.Keys(unheeded)) {
		if value, _, _ := m.job.Value(name); value != "" {
			m.note(name, "ignored: %s", unheeded[name])
		}
	}
}

// unheeded maps each command that a run does not support to a description of the consequence.
var unheeded = map[string]string{
	"requirements":         "workers are chosen by cpus, memory, disk and gpus",
	"on_exit_hold":         "jobs are never held",
	"on_exit_remove":       "a job that has ended is restarted only by retries",
	"periodic_hold":        "jobs are never held",
	"periodic_remove":      "jobs are not removed by expressions",
	"periodic_release":     "jobs are never held",
	"hold":                 "jobs are never held",
	"deferral_time":        "jobs start as soon as they can",
	"retry_until":          "any exit status except 0 is retried",
	"success_exit_code":    "only 0 is success",
	"allowed_job_duration": "only allowed_execute_duration limits a job",
	"checkpoint_exit_code": "jobs have no checkpoints",
	"concurrency_limits":   "such limits do not exist",
	"transfer_plugins":     "URLs are not fetched",
	"next_job_start_delay": "jobs start as soon as they can",
}
