package slurm

// sacct lists jobs, including those that have ended, and their scripts as steps.

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// unmeasured is the value of fields that Corral does not measure: empty, as in a Slurm that does not measure them.
var unmeasured = same[*row]("")

// jobOnly returns the value of a field that only jobs have, not their scripts.
func jobOnly(value func(*row) string) func(*row) string { return either(value, unmeasured) }

// either returns the value of a field that differs between a job and its script.
func either(ofJob, ofScript func(*row) string) func(*row) string {
	return func(r *row) string {
		if r.script {
			return ofScript(r)
		}
		return ofJob(r)
	}
}

// script returns the id of a job's script.
func script(id func(*row) string) func(*row) string {
	return either(id, func(r *row) string { return id(r) + ".batch" })
}

// Resources in sacct's notation. Billing belongs to the job, not to its script.
var (
	stepTRES = func(r *row) string { return r.resources("cpu gres/gpu mem node") }
	jobTRES  = func(r *row) string { return r.resources("billing cpu gres/gpu mem node") }
)

// sacctFields are the fields of sacct.
var sacctFields = []column[*row]{
	named("Account", 10, func(r *row) string { return r.Spec.Account }),
	named("AdminComment", 15, unmeasured), named("AllocCPUS", 10, (*row).cpus),
	named("AllocNodes", 10, func(r *row) string { return strconv.Itoa(bit(r.Node != "")) }),
	named("AllocTRES", 10, func(r *row) string {
		if r.Node == "" {
			return ""
		}
		return either(jobTRES, stepTRES)(r)
	}),
	named("AssocID", 7, unmeasured), named("AveCPU", 10, unmeasured), named("AveRSS", 10, unmeasured),
	named("AveVMSize", 10, unmeasured), named("BlockID", 16, unmeasured), named("Cluster", 10, (*row).partition),
	named("Comment", 14, jobOnly(func(r *row) string { return r.Spec.Comment })), named("Constraints", 19, unmeasured),
	named("ConsumedEnergy", 14, either(unmeasured, same[*row]("0"))), named("Container", 19, unmeasured),
	named("CPUTime", 10, func(r *row) string { return notation.FullClock(r.forCPUs(r.elapsed())) }),
	named("CPUTimeRAW", 10, func(r *row) string { return whole(r.forCPUs(r.elapsed())) }),
	// Slurm shows the exit code of srun's steps here; the shim does not distinguish steps.
	named("DerivedExitCode", 15, jobOnly(same[*row]("0:0"))),
	named("Elapsed", 10, (*row).runtime), named("ElapsedRaw", 10, func(r *row) string { return whole(r.elapsed()) }),
	named("Eligible", 19, either((*row).eligible, begun)),
	named("End", 19, func(r *row) string { return moment(r.Ended, "Unknown") }),
	named("ExitCode", 8, exitCode),
	named("Flags", 19, jobOnly(same[*row]("SchedMain,StartRecieved"))), // Slurm's spelling
	named("GID", 6, jobOnly((*row).groupID)), named("Group", 9, jobOnly((*row).group)),
	named("JobID", -12, script((*row).id)), named("JobIDRaw", -12, script((*row).raw)),
	named("JobName", 10, either((*row).name, same[*row]("batch"))),
	named("Layout", 9, either(unmeasured, same[*row]("Unknown"))),
	named("MaxDiskRead", 12, unmeasured), named("MaxDiskWrite", 12, unmeasured), named("MaxRSS", 10, unmeasured),
	named("MaxVMSize", 10, unmeasured), named("McsLabel", 12, unmeasured), named("MinCPU", 10, unmeasured),
	named("NCPUS", 10, (*row).cpus), named("NNodes", 8, same[*row]("1")), // sbatch refuses jobs with more nodes
	named("NodeList", 15, func(r *row) string { return cmp.Or(r.Node, "None assigned") }),
	named("NTasks", 8, either(unmeasured, same[*row]("1"))), named("Partition", 10, jobOnly((*row).partition)),
	named("Priority", 10, jobOnly((*row).priority)), named("QOS", 10, jobOnly((*row).quality)),
	named("QOSRAW", 6, jobOnly(same[*row]("1"))),
	named("Reason", 22, jobOnly(same[*row]("None"))), // Slurm's database does not store it
	named("ReqCPUS", 8, (*row).cpus),
	named("ReqMem", 10, jobOnly(func(r *row) string { return memory(r.Spec.Size.Total()) })),
	named("ReqNodes", 8, same[*row]("1")), named("ReqTRES", 10, jobOnly(jobTRES)), named("Reservation", 20, unmeasured),
	named("Reserved", 10, jobOnly(func(r *row) string { return notation.FullClock(r.waited()) })),
	named("ResvCPU", 10, jobOnly(func(r *row) string { return notation.FullClock(r.forCPUs(r.waited())) })),
	named("Start", 19, either(acctStart, begun)), named("State", 10, either(jobState, scriptState)),
	named("Submit", 19, either(func(r *row) string { return moment(r.Submitted, "Unknown") }, begun)),
	named("SubmitLine", 20, jobOnly(func(r *row) string { return r.Spec.Submit })),
	named("Suspended", 10, same[*row]("00:00:00")), named("SystemComment", 15, unmeasured),
	named("SystemCPU", 10, same[*row]("00:00:00")), named("Timelimit", 10, jobOnly((*row).limitFull)),
	named("TimelimitRaw", 10, jobOnly(func(r *row) string {
		return r.limit(func(d time.Duration) string { return strconv.Itoa(int(d / time.Minute)) })
	})),
	named("TotalCPU", 10, same[*row]("00:00:00")), named("TRESUsageInTot", 14, unmeasured),
	named("UID", 6, jobOnly((*row).userID)), named("User", 9, jobOnly((*row).user)),
	named("UserCPU", 10, same[*row]("00:00:00")), named("WCKey", 10, unmeasured),
	named("WorkDir", 20, jobOnly((*row).directory)),
}

func whole(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// forCPUs multiplies a duration by the number of the job's CPUs.
func (r *row) forCPUs(d time.Duration) time.Duration { return d * time.Duration(r.Spec.Size.CPUs) }

// waited returns the time for which the job waited after it became eligible.
func (r *row) waited() time.Duration {
	to := r.start()
	if to.IsZero() {
		to = r.now // it is still waiting
	}
	if r.Eligible.IsZero() {
		return 0
	}
	return max(0, seconds(to).Sub(seconds(r.Eligible)))
}

// exitCode returns the job's exit code, which Slurm discards if it ended the job itself. The script's exit code is
// kept, unless no worker reported the script's end.
func exitCode(r *row) string {
	switch {
	case r.script && r.State == nodeFail:
		return ""
	case !r.script && (r.State == cancelled || r.State == timeout || r.State == nodeFail):
		return "0:0"
	}
	return r.Exit.String()
}

func jobState(r *row) string {
	if r.State == cancelled || r.State == completing { // only cancelled jobs are completing
		return "CANCELLED by " + r.userID()
	}
	return string(r.State)
}

// scriptState returns the script's state: a script that is ended by a signal counts as cancelled.
func scriptState(r *row) string {
	switch s := r.State; {
	case s == completing:
		return string(running)
	case s == timeout || s == nodeFail || s == failed && r.Exit.Signal != 0:
		return string(cancelled)
	case s == cancelled && r.Exit.Status != 0: // it was asked to end, and handled the signal
		return string(failed)
	}
	return string(r.State)
}

func acctStart(r *row) string {
	if r.Started.IsZero() && r.State.over() {
		return "None"
	}
	return begun(r)
}

// begun returns the time at which a job began. sacct writes Unknown for a job that did not begin.
func begun(r *row) string { return moment(r.Started, "Unknown") }

// Default formats of sacct.
const (
	acctFormat  = "jobid,jobname,partition,account,alloccpus,state,exitcode"
	briefFormat = "jobid,state,exitcode"
)

// sacctOptions are the options of sacct. Errors are in sacct's words, not squeue's.
var sacctOptions = notation.Command[query]{Name: "sacct", Options: []option{
	{Names: "accounts|A=", Set: accounts},
	{Names: "array", Set: each},
	{Names: "brief|b", Set: func(q *query, g notation.Given) error {
		return acctColumns(q, notation.Given{Value: briefFormat})
	}},
	{Names: "clusters|M=", Set: clusters},
	{Names: "delimiter=", Set: notation.Text(func(q *query) *string { return &q.delimiter })},
	{Names: "endtime|E=", Set: notation.Text(func(q *query) *string { return &q.until })},
	{Names: "format|o=", Set: acctColumns},
	{Names: "help|h helpformat|e usage version|V", Set: other},
	{Names: "jobs|j=", Set: func(q *query, g notation.Given) error {
		if jobIDs(q, g) != nil {
			return fmt.Errorf("fatal: Bad job/step specified: %s", g.Value)
		}
		return nil
	}},
	{Names: "name=", Set: names},
	{Names: "noheader|n", Set: noHeader},
	{Names: "parsable|p parsable2|P", Set: parsable},
	{Names: "partition|r=", Set: partitions},
	{Names: "qos|q=", Set: qualities},
	{Names: "starttime|S=", Set: notation.Text(func(q *query) *string { return &q.since })},
	{Names: "state|s=", Set: func(q *query, g notation.Given) error {
		if inStates(q, g) != nil {
			return fmt.Errorf("fatal: unrecognized job state value '%s'", g.Value)
		}
		return nil
	}},
	{Names: "uid= user|u=", Set: users},
	{Names: "allocations|X", Set: notation.On(func(q *query) *bool { return &q.jobsOnly })},
	{Names: "allusers|a allclusters|L duplicates|D federation gid|g= group= local ncpus|I="},
	{Names: "nnodes|i= noconvert timelimit-max|K= timelimit-min|k= truncate|T units= verbose|v"},
	{Names: "whole-hetjob?"},
	{Names: "associations|x= batch-script|B completion|c env-vars file|f= json long|l nodelist|N=", Set: notAccounted},
	{Names: "wckeys|W= yaml", Set: notAccounted},
}}

var notAccounted = notation.Refuse[query]("sacct shows the fields named with -o")

// parsable requests output for programs: -p, -P.
func parsable(q *query, g notation.Given) error {
	q.parsable, q.trailing = true, g.Name == "parsable"
	return nil
}

// acctColumns parses the argument of -o.
func acctColumns(q *query, g notation.Given) (err error) {
	q.lines.places, err = byNames(g.Value, "Invalid field requested: \"%s\"", sacctFields) // Slurm's wording
	return err
}

// parseSacct parses a command line of sacct, without its name; defaults are read from the environment.
func parseSacct(words []string, getenv func(string) string) (*query, error) {
	q := &query{delimiter: "|"}
	err := q.parse(sacctOptions, words, "Unknown arguments:\n") // Slurm's wording
	if err == nil && q.lines.places == nil {
		err = acctColumns(q, notation.Given{Value: cmp.Or(getenv("SACCT_FORMAT"), acctFormat)})
	}
	return q, err
}

// period returns the period of the jobs to show. By default it begins at the start of the day (-S), and ends now (-E).
// If states are given, it is a single moment, because a job is in a state at a particular time: -S, or now.
func (q *query) period(now time.Time) (from, to time.Time, err error) {
	from, _ = notation.ParseMoment("today", now)
	if len(q.states) > 0 {
		from = now
	}
	to = now
	if q.since != "" {
		if from, err = notation.ParseMoment(q.since, now); err != nil {
			return from, to, err
		}
		if len(q.states) > 0 {
			to = from
		}
	}
	if q.until != "" {
		to, err = notation.ParseMoment(q.until, now)
	}
	return from, to, err
}

// within reports whether a job was eligible or running in a period. If its state matters and the job has ended, within
// reports whether the job ended in the period.
func within(j *job, from, to time.Time, byState bool) bool {
	if byState && j.State.over() {
		return !j.Ended.After(to) && !seconds(j.Ended).Before(from)
	}
	return !j.Eligible.IsZero() && !j.Eligible.After(to) && (j.Ended.IsZero() || !seconds(j.Ended).Before(from))
}

// writeAcct prints the selected jobs, and their scripts; jobs must be sorted by id.
func (q *query) writeAcct(w io.Writer, jobs []job, now time.Time) error {
	from, to, err := q.period(now)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(q.choose(jobs), func(j job) bool {
		return len(q.jobs) == 0 && !within(&j, from, to, len(q.states) > 0)
	})
	var list []*row
	for _, r := range rows(chosen, q.each || q.tasks(), now) {
		list = append(list, r)
		if !q.jobsOnly && !r.Started.IsZero() {
			step := *r
			step.script = true
			list = append(list, &step)
		}
	}
	return sheetOf(q, q.lines.places).write(w, q, "", list, now)
}

// sacct lists jobs, including those that have ended.
func sacct(c *call) error {
	q, err := parseSacct(c.args, os.Getenv)
	if err != nil {
		return err
	}
	if q.other == "helpformat" {
		for fields := range slices.Chunk(sacctFields, 4) { // four a line, as in Slurm
			for _, f := range fields {
				fmt.Fprintf(c.Out, "%-19s ", f.name)
			}
			fmt.Fprintln(c.Out)
		}
		return nil
	} else if q.other != "" {
		return c.tellOther(q.other)
	}
	if unknown := strangers(q.users); len(unknown) > 0 {
		return fmt.Errorf("Invalid user id: %s", unknown[0]) // Slurm's wording
	}
	now := time.Now()
	since, _, err := q.period(now)
	if err != nil {
		return err
	}
	if err := c.open(); err != nil {
		return err
	}
	var jobs []job
	// For other clusters, Slurm's database has no jobs, and sacct prints no error.
	if other := elsewhere(c, q.clusters); q.clusters == "" || len(other) <= strings.Count(q.clusters, ",") {
		if jobs, err = c.chosen(q, since); err != nil {
			return err
		}
	}
	return q.writeAcct(c.Out, jobs, now)
}
