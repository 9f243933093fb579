package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// squeueColumns are the columns of squeue. For features that Corral does not support, the last of them show the values
// that Slurm shows for jobs that do not use these features.
var squeueColumns = []column[*row]{
	lettered('a', "account", "ACCOUNT", func(r *row) string { return cmp.Or(r.Spec.Account, null) }),
	lettered('A', "jobid", "JOBID", (*row).raw), // for a waiting array the array's id
	// The host on which the script runs.
	lettered('B', "batchhost", "EXEC_HOST", func(r *row) string { return cmp.Or(r.Node, "n/a") }),
	lettered('c', "mincpus", "MIN_CPUS", (*row).eachCPUs),
	lettered('C', "numcpus", "CPUS", (*row).cpus),
	always('D', "numnodes", "NODES", "1"), // sbatch refuses jobs with more nodes
	lettered('e', "endtime", "END_TIME", func(r *row) string { return moment(r.end(), "N/A") }),
	lettered('E', "dependency", "DEPENDENCY", (*row).dependency), // only conditions that are not yet met
	lettered('F', "arrayjobid", "ARRAY_JOB_ID", (*row).array),    // %F_%K is also a job's id
	lettered('g', "groupname", "GROUP", (*row).group),
	lettered('G', "groupid", "GROUP", (*row).groupID),
	// The text is cut to the size of Slurm's buffer.
	lettered('i', "jobarrayid", "JOBID", func(r *row) string { return cut(r.id(), 31) }),
	lettered('j', "name", "NAME", (*row).name),
	lettered('k', "comment", "COMMENT", func(r *row) string { return cmp.Or(r.Spec.Comment, null) }),
	lettered('K', "arraytaskid", "ARRAY_TASK_ID", (*row).arrayTask), // for a waiting array all waiting tasks
	uncut(lettered('l', "timelimit", "TIME_LIMIT", (*row).limitShort)),
	uncut(lettered('L', "timeleft", "TIME_LEFT", (*row).left)),
	lettered('m', "minmemory", "MIN_MEMORY", func(r *row) string { return memory(r.Spec.Size.MemoryMiB) }),
	// The time is counted until now, or until the job's end.
	uncut(lettered('M', "timeused", "TIME", func(r *row) string { return notation.Clock(r.elapsed()) })),
	lettered('N', "nodelist", "NODELIST", func(r *row) string { return r.Node }), // never a reason
	lettered('o', "command", "COMMAND", func(r *row) string { return cmp.Or(r.Spec.Command, null) }),
	lettered('p', "priority", "PRIORITY", func(r *row) string {
		return fmt.Sprintf("%.14f", float64(r.Priority)/(1<<32-1))
	}),
	lettered('P', "partition", "PARTITION", (*row).partition),
	lettered('q', "qos", "QOS", (*row).quality),
	lettered('Q', "prioritylong", "PRIORITY", (*row).priority),
	lettered('r', "reason", "REASON", func(r *row) string { return string(r.Reason) }),
	lettered('R', "reasonlist", "NODELIST(REASON)", (*row).where),
	lettered('S', "starttime", "START_TIME", func(r *row) string { return moment(r.start(), "N/A") }),
	lettered('t', "statecompact", "ST", func(r *row) string { return r.State.code() }),
	lettered('T', "state", "STATE", func(r *row) string { return string(r.State) }),
	lettered('u', "username", "USER", (*row).user),
	lettered('U', "userid", "UID", (*row).userID),
	lettered('V', "submittime", "SUBMIT_TIME", func(r *row) string { return moment(r.Submitted, "N/A") }),
	lettered('y', "nice", "NICE", func(r *row) string { return strconv.Itoa(r.Spec.Nice) }),
	lettered('Z', "workdir", "WORK_DIR", (*row).directory),
	// The value is in the format of wait(2).
	lettered(0, "exit_code", "EXIT_CODE", func(r *row) string {
		return strconv.Itoa(r.Exit.Status<<8 | r.Exit.Signal)
	}),
	lettered(0, "maxcpus", "MAX_CPUS", (*row).cpus),
	lettered(0, "numtasks", "TASKS", func(r *row) string { return strconv.Itoa(r.Spec.Size.Tasks) }),
	lettered(0, "restartcnt", "RESTART_COUNT", func(r *row) string { return strconv.Itoa(r.Restarts) }),
	lettered(0, "stdout", "STDOUT", func(r *row) string { return r.pattern(r.Spec.Output) }),
	lettered(0, "stderr", "STDERR", func(r *row) string { return r.pattern(r.errorFile()) }),
	lettered(0, "stdin", "STDIN", (*row).stdin),
	lettered(0, "tres-alloc", "TRES_ALLOC", func(r *row) string {
		return r.resources("cpu mem node billing gres/gpu")
	}),
	always('d', "mintmpdisk", "MIN_TMP_DISK", "0"), always('f', "feature", "FEATURES", null),
	always('h', "oversubscribe", "OVER_SUBSCRIBE", "OK"), always('H', "sockets", "SOCKETS_PER_NODE", "*"),
	always('I', "cores", "CORES_PER_SOCKET", "*"), always('J', "threads", "THREADS_PER_CORE", "*"),
	always('n', "reqnodes", "REQ_NODES", ""), always('O', "contiguous", "CONTIGUOUS", "0"),
	always('s', "selectjobinfo", "", ""), always('v', "reservation", "RESERVATION", null),
	always('w', "wckey", "WCKEY", null), always('W', "licenses", "LICENSES", null),
	always('x', "excnodes", "EXC_NODES", ""), always('X', "corespec", "CORE_SPEC", "N/A"),
	always('Y', "schednodes", "SCHEDNODES", null), always('z', "sct", "S:C:T", "*:*:*"),
}

// always returns a column with the same value for all jobs.
func always(letter byte, name, header, value string) column[*row] {
	return lettered(letter, name, header, same[*row](value))
}

// Default formats of squeue.
const (
	queueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	longFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	startFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
)

// squeueOptions are the options of squeue. The last of -o and -O sets the shown columns.
var squeueOptions = notation.Command[query]{Name: "squeue", Options: []option{
	{Names: "account|A=", Set: accounts},
	{Names: "array-unique array|r", Set: each},
	{Names: "noheader|h", Set: noHeader},
	{Names: "jobs|j?", Set: jobIDs},
	{Names: "long|l", Set: long},
	{Names: "clusters|M= cluster=", Set: clusters},
	{Names: "me", Set: myself},
	{Names: "name|n=", Set: names},
	{Names: "format|o=", Set: func(q *query, g notation.Given) error { return q.byLetters(g.Value) }},
	{Names: "Format|O=", Set: func(q *query, g notation.Given) (err error) {
		q.lines, err = byColons(g.Value)
		return err
	}},
	{Names: "partition|p=", Set: partitions},
	{Names: "qos|q=", Set: qualities},
	{Names: "sort|S=", Set: func(q *query, g notation.Given) error {
		q.sort, q.starts = strings.Split(g.Value, ","), false
		return nil
	}},
	{Names: "start", Set: func(q *query, _ notation.Given) error {
		q.sort, q.starts, q.states = nil, true, []state{pending}
		return nil
	}},
	{Names: "states|t=", Set: inStates},
	{Names: "user|u= users=", Set: users},
	{Names: "version|V help usage", Set: other},
	{Names: "all|a federation hide local noconvert priority|P sibling verbose|v"},
	{Names: "iterate|i= json licenses|L= reservation|R= steps|s? nodelist|w= yaml", Set: notShown},
}}

var notShown = notation.Refuse[query]("squeue shows jobs once, as lines of text")

// parseSqueue parses a command line of squeue, without its name; defaults are read from the environment. me is the user
// for --me.
func parseSqueue(words []string, getenv func(string) string, me string) (*query, error) {
	q := &query{me: me}
	given, rest, err := squeueOptions.Parse(words)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 && slices.Contains(given, notation.Given{Name: "jobs"}) { // -j 7
		given, rest = append(given, notation.Given{Name: "jobs", Value: rest[0]}), rest[1:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("Unrecognized option: %s", rest[0]) // Slurm's wording
	}
	if err := squeueOptions.Apply(q, given...); err != nil {
		return nil, err
	}
	if len(q.states) == 0 && !q.allStates {
		q.states = []state{pending, running, completing}
	}
	switch {
	case q.lines.places != nil:
		return q, nil
	case q.long: // -l overrides the environment
		return q, q.byLetters(longFormat)
	case q.starts:
		return q, q.byLetters(startFormat)
	}
	return q, q.byLetters(cmp.Or(getenv("SQUEUE_FORMAT"), queueFormat))
}

// byLetters sets the shown columns from the argument of -o.
func (q *query) byLetters(text string) (err error) {
	q.lines, err = byLetters(text, ".", "job", squeueColumns)
	return err
}

// byColons parses the argument of -O: "jobid:8,name:.30". Columns without a width are 20 characters wide.
func byColons(text string) (f format[*row], err error) {
	for one := range strings.SplitSeq(text, ",") {
		name, size, sized := strings.Cut(one, ":")
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(squeueColumns, func(c column[*row]) bool { return strings.EqualFold(c.name, name) })
		if i < 0 {
			return f, fmt.Errorf("Invalid job format specification: %s", name) // Slurm's wording
		}
		p := place[*row]{column: &squeueColumns[i], size: 20, right: strings.HasPrefix(size, ".")}
		if sized {
			p.size, _ = strconv.Atoi(cut(strings.TrimLeft(size, "."), 4))
		}
		f.places = append(f.places, p)
	}
	return f, nil
}

// squeue lists waiting and running jobs.
func squeue(c *call) error {
	q, err := parseSqueue(c.args, os.Getenv, currentUser().Name)
	if err != nil {
		return err
	}
	if q.other != "" {
		return c.tellOther(q.other)
	}
	for _, name := range strangers(q.users) {
		fmt.Fprintf(c.Err, "squeue: error: Invalid user: %s\n\n", name) // like Slurm, which continues with the others
	}
	if err := openOf(c, q.clusters); err != nil {
		return err
	}
	now := time.Now()
	jobs, err := c.chosen(q, now.Add(-minJobAge))
	if err != nil {
		return err
	}
	return q.writeQueue(c.Out, c.title, jobs, now)
}

// errNoJob is the error of squeue and scontrol for an unknown job.
var errNoJob = errors.New("Invalid job id specified") // Slurm's wording

// writeQueue prints the selected jobs like squeue; jobs must be sorted by id. If a single job was named and does not
// exist, the error is errNoJob.
func (q *query) writeQueue(w io.Writer, title string, jobs []job, now time.Time) error {
	if len(q.jobs) == 1 && !slices.ContainsFunc(jobs, func(j job) bool { return j.is(q.jobs[0]) }) {
		return errNoJob
	}
	list := rows(q.choose(jobs), q.each || q.tasks(), now)
	keys := q.sort
	if len(keys) == 0 && !q.starts {
		keys = []string{"P", "t", "-p"} // Slurm's default
	}
	slices.SortStableFunc(list, func(a, b *row) int {
		for _, key := range keys { // letters of columns, with a minus for descending order
			letter, down := strings.CutPrefix(key, "-")
			n := compare(strings.TrimPrefix(letter, "+"), a, b)
			if down {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
	return q.lines.write(w, q, title, list, now)
}

// compare compares rows by one column: numbers as numbers, other values as texts.
func compare(letter string, a, b *row) int {
	switch letter {
	case "i", "F":
		return cmp.Or(a.family()-b.family(), a.ArrayTask-b.ArrayTask)
	case "A":
		return a.ID - b.ID
	case "p", "Q":
		return cmp.Compare(a.Priority, b.Priority)
	case "M":
		return cmp.Compare(a.elapsed(), b.elapsed())
	case "C":
		return a.Spec.Size.CPUs - b.Spec.Size.CPUs
	}
	i := slices.IndexFunc(squeueColumns, func(c column[*row]) bool { return letter != "" && c.letter == letter[0] })
	if i < 0 {
		return 0
	}
	return strings.Compare(squeueColumns[i].value(a), squeueColumns[i].value(b))
}
