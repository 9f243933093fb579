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

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/quote"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dagman/submit"
)

// A maker makes the task of one job of a node.
type maker struct {
	r   *reader
	n   *node
	job *submit.Job

	t       workflow.Task
	unknown string // why what it runs is not known; "": it is
	err     error  // the first one; everything after it is for nothing
}

// task returns the task. An error has kind Invalid and names the line of the submit description.
func (m *maker) task() (workflow.Task, error) {
	m.t.ID = m.n.name
	m.command()
	m.environment()
	m.files()
	m.needs()
	m.conduct()
	m.ours()
	m.warn()
	if m.unknown != "" {
		m.t.Argv = nil
		m.r.warnOnce(m.job.At().String()+m.unknown, m.job.At(), "%s: node %q has no command", m.unknown, m.n.name)
	}
	var quoted *quotingError
	if errors.As(m.err, &quoted) {
		m.err = m.job.At().Errorf("node %q: %w", m.n.name, quoted)
	}
	return m.t, m.err
}

// value is that of the first of several commands that is given.
func (m *maker) value(names ...string) string {
	value, matched, err := m.job.Value(names...)
	if m.err == nil && err != nil {
		m.err = err
	}
	if matched && m.unknown == "" {
		m.unknown = names[0] + " holds a $$(…), which is known when a machine is"
	}
	return value
}

// A quotingError says what is wrong with a value.
type quotingError struct{ error }

func (m *maker) wrong(format string, args ...any) {
	if m.err == nil {
		m.err = &quotingError{fmt.Errorf(format, args...)}
	}
}

// flag is a command whose value is a truth value.
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

// universes are those whose jobs are processes, by name and number.
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
		m.unknown = "images of containers are not supported"
	case executable == "":
		m.unknown = "the submit description names no executable"
	}
	m.t.Name = path.Base(executable)
	program := executable
	if m.flag(true, "transfer_executable") && !path.IsAbs(executable) && executable != "" {
		file := join(m.n.dir, executable)
		m.t.Inputs = append(m.t.Inputs, file)
		program = "./" + file
	}
	arguments, err := quote.Arguments(m.value("arguments", "args"))
	if err != nil {
		m.wrong("%w", err)
	}
	m.t.Argv = append([]string{program}, arguments...)
}

func (m *maker) environment() {
	env, err := quote.Environment(m.value("environment", "env"))
	if err != nil {
		m.wrong("%w", err)
	}
	if len(env) > 0 {
		m.t.Env = env
	}
	if get := m.value("getenv"); get != "" && !strings.EqualFold(get, "false") {
		m.note("getenv", "the environment of who submits is not handed on")
	}
}

// note warns once for each description of something that its jobs do without.
func (m *maker) note(name, format string, args ...any) {
	at := m.job.At()
	m.r.warnOnce(at.File+"\x00"+name, at, "%s: %s", name, fmt.Sprintf(format, args...))
}

// files finds the files that the job reads and writes. Their ids are paths from the .dag's folder.
func (m *maker) files() {
	dir := join(m.n.dir, m.value("initialdir", "initial_dir", "iwd"))
	preserved := m.flag(false, "preserve_relative_paths")
	if m.t.Stdin = m.stream(dir, "input", "stdin"); m.t.Stdin != "" {
		m.t.Inputs = append(m.t.Inputs, m.t.Stdin)
	}
	for _, file := range list(m.value("transfer_input_files", "transferinputfiles")) {
		switch {
		case strings.Contains(file, "://"):
			m.note("transfer_input_files", "%s is not fetched", file)
		case strings.HasSuffix(file, "/"):
			m.note("transfer_input_files", "folder %s is not handed on: name its files", file)
		default:
			m.input(join(dir, file), file, preserved)
		}
	}
	remaps, err := readRemaps(m.value("transfer_output_remaps"))
	if err != nil {
		m.wrong("%w", err)
	}
	for _, file := range list(m.value("transfer_output_files", "transferoutputfiles")) {
		m.output(dir, file, preserved, remaps)
	}
	m.t.Stdout = m.written(m.stream(dir, "output", "stdout"), "output")
	m.t.Stderr = m.written(m.stream(dir, "error", "stderr"), "error")
	if strings.EqualFold(m.value("should_transfer_files"), "no") {
		m.note("should_transfer_files", "a job finds no files but those of transfer_input_files")
	}
}

// stream is the file of a standard stream; "": none.
func (m *maker) stream(dir string, names ...string) string {
	file := m.value(names...)
	if file == "" || file == "/dev/null" {
		return ""
	}
	return join(dir, file)
}

func (m *maker) input(id, file string, preserved bool) {
	m.t.Inputs = append(m.t.Inputs, id)
	m.name(id, file, preserved)
}

// name notes what a file is called where the job runs: its bare name, unless paths are preserved.
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

// output is a file that the job makes: its place, from the initial folder, is its bare name, unless it is said to be
// another.
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
	id := join(dir, to)
	m.t.Outputs = append(m.t.Outputs, id)
	m.name(id, file, true)
}

// readRemaps reads transfer_output_remaps, "NAME = PATH; …".
func readRemaps(text string) (map[string]string, error) {
	all := make(map[string]string)
	text = strings.Trim(text, `"`)
	for _, pair := range strings.Split(text, ";") {
		name, to, ok := strings.Cut(pair, "=")
		if name, to = strings.TrimSpace(name), strings.TrimSpace(to); ok && name != "" && to != "" {
			all[path.Clean(name)] = to
		} else if strings.TrimSpace(pair) != "" {
			return nil, fmt.Errorf("transfer_output_remaps: %.40q is not NAME = PATH", pair)
		}
	}
	return all, nil
}

// written makes an output of a standard stream's file. Of several jobs with the same one the first has it: where they
// may run side by side, HTCondor leaves it to chance who does.
func (m *maker) written(file, command string) string {
	if file == "" || slices.Contains(m.t.Outputs, file) {
		return file
	}
	if m.r.streams[file] {
		m.note(command, "file %s belongs to another job, too; that of node %q stays with its attempt", file, m.n.name)
		return ""
	}
	m.r.streams[file] = true
	m.t.Outputs = append(m.t.Outputs, file)
	return file
}

// list splits a list at commas.
func list(text string) []string {
	var all []string
	for _, item := range strings.Split(strings.Trim(text, `"`), ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// conduct reads how the job is treated; what is said of the node outweighs it.
func (m *maker) conduct() {
	if value := m.value("priority", "prio"); value != "" {
		if n, err := strconv.Atoi(value); err == nil && n != 0 {
			if m.t.Control == nil {
				m.t.Control = &workflow.Control{}
			}
			m.t.Control.Priority = n
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

// seconds reads a duration, to the nanosecond.
func (m *maker) seconds(name, value string) time.Duration {
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || s < 0 || s > math.MaxInt64/2/float64(time.Second) {
		m.note(name, "%.60s is no number of seconds", value)
		return 0
	}
	return time.Duration(math.Round(s * float64(time.Second)))
}

// Attributes of jobs in which Write keeps what HTCondor has no command for.
const (
	attributeTask     = "my.corraltask"           // the id, where the node has another name
	attributeName     = "my.corraltransformation" // where the executable does not say it
	attributeEstimate = "my.corralestimate"       // in seconds
	attributeTimeout  = "my.corraltimeout"        // likewise, where it is not a whole number
)

// ours reads what Write wrote.
func (m *maker) ours() {
	for name, field := range map[string]*string{attributeTask: &m.t.ID, attributeName: &m.t.Name} {
		if value := m.value(name); value != "" {
			if text, ok := classad.ParseOld(value).(string); ok {
				*field = text
			}
		}
	}
	if value := m.value(attributeEstimate); value != "" {
		m.t.Estimate = m.seconds(attributeEstimate, value)
		m.t.Instant = m.t.Estimate == 0
	}
	if value := m.value(attributeTimeout); value != "" {
		m.t.Timeout = m.seconds(attributeTimeout, value)
	}
}

// warn tells of commands that nothing is made of although they may change what the job does.
func (m *maker) warn() {
	at := m.job.At()
	if m.r.warned[at.String()+"\x00commands"] {
		return
	}
	m.r.warned[at.String()+"\x00commands"] = true
	for _, name := range slices.Sorted(maps.Keys(unheeded)) {
		if value, _, _ := m.job.Value(name); value != "" {
			m.note(name, "it is ignored: %s", unheeded[name])
		}
	}
}

// unheeded are commands that a run does without, and what that means.
var unheeded = map[string]string{
	"requirements":         "workers are chosen by cpus, memory, disk and gpus",
	"on_exit_hold":         "no job is held",
	"on_exit_remove":       "a job that ends is not started again, but for retries",
	"periodic_hold":        "no job is held",
	"periodic_remove":      "no job is removed by an expression",
	"periodic_release":     "no job is held",
	"hold":                 "no job is held",
	"deferral_time":        "jobs start as soon as they can",
	"retry_until":          "each exit status but 0 is tried again",
	"success_exit_code":    "0 alone is success",
	"allowed_job_duration": "only allowed_execute_duration limits a job",
	"checkpoint_exit_code": "jobs have no checkpoints",
	"concurrency_limits":   "there are no such limits",
	"transfer_plugins":     "nothing is fetched",
	"next_job_start_delay": "jobs start as soon as they can",
}
