package slurm

// Only a few of scontrol's commands concern a user's own jobs: clients call "show jobid" if sacct does not list a job
// yet, users call "requeue", and scripts read lists of nodes with "show hostnames". All others are for the operators of
// a shared cluster.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/job"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// controlling parses scontrol's command line.
var controlling = notation.Getopt{Command: "scontrol", Options: notation.Options(
	"all|a clusters|M= details|d help|h hide local oneliner|o quiet|Q verbose|v version|V")}

// A control is a request to scontrol.
type control struct {
	verb     string // show or requeue; hostnames, hostlist or hostlistsorted; version or help
	jobs     []notation.JobID
	hosts    *string // a list of nodes, or the name of a file that contains one; nil: none
	clusters string
	details  bool
	oneLine  bool
}

// parseControl parses scontrol's command line. All other commands of scontrol are unsupported.
func parseControl(words []string) (k control, err error) {
	given, rest, err := controlling.Parse(words)
	if err != nil {
		return k, err
	}
	for _, g := range given {
		switch g.Name {
		case "details":
			k.details = true
		case "oneliner":
			k.oneLine = true
		case "clusters":
			k.clusters = g.Value
		case "version", "help":
			k.verb = g.Name
			return k, nil
		}
	}
	if len(rest) == 0 {
		return k, unsupportedControl("without a command")
	}
	k.verb = rest[0]
	words = rest[1:]
	about := k.verb + " " + strings.Join(words[:min(1, len(words))], "")
	switch {
	case k.verb == "show" && len(words) > 0:
		// Slurm accepts "job 7", "job=7" and "jobid 7", one after another.
		what, id, has := strings.Cut(words[0], "=")
		if verb := hostVerb(what); verb != "" {
			if has {
				words[0] = id
			} else {
				words = words[1:]
			}
			if len(words) > 1 {
				return k, fmt.Errorf("too many arguments for keyword:%s", k.verb) // Slurm's wording
			}
			if k.verb = verb; len(words) > 0 {
				k.hosts = &words[0]
			}
			return k, nil
		}
		if what != "job" && what != "jobs" && what != "jobid" {
			return k, unsupportedControl(about)
		}
		if words = words[1:]; has {
			words = append([]string{id}, words...)
		}
	case k.verb != "requeue":
		return k, unsupportedControl(about)
	}
	for _, word := range words {
		ids, err := notation.ParseJobIDs(word)
		if err != nil {
			return k, fmt.Errorf("%w for job %s", job.ErrNoJob, word)
		}
		k.jobs = append(k.jobs, ids...)
	}
	return k, nil
}

// hostVerbs are the formats for lists of nodes; Slurm accepts abbreviations of at least shortestVerb letters.
var hostVerbs = []string{"hostnames", "hostlist", "hostlistsorted"}

const shortestVerb = 5

// hostVerb returns the first of the hostVerbs that begins with word, in upper or lower case.
func hostVerb(word string) string {
	for _, verb := range hostVerbs {
		if n := len(word); n >= shortestVerb && n <= len(verb) && strings.EqualFold(verb[:n], word) {
			return verb
		}
	}
	return ""
}

// unsupportedControl refuses a command of scontrol by name.
func unsupportedControl(what string) error {
	return &notation.Unsupported{
		What: "scontrol " + strings.TrimSpace(what),
		Why:  "it shows jobs and lists of nodes, and restarts jobs (requeue)",
	}
}

// scontrol shows jobs in detail, and restarts them.
func scontrol(c *call) error {
	k, err := parseControl(c.args)
	if err != nil {
		return err
	}
	if k.verb == "version" || k.verb == "help" {
		return c.tellOther(k.verb)
	}
	if hostVerb(k.verb) != "" {
		return listHosts(c, k)
	}
	if err := openOf(c, k.clusters); err != nil {
		return err
	}
	if k.verb == "requeue" {
		return c.requeue(k.jobs)
	}
	if len(k.jobs) == 0 {
		k.jobs = []notation.JobID{{}}
	}
	// Jobs are shown one by one, as in Slurm: the first that does not exist ends the command, after the previous ones
	// have been shown.
	for i := range k.jobs {
		id := &k.jobs[i]
		filter := job.Filter{Jobs: k.jobs[i : i+1]}
		if id.Job == 0 { // no job has the number 0: it selects all jobs
			id, filter.Jobs = nil, nil
		}
		jobs, err := c.chosen(filter, time.Now().Add(-minJobAge))
		if err != nil {
			return err
		}
		text, err := job.Show(jobs, id, k.details, k.oneLine, time.Now())
		if err != nil {
			return err
		}
		fmt.Fprint(c.Out, text)
	}
	return nil
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
			return fmt.Errorf("%w for job %s", job.ErrNoJob, ids[i])
		}
		for _, j := range jobs {
			switch {
			case j.State == job.Pending:
				return fmt.Errorf("Job is pending execution for job %s", ids[i]) // Slurm's wording
			case j.State == job.Completed && time.Since(j.Times.Ended) >= minJobAge: // Slurm keeps its script no longer
				return fmt.Errorf("%w for job %s", job.ErrNoJob, ids[i])
			}
			if err := again(c, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// again restarts one job. Repeating the call is harmless, because the job is then already in the requested state.
func again(c *call, j job.Job) error {
	number := j.ID - int(c.folder.Base())
	id := strconv.Itoa(number)
	ask := func(what func() (corral.Run, error)) error {
		_, err := untilAnswered(c, what)
		return err
	}
	if !j.State.Over() {
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
