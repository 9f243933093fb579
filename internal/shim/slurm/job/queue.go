package job

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A column is a column of squeue: named by a letter (-o), by a name (-O), or both.
type column struct {
	letter byte              // in -o; 0: none
	name   string            // in -O, in any case
	header string            // header of the column
	value  func(*row) string // in full length; the printer truncates it
}

// fixed returns the value of a column that is the same for all jobs.
func fixed(text string) func(*row) string { return func(*row) string { return text } }

// columns are the columns of squeue. For features that Corral does not support, they show the values that Slurm shows
// for jobs that do not use these features.
var columns = []column{
	{'a', "account", "ACCOUNT", func(r *row) string { return cmp.Or(r.Spec.Account, null) }},
	// For a waiting array this is the array's id.
	{'A', "jobid", "JOBID", (*row).raw},
	// This is the host on which the script runs.
	{'B', "batchhost", "EXEC_HOST", func(r *row) string { return cmp.Or(r.Node, "n/a") }},
	{'c', "mincpus", "MIN_CPUS", func(r *row) string { return strconv.Itoa(max(1, r.Spec.Size.CPUsPerTask)) }},
	{'C', "numcpus", "CPUS", func(r *row) string { return strconv.Itoa(r.Spec.Size.CPUs) }},
	{'d', "mintmpdisk", "MIN_TMP_DISK", fixed("0")},
	// sbatch refuses jobs with more nodes.
	{'D', "numnodes", "NODES", fixed("1")},
	{'e', "endtime", "END_TIME", func(r *row) string { return moment(r.end(), "N/A") }},
	// Only conditions that are not yet met are shown.
	{'E', "dependency", "DEPENDENCY", (*row).dependency},
	{'f', "feature", "FEATURES", fixed(null)},
	// %F_%K is also a job's id.
	{'F', "arrayjobid", "ARRAY_JOB_ID", (*row).array},
	{'g', "groupname", "GROUP", func(r *row) string { return r.Spec.User.Group }},
	{'G', "groupid", "GROUP", func(r *row) string { return strconv.Itoa(r.Spec.User.GID) }},
	// Several jobs share a worker.
	{'h', "oversubscribe", "OVER_SUBSCRIBE", fixed("OK")},
	{'H', "sockets", "SOCKETS_PER_NODE", fixed("*")},
	// The text is cut to the size of Slurm's buffer.
	{'i', "jobarrayid", "JOBID", func(r *row) string { return cut(r.id(), 31) }},
	{'I', "cores", "CORES_PER_SOCKET", fixed("*")},
	{'j', "name", "NAME", func(r *row) string { return r.Name }},
	{'J', "threads", "THREADS_PER_CORE", fixed("*")},
	{'k', "comment", "COMMENT", func(r *row) string { return cmp.Or(r.Spec.Comment, null) }},
	// For a waiting array these are the numbers of all waiting tasks.
	{'K', "arraytaskid", "ARRAY_TASK_ID", (*row).arrayTask},
	{'l', "timelimit", "TIME_LIMIT", func(r *row) string { return r.limit(notation.Clock) }},
	{'L', "timeleft", "TIME_LEFT", (*row).left},
	{'m', "minmemory", "MIN_MEMORY", (*row).memory},
	// The time is counted until now, or until the job's end.
	{'M', "timeused", "TIME", func(r *row) string { return notation.Clock(r.elapsed()) }},
	{'n', "reqnodes", "REQ_NODES", fixed("")},
	// Unlike %R, this column never shows a reason.
	{'N', "nodelist", "NODELIST", func(r *row) string { return r.Node }},
	{'o', "command", "COMMAND", func(r *row) string { return cmp.Or(r.Spec.Command.Line, null) }},
	{'O', "contiguous", "CONTIGUOUS", fixed("0")},
	{'p', "priority", "PRIORITY", func(r *row) string { return fmt.Sprintf("%.14f", float64(r.Priority)/(1<<32-1)) }},
	{'P', "partition", "PARTITION", func(r *row) string { return r.Spec.Partition }},
	{'q', "qos", "QOS", func(r *row) string { return cmp.Or(r.Spec.QOS, "normal") }},
	{'Q', "prioritylong", "PRIORITY", func(r *row) string { return strconv.FormatInt(r.Priority, 10) }},
	{'r', "reason", "REASON", func(r *row) string { return string(r.Reason) }},
	// This is the last of the default columns.
	{'R', "reasonlist", "NODELIST(REASON)", (*row).where},
	// Only obsolete machines have this value.
	{'s', "selectjobinfo", "", fixed("")},
	{'S', "starttime", "START_TIME", func(r *row) string { return moment(r.start(), "N/A") }},
	{'t', "statecompact", "ST", func(r *row) string { return r.State.Code() }},
	{'T', "state", "STATE", func(r *row) string { return string(r.State) }},
	{'u', "username", "USER", func(r *row) string { return r.Spec.User.Name }},
	{'U', "userid", "UID", func(r *row) string { return strconv.Itoa(r.Spec.User.UID) }},
	{'v', "reservation", "RESERVATION", fixed(null)},
	{'V', "submittime", "SUBMIT_TIME", func(r *row) string { return moment(r.Times.Submitted, "N/A") }},
	{'w', "wckey", "WCKEY", fixed(null)},
	{'W', "licenses", "LICENSES", fixed(null)},
	{'x', "excnodes", "EXC_NODES", fixed("")},
	{'X', "corespec", "CORE_SPEC", fixed("N/A")},
	{'y', "nice", "NICE", func(r *row) string { return strconv.Itoa(r.Spec.Nice) }},
	{'Y', "schednodes", "SCHEDNODES", fixed(null)},
	{'z', "sct", "S:C:T", fixed("*:*:*")},
	{'Z', "workdir", "WORK_DIR", func(r *row) string { return r.Spec.Files.Directory }},
	// The value is in the format of wait(2).
	{0, "exit_code", "EXIT_CODE", func(r *row) string { return strconv.Itoa(r.Exit.Status<<8 | r.Exit.Signal) }},
	{0, "maxcpus", "MAX_CPUS", func(r *row) string { return strconv.Itoa(r.Spec.Size.CPUs) }},
	{0, "numtasks", "TASKS", func(r *row) string { return strconv.Itoa(r.Spec.Size.Tasks) }},
	{0, "restartcnt", "RESTART_COUNT", func(r *row) string { return strconv.Itoa(r.Restarts) }},
	{0, "stdout", "STDOUT", func(r *row) string { return r.pattern(r.Spec.Files.Output) }},
	{0, "stderr", "STDERR", func(r *row) string { return r.pattern(cmp.Or(r.Spec.Files.Error, r.Spec.Files.Output)) }},
	{0, "stdin", "STDIN", (*row).stdin},
	{0, "tres-alloc", "TRES_ALLOC", (*row).tres},
}

// cut returns at most length bytes of a text.
func cut(text string, length int) string { return text[:min(len(text), length)] }

// isTime reports whether the column contains durations, which are never truncated.
func (c *column) isTime() bool { return c.letter == 'l' || c.letter == 'L' || c.letter == 'M' }

// A Queue is a parsed call of squeue.
type Queue struct {
	Filter
	listing
	format []place[column] // from -o, -O, or the default
	after  string          // the text after the last column
	each   bool            // each task of an array on its own line
	sort   []string        // letters of columns, with a minus for descending order
	Title  string          // the cluster, if one was named; empty: none
}

// Default formats of squeue.
const (
	queueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	longFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	startFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
)

var squeue = &command{
	Getopt: notation.Getopt{Command: "squeue", Options: notation.Options(
		"account|A= all|a array-unique federation noheader|h hide iterate|i= jobs|j? json local long|l licenses|L= " +
			"clusters|M= cluster= me name|n= noconvert format|o= Format|O= partition|p= priority|P qos|q= " +
			"reservation|R= array|r sibling steps|s? sort|S= start states|t= user|u= users= verbose|v version|V " +
			"nodelist|w= yaml help usage")},
	stray: "Unrecognized option:", loose: "jobs", // Slurm's wording
	refused: "steps iterate json yaml licenses reservation nodelist",
	why:     "squeue shows jobs once, as lines of text",
}

// ParseQueue parses a command line of squeue, without its name; defaults are read from the environment. me is the user
// for --me.
func ParseQueue(words []string, getenv func(string) string, me string) (*Queue, error) {
	q := &Queue{Filter: Filter{me: me}}
	if err := q.read(squeue, words, q.option); err != nil {
		return nil, err
	}
	if len(q.States) == 0 && !q.AllStates {
		q.States = []State{Pending, Running, Completing}
	}
	if q.format != nil {
		return q, nil
	}
	format := cmp.Or(getenv("SQUEUE_FORMAT"), queueFormat)
	switch {
	case q.long:
		format = longFormat // -l overrides the environment
	case q.sort != nil && q.sort[0] == "start":
		format = startFormat
	}
	return q, q.letters(format)
}

// option handles one option of squeue. -o, -O and --start all set the shown columns; the last one counts.
func (q *Queue) option(g notation.Given) (err error) {
	switch g.Name {
	case "array", "array-unique":
		q.each = true
	case "start":
		q.sort, q.States = []string{"start"}, []State{Pending} // --start; no column has this name
	case "sort":
		q.sort = strings.Split(g.Value, ",")
	case "format":
		return q.letters(g.Value)
	case "Format":
		q.format, err = parseNames(g.Value)
		q.after = "" // no text separates the columns
	default:
		return q.Filter.option(g)
	}
	return err
}

// letters sets the format from the argument of -o.
func (q *Queue) letters(format string) (err error) {
	letterOf := func(c *column) byte { return c.letter }
	q.format, q.after, err = parseFormat(format, ".", "job", columns, letterOf)
	return err
}

// parseNames parses the argument of -O: "jobid:8,name:.30". Columns without a width are 20 characters wide.
func parseNames(names string) ([]place[column], error) {
	var list []place[column]
	for one := range strings.SplitSeq(names, ",") {
		name, size, sized := strings.Cut(one, ":")
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(columns, func(c column) bool { return strings.EqualFold(c.name, name) })
		if i < 0 {
			return nil, fmt.Errorf("Invalid job format specification: %s", name) // Slurm's wording
		}
		p := place[column]{column: &columns[i], width: 20, right: strings.HasPrefix(size, ".")}
		if sized {
			p.width, _ = strconv.Atoi(cut(strings.TrimLeft(size, "."), 4))
		}
		list = append(list, p)
	}
	return list, nil
}

// ErrNoJob is the error of squeue and scontrol for an unknown job.
var ErrNoJob = errors.New("Invalid job id specified") // Slurm's wording

// Write prints the selected jobs; jobs must be sorted by id. If a single job was named and does not exist, the error is
// ErrNoJob.
func (q *Queue) Write(w io.Writer, jobs []Job, now time.Time) error {
	if len(q.Jobs) == 1 && !slices.ContainsFunc(jobs, func(j Job) bool { return j.is(q.Jobs[0]) }) {
		return ErrNoJob
	}
	list := rows(q.Select(jobs), q.each || q.tasks(), now)
	q.order(list)
	var b strings.Builder
	b.WriteString(titled(q.Title, q.noHeader))
	q.top(&b, now)
	if !q.noHeader {
		for _, p := range q.format {
			b.WriteString(p.before + cell(p.column.header, p.width, p.right))
		}
		b.WriteString(q.after + "\n")
	}
	for i := range list {
		for _, p := range q.format {
			text := p.column.value(&list[i])
			if len(text) <= p.width || !p.column.isTime() {
				text = cell(text, p.width, p.right)
			}
			b.WriteString(p.before + text)
		}
		b.WriteString(q.after + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// titled returns the title line of a list, which is empty if no cluster was named.
func titled(cluster string, noHeader bool) string {
	if cluster == "" || noHeader {
		return ""
	}
	return "CLUSTER: " + cluster + "\n"
}

// order sorts rows like squeue: by partition, state and priority, unless -S lists letters of columns, with a minus for
// descending order.
func (q *Queue) order(list []row) {
	by := q.sort
	if len(by) == 0 {
		by = []string{"P", "t", "-p"} // Slurm's default
	}
	slices.SortStableFunc(list, func(a, b row) int {
		for _, key := range by {
			name, down := strings.CutPrefix(key, "-")
			n := compare(strings.TrimPrefix(name, "+"), &a, &b)
			if down {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
}

// compare compares rows by one column: numbers as numbers, other values as texts.
func compare(letter string, a, b *row) int {
	switch letter {
	case "i", "F":
		return cmp.Or(a.family()-b.family(), a.ArrayTask-b.ArrayTask)
	case "A":
		return a.ID - b.ID
	case "p", "Q":
		return int(a.Priority - b.Priority)
	case "M":
		return int(a.elapsed() - b.elapsed())
	case "C":
		return a.Spec.Size.CPUs - b.Spec.Size.CPUs
	}
	i := slices.IndexFunc(columns, func(c column) bool { return letter != "" && c.letter == letter[0] })
	if i < 0 {
		return 0
	}
	return strings.Compare(columns[i].value(a), columns[i].value(b))
}
