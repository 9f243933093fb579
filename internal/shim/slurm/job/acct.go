package job

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A field is a field of sacct. If step is nil, the field has the same value for the job's only step, the batch script,
// as for the job.
type field struct {
	name  string            // as shown in the header
	width int               // left-aligned if negative
	value func(*row) string // for the job
	step  func(*row) string // for its script; nil: same as value
}

// empty returns no text: it is used for values that are not measured, and for a step's values of fields that only jobs
// have.
var empty = fixed("")

// fields are the fields of sacct. Values that Corral does not measure are empty, as in a Slurm that does not measure
// them.
var fields = []field{
	{"Account", 10, func(r *row) string { return r.Spec.Account }, nil},
	{"AdminComment", 15, empty, nil},
	{"AllocCPUS", 10, func(r *row) string { return strconv.Itoa(r.Spec.Size.CPUs) }, nil},
	{"AllocNodes", 10, nodesGiven, nil},
	{"AllocTRES", 10, allocated(jobTRES), allocated(stepTRES)},
	{"AssocID", 7, empty, nil}, {"AveCPU", 10, empty, nil}, {"AveRSS", 10, empty, nil}, {"AveVMSize", 10, empty, nil},
	{"BlockID", 16, empty, nil}, {"Cluster", 10, func(r *row) string { return r.Spec.Partition }, nil},
	{"Comment", 14, func(r *row) string { return r.Spec.Comment }, empty}, {"Constraints", 19, empty, nil},
	{"ConsumedEnergy", 14, empty, fixed("0")}, {"Container", 19, empty, nil},
	{"CPUTime", 10, func(r *row) string { return notation.FullClock(cpuTime(r)) }, nil},
	{"CPUTimeRAW", 10, func(r *row) string { return whole(cpuTime(r)) }, nil},
	// Slurm shows the exit code of srun's steps here; the shim does not distinguish steps.
	{"DerivedExitCode", 15, fixed("0:0"), empty},
	{"Elapsed", 10, func(r *row) string { return notation.FullClock(r.elapsed()) }, nil},
	{"ElapsedRaw", 10, func(r *row) string { return whole(r.elapsed()) }, nil},
	{"Eligible", 19, func(r *row) string { return moment(r.Times.Eligible, "Unknown") }, begun},
	{"End", 19, func(r *row) string { return moment(r.Times.Ended, "Unknown") }, nil},
	{"ExitCode", 8, exitCode, stepExitCode},
	// This is Slurm's spelling.
	{"Flags", 19, func(r *row) string { return "SchedMain,StartRecieved" }, empty},
	{"GID", 6, func(r *row) string { return strconv.Itoa(r.Spec.User.GID) }, empty},
	{"Group", 9, func(r *row) string { return r.Spec.User.Group }, empty},
	// The id is shown in the notation for users.
	{"JobID", -12, (*row).id, func(r *row) string { return r.id() + ".batch" }},
	{"JobIDRaw", -12, (*row).raw, func(r *row) string { return r.raw() + ".batch" }},
	{"JobName", 10, func(r *row) string { return r.Name }, fixed("batch")}, {"Layout", 9, empty, fixed("Unknown")},
	{"MaxDiskRead", 12, empty, nil}, {"MaxDiskWrite", 12, empty, nil}, {"MaxRSS", 10, empty, nil},
	{"MaxVMSize", 10, empty, nil}, {"McsLabel", 12, empty, nil}, {"MinCPU", 10, empty, nil},
	{"NCPUS", 10, func(r *row) string { return strconv.Itoa(r.Spec.Size.CPUs) }, nil},
	// sbatch refuses jobs with more nodes.
	{"NNodes", 8, fixed("1"), nil},
	{"NodeList", 15, func(r *row) string { return cmp.Or(r.Node, "None assigned") }, nil},
	{"NTasks", 8, empty, fixed("1")},
	{"Partition", 10, func(r *row) string { return r.Spec.Partition }, empty},
	{"Priority", 10, func(r *row) string { return strconv.FormatInt(r.Priority, 10) }, empty},
	{"QOS", 10, func(r *row) string { return cmp.Or(r.Spec.QOS, "normal") }, empty}, {"QOSRAW", 6, fixed("1"), empty},
	// Slurm's database does not store it.
	{"Reason", 22, fixed("None"), empty},
	{"ReqCPUS", 8, func(r *row) string { return strconv.Itoa(r.Spec.Size.CPUs) }, nil},
	{"ReqMem", 10, requestedMemory, empty}, {"ReqNodes", 8, fixed("1"), nil},
	{"ReqTRES", 10, jobTRES, empty}, {"Reservation", 20, empty, nil},
	{"Reserved", 10, func(r *row) string { return notation.FullClock(waited(r)) }, empty},
	{"ResvCPU", 10, func(r *row) string {
		return notation.FullClock(waited(r) * time.Duration(r.Spec.Size.CPUs))
	}, empty},
	{"Start", 19, acctStart, begun}, {"State", 10, acctState, stepState},
	{"Submit", 19, func(r *row) string { return moment(r.Times.Submitted, "Unknown") }, begun},
	{"SubmitLine", 20, func(r *row) string { return r.Spec.Command.Submit }, empty},
	{"Suspended", 10, fixed("00:00:00"), nil},
	{"SystemComment", 15, empty, nil}, {"SystemCPU", 10, fixed("00:00:00"), nil},
	{"Timelimit", 10, func(r *row) string { return r.limit(notation.FullClock) }, empty},
	{"TimelimitRaw", 10, func(r *row) string {
		return r.limit(func(d time.Duration) string { return strconv.Itoa(int(d / time.Minute)) })
	}, empty},
	{"TotalCPU", 10, fixed("00:00:00"), nil}, {"TRESUsageInTot", 14, empty, nil},
	{"UID", 6, func(r *row) string { return strconv.Itoa(r.Spec.User.UID) }, empty},
	{"User", 9, func(r *row) string { return r.Spec.User.Name }, empty}, {"UserCPU", 10, fixed("00:00:00"), nil},
	{"WCKey", 10, empty, nil}, {"WorkDir", 20, func(r *row) string { return r.Spec.Files.Directory }, empty},
}

func whole(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// nodesGiven returns the number of nodes allocated to the job.
func nodesGiven(r *row) string {
	if r.Node == "" {
		return "0"
	}
	return "1"
}

func cpuTime(r *row) time.Duration { return r.elapsed() * time.Duration(r.Spec.Size.CPUs) }

// waited returns the time for which the job waited after it became eligible.
func waited(r *row) time.Duration {
	from, to := r.Times.Eligible, r.start()
	if to.IsZero() {
		to = r.now // it is still waiting
	}
	if from.IsZero() {
		return 0
	}
	return max(0, seconds(to).Sub(seconds(from)))
}

// jobTRES lists the job's resources, in the order of Slurm's database.
func jobTRES(r *row) string { return fmt.Sprintf("billing=%d,", r.Spec.Size.CPUs) + stepTRES(r) }

// stepTRES lists a step's resources, in sacct's notation: without billing, which belongs to the job.
func stepTRES(r *row) string {
	text := fmt.Sprintf("cpu=%d,", r.Spec.Size.CPUs)
	if r.Spec.Size.GPUs > 0 {
		text += fmt.Sprintf("gres/gpu=%d,", r.Spec.Size.GPUs)
	}
	if total := r.Spec.Size.Total(); total > 0 {
		text += "mem=" + notation.Memory(total) + ","
	}
	return text + "node=1"
}

// allocated returns tres for jobs that have begun, and an empty text for others.
func allocated(tres func(*row) string) func(*row) string {
	return func(r *row) string {
		if r.Node == "" {
			return ""
		}
		return tres(r)
	}
}

func requestedMemory(r *row) string {
	if total := r.Spec.Size.Total(); total > 0 {
		return notation.Memory(total)
	}
	return "0"
}

// exitCode returns the job's exit code, which Slurm discards if it ended the job itself. The script's exit code is
// kept.
func exitCode(r *row) string {
	if r.State == Cancelled || r.State == Timeout || r.State == NodeFail {
		return "0:0"
	}
	return r.Exit.String()
}

func stepExitCode(r *row) string {
	if r.State == NodeFail { // no worker reported the script's end
		return ""
	}
	return r.Exit.String()
}

func acctState(r *row) string {
	if r.State == Cancelled || r.State == Completing { // only cancelled jobs are completing
		return fmt.Sprintf("CANCELLED by %d", r.Spec.User.UID)
	}
	return string(r.State)
}

// stepState returns the script's state: a script that is ended by a signal counts as cancelled.
func stepState(r *row) string {
	switch s := r.State; {
	case s == Completing:
		return string(Running)
	case s == Timeout || s == NodeFail || s == Failed && r.Exit.Signal != 0:
		return string(Cancelled)
	case s == Cancelled && r.Exit.Status != 0: // it was asked to end, and handled the signal
		return string(Failed)
	}
	return string(r.State)
}

func acctStart(r *row) string {
	if r.Times.Started.IsZero() && r.State.Over() {
		return "None"
	}
	return begun(r)
}

// begun returns the time at which a job began. sacct writes Unknown for a job that did not begin.
func begun(r *row) string { return moment(r.Times.Started, "Unknown") }

// An Acct is a parsed call of sacct.
type Acct struct {
	Filter
	listing
	sheet
	format   []shown // from -o, or the default
	jobsOnly bool    // without steps
	each     bool    // each task of an array on its own line
	since    string  // -S
	until    string  // -E
}

// A shown is a field to be displayed, which may have a width of its own.
type shown struct {
	*field
	width int
}

// Default formats of sacct.
const (
	acctFormat  = "jobid,jobname,partition,account,alloccpus,state,exitcode"
	briefFormat = "jobid,state,exitcode"
)

var sacct = &command{
	Getopt: notation.Getopt{Command: "sacct", Options: notation.Options(
		"allusers|a accounts|A= allclusters|L array associations|x= batch-script|B brief|b completion|c clusters|M= " +
			"delimiter= duplicates|D endtime|E= env-vars federation file|f= format|o= gid|g= group= help|h " +
			"helpformat|e jobs|j= json local long|l name= ncpus|I= nnodes|i= nodelist|N= noconvert noheader|n " +
			"parsable|p parsable2|P partition|r= qos|q= starttime|S= state|s= timelimit-max|K= timelimit-min|k= " +
			"truncate|T uid= units= usage user|u= verbose|v version|V wckeys|W= whole-hetjob? allocations|X yaml")},
	stray:   "Unknown arguments:\n", // Slurm's wording
	refused: "json yaml batch-script env-vars long file completion nodelist wckeys associations",
	why:     "sacct shows the fields named with -o",
}

// ParseAcct parses a command line of sacct, without its name; defaults are read from the environment.
func ParseAcct(words []string, getenv func(string) string, me string) (*Acct, error) {
	a := &Acct{Filter: Filter{me: me}, sheet: sheet{delimiter: "|"}}
	err := a.read(sacct, words, a.option)
	if err == nil && a.format == nil {
		a.format, err = parseFields(cmp.Or(getenv("SACCT_FORMAT"), acctFormat))
	}
	return a, err
}

// option handles one option of sacct. Errors in the filter's options are reported in sacct's words, not squeue's.
func (a *Acct) option(g notation.Given) (err error) {
	switch g.Name {
	case "jobs":
		if err = a.Filter.option(g); err != nil {
			return fmt.Errorf("fatal: Bad job/step specified: %s", g.Value)
		}
	case "state":
		if err = a.Filter.option(g); err != nil {
			return fmt.Errorf("fatal: unrecognized job state value '%s'", g.Value)
		}
	case "format":
		a.format, err = parseFields(g.Value)
	case "brief":
		a.format, err = parseFields(briefFormat)
	case "parsable", "parsable2": // -p, -P
		a.parsable, a.trailing = true, g.Name == "parsable"
	case "delimiter":
		a.delimiter = g.Value
	case "allocations":
		a.jobsOnly = true
	case "array":
		a.each = true
	case "starttime":
		a.since = g.Value
	case "endtime":
		a.until = g.Value
	default:
		return a.Filter.option(g)
	}
	return err
}

// parseFields parses the argument of -o: names of fields in any case, possibly abbreviated, followed by "%20" or "%-20"
// for a different width.
func parseFields(list string) ([]shown, error) {
	var format []shown
	for one := range strings.SplitSeq(list, ",") {
		name, size, _ := strings.Cut(strings.TrimSpace(one), "%")
		if name == "" {
			continue
		}
		i := slices.IndexFunc(fields, func(f field) bool {
			return len(f.name) >= len(name) && strings.EqualFold(f.name[:len(name)], name)
		})
		whole := func(f field) bool { return strings.EqualFold(f.name, name) }
		if exact := slices.IndexFunc(fields, whole); exact >= 0 {
			i = exact
		}
		if i < 0 {
			return nil, fmt.Errorf("Invalid field requested: \"%s\"", name) // Slurm's wording
		}
		s := shown{&fields[i], fields[i].width}
		if n, ok := width(size); ok {
			s.width = n
		}
		format = append(format, s)
	}
	return format, nil
}

// width parses a column's width, which is negative for left alignment.
func width(text string) (int, bool) {
	n, err := strconv.Atoi(cut(text, 5))
	return n, err == nil
}

// spans returns a line with the given texts of the shown fields.
func (a *Acct) spans(text func(shown) string) []span {
	line := make([]span, len(a.format))
	for i, f := range a.format {
		line[i] = span{text(f), f.width}
	}
	return line
}

// Write prints the selected jobs, and their scripts; jobs must be sorted by id.
func (a *Acct) Write(w io.Writer, jobs []Job, now time.Time) error {
	from, to, err := a.window(now)
	if err != nil {
		return err
	}
	var b strings.Builder
	if !a.noHeader {
		a.header(&b, a.spans(func(s shown) string { return s.name }))
	}
	chosen := slices.DeleteFunc(a.Select(jobs), func(j Job) bool {
		return len(a.Jobs) == 0 && !within(&j, from, to, len(a.States) > 0)
	})
	for _, r := range rows(chosen, a.each || a.tasks(), now) {
		a.line(&b, a.spans(func(s shown) string { return s.value(&r) }))
		if a.jobsOnly || r.Times.Started.IsZero() {
			continue
		}
		a.line(&b, a.spans(func(s shown) string {
			if s.step != nil {
				return s.step(&r)
			}
			return s.value(&r)
		}))
	}
	_, err = io.WriteString(w, b.String())
	return err
}
