package slurm

// Only a few of scontrol's commands concern a user's own jobs: clients call "show jobid" if sacct does not list a job
// yet, users call "requeue", and scripts read lists of nodes with "show hostnames". All others are for the operators of
// a shared cluster.

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// scontrolOptions are the options of scontrol.
var scontrolOptions = notation.Command[query]{Name: "scontrol", Options: []option{
	{Names: "clusters|M=", Set: clusters},
	{Names: "details|d", Set: notation.On(func(q *query) *bool { return &q.details })},
	{Names: "help|h version|V", Set: other},
	{Names: "oneliner|o", Set: notation.On(func(q *query) *bool { return &q.oneLine })},
	{Names: "all|a hide local quiet|Q verbose|v"},
}}

// parseScontrol parses scontrol's command line. verb is "show" or "requeue", whose jobs are in the query, or one of the
// hostVerbs, whose list is the only other word. All other commands of scontrol are unsupported.
func parseScontrol(words []string) (q *query, verb string, err error) {
	q = &query{}
	if err := q.parse(scontrolOptions, words, ""); err != nil || q.other != "" {
		return q, "", err
	}
	unsupported := func(what string) error {
		const why = "it shows jobs and lists of nodes, and restarts jobs (requeue)"
		return &notation.Unsupported{What: strings.TrimSpace("scontrol " + what), Why: why}
	}
	if len(q.rest) == 0 {
		return q, "", unsupported("without a command")
	}
	verb, words = q.rest[0], q.rest[1:]
	about := verb + " " + strings.Join(words[:min(1, len(words))], "")
	switch {
	case verb == "show" && len(words) > 0:
		// Slurm accepts "job 7", "job=7" and "jobid 7", one after another.
		what, first, assigned := strings.Cut(words[0], "=")
		words = words[1:]
		if assigned {
			words = append([]string{first}, words...)
		}
		if hosts := hostVerb(what); hosts != "" {
			if q.rest = words; len(words) > 1 {
				return q, "", fmt.Errorf("too many arguments for keyword:%s", verb) // Slurm's wording
			}
			return q, hosts, nil
		}
		if !slices.Contains([]string{"job", "jobs", "jobid"}, what) {
			return q, "", unsupported(about)
		}
	case verb != "requeue":
		return q, "", unsupported(about)
	}
	for _, word := range words {
		ids, err := notation.ParseJobIDs(word)
		if err != nil {
			return q, "", fmt.Errorf("%w for job %s", errNoJob, word)
		}
		q.jobs = append(q.jobs, ids...)
	}
	return q, verb, nil
}

// scontrol shows jobs in detail, restarts them, or lists nodes.
func scontrol(c *call) error {
	q, verb, err := parseScontrol(c.args)
	switch {
	case err != nil:
		return err
	case q.other != "":
		return c.tellOther(q.other)
	case hostVerb(verb) != "":
		return listHosts(c, verb, q.rest)
	}
	if err := openOf(c, q.clusters); err != nil {
		return err
	}
	if verb == "requeue" {
		return c.requeue(q.jobs)
	}
	// Jobs are shown one by one, as in Slurm: the first that does not exist ends the command, after the previous ones
	// have been shown.
	selections := slices.Collect(slices.Chunk(q.jobs, 1))
	if len(q.jobs) == 0 {
		selections = [][]notation.JobID{nil} // all jobs
	}
	for _, selection := range selections {
		q.jobs = selection
		jobs, err := c.chosen(q, time.Now().Add(-minJobAge))
		if err != nil {
			return err
		}
		text, err := q.show(jobs, time.Now())
		if err != nil {
			return err
		}
		fmt.Fprint(c.Out, text)
	}
	return nil
}

// show returns scontrol's output for the selected jobs, with a row for all similar tasks of an array. If a job was
// named and does not exist, the error is errNoJob.
func (q *query) show(jobs []job, now time.Time) (string, error) {
	list := rows(q.choose(jobs), q.tasks(), now)
	switch {
	case len(list) == 0 && len(q.jobs) > 0:
		return "", errNoJob
	case len(list) == 0:
		return "No jobs in the system\n", nil
	}
	between, after := "\n   ", "\n   \n\n"
	if q.oneLine {
		between, after = " ", " \n"
	}
	var b strings.Builder
	for _, r := range list {
		b.WriteString(strings.Join(r.shown(q.details), between) + after)
	}
	return b.String(), nil
}

// jobLines are scontrol's lines for a job. A name after $ is that of a column of squeue, or one of showValues. Slurm
// omits lines that do not apply yet, instead of leaving them empty: a word before ? is the condition of a line.
const jobLines = `$title
UserId=$username($userid) GroupId=$groupname($groupid) MCS_label=N/A
Priority=$prioritylong Nice=$nice Account=$account QOS=$qos
JobState=$state Reason=$reason Dependency=$dependency
Requeue=$requeue Restarts=$restartcnt BatchFlag=1 Reboot=0 ExitCode=$exit
details?DerivedExitCode=0:0
RunTime=$runtime TimeLimit=$limit TimeMin=N/A
SubmitTime=$submit EligibleTime=$eligible
AccrueTime=$eligible
StartTime=$start EndTime=$end Deadline=N/A
begun?PreemptEligibleTime=$start PreemptTime=None
SuspendTime=None SecsPreSuspend=0 LastSchedEval=$evaluated Scheduler=Main
Partition=$partition AllocNode:Sid=$host:0
ReqNodeList=(null) ExcNodeList=(null)
NodeList=$nodelist
placed?BatchHost=$nodelist
NumNodes=1 NumCPUs=$numcpus NumTasks=$tasks CPUs/Task=$mincpus ReqB:S:C:T=0:0:*:*
TRES=${tres-alloc}
Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
detailsplaced?JOB_GRES=(null)
detailsplaced?  Nodes=$nodelist CPU_IDs=0 Mem=$memory GRES=
MinCPUsNode=$mincpus MinMemory$per=$minmemory MinTmpDiskNode=0
Features=(null) DelayBoot=00:00:00
OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
Command=$command
WorkDir=$workdir
comment?Comment=$comment
StdErr=$stderr
StdIn=$stdin
StdOut=$stdout
Power=`

// showValues are the values of jobLines that squeue does not have, or shows in another way.
var showValues = map[string]func(*row) string{
	"title": func(r *row) string {
		id := "JobId=" + r.raw()
		if r.ArrayID != 0 {
			id += fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%s", r.ArrayID, r.arrayTask())
		}
		return id + " JobName=" + r.Name
	},
	"requeue":  func(r *row) string { return strconv.Itoa(bit(r.Spec.Requeue)) },
	"exit":     func(r *row) string { return r.Exit.String() },
	"runtime":  (*row).runtime,
	"limit":    (*row).limitFull,
	"submit":   func(r *row) string { return moment(r.Submitted, "Unknown") },
	"eligible": (*row).eligible,
	"start":    func(r *row) string { return moment(r.start(), "Unknown") },
	"end":      func(r *row) string { return moment(r.end(), "Unknown") },
	// The time at which the job was last considered for scheduling, as far as it is known.
	"evaluated": func(r *row) string {
		if r.Started.IsZero() {
			return moment(r.Submitted, "Unknown")
		}
		return moment(r.Started, "Unknown")
	},
	"comment": func(r *row) string { return r.Spec.Comment + " " },
	"host":    func(r *row) string { return cmp.Or(r.Spec.Host, "localhost") },
	"tasks":   func(r *row) string { return strconv.Itoa(max(1, r.Spec.Size.Tasks)) },
	"memory":  func(r *row) string { return strconv.FormatInt(r.Spec.Size.Total(), 10) },
	"per": func(r *row) string { // memory is shown as requested, and not as a sum
		if r.Spec.Size.MemoryEach {
			return "CPU" // --mem-per-cpu
		}
		return "Node" // --mem
	},
	"stderr": func(r *row) string { return r.file(r.errorFile()) },
	"stdout": func(r *row) string { return r.file(r.Spec.Output) },
}

// shown returns the jobLines of a row.
func (r *row) shown(details bool) (lines []string) {
	placed := r.Node != ""
	applies := map[string]bool{
		"details": details, "placed": placed, "detailsplaced": details && placed, "begun": !r.start().IsZero(),
		"comment": r.Spec.Comment != "",
	}
	for line := range strings.SplitSeq(jobLines, "\n") {
		if condition, rest, ok := strings.Cut(line, "?"); ok {
			if line = rest; !applies[condition] {
				continue
			}
		}
		lines = append(lines, os.Expand(line, func(name string) string {
			if value := showValues[name]; value != nil {
				return value(r)
			}
			i := slices.IndexFunc(squeueColumns, func(c column[*row]) bool { return c.name == name })
			return squeueColumns[i].value(r)
		}))
	}
	return lines
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

// requeue restarts jobs from the beginning. Running jobs are ended first.
func (c *call) requeue(ids []notation.JobID) error {
	found, err := c.expand(ids)
	if err != nil {
		return err
	}
	// A job that has ended starts again under its number, as the next attempt: its output is truncated, unless it was
	// submitted with --open-mode=append, and SLURM_RESTART_COUNT contains the number of restarts.
	for i, jobs := range found {
		if len(jobs) == 0 {
			return fmt.Errorf("%w for job %s", errNoJob, ids[i])
		}
		for _, j := range jobs {
			switch {
			case j.State == pending:
				return fmt.Errorf("Job is pending execution for job %s", ids[i]) // Slurm's wording
			case j.State == completed && time.Since(j.Ended) >= minJobAge: // Slurm keeps its script no longer
				return fmt.Errorf("%w for job %s", errNoJob, ids[i])
			}
			if err := again(c, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// again restarts one job. Repeating the call is harmless, because the job is then already in the requested state.
func again(c *call, j job) error {
	number := j.ID - int(c.folder.Base())
	id := strconv.Itoa(number)
	ask := func(what func() (corral.Run, error)) error {
		_, err := untilAnswered(c, what)
		return err
	}
	if !j.State.over() {
		err := ask(func() (corral.Run, error) { return c.client.CancelTasks(c.ctx, c.folder.Run, id) })
		_, errWait := untilAnswered(c, func() ([]api.TaskStatus, error) {
			return c.client.WaitTasks(c.ctx, c.folder.Run, []int{number}, 0)
		})
		if err := errors.Join(err, errWait); err != nil {
			return err
		}
	}
	return ask(func() (corral.Run, error) { return c.client.RetryTasks(c.ctx, c.folder.Run, id) })
}
