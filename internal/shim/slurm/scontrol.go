package slurm

// Of scontrol's many commands few are about a user's own jobs: clients call "show jobid" where sacct has no answer yet,
// people call "requeue", and scripts read lists of nodes with "show hostnames". All others are an operator's, of a
// cluster that is shared.

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

// controlling reads scontrol's words.
var controlling = notation.Getopt{Command: "scontrol", Options: notation.Options(
	"all|a clusters|M= details|d help|h hide local oneliner|o quiet|Q verbose|v version|V")}

// A control is what scontrol is asked for.
type control struct {
	verb     string // show or requeue; hostnames, hostlist or hostlistsorted; version or help
	jobs     []notation.JobID
	hosts    *string // a list of nodes, or the name of a file that has one; nil: there is none
	clusters string
	details  bool
	oneLine  bool
}

// parseControl reads scontrol's words. What else it could do is unsupported.
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
		// Slurm takes "job 7", "job=7" and "jobid 7", one after the other.
		what, id, has := strings.Cut(words[0], "=")
		if verb := hostVerb(what); verb != "" {
			if has {
				words[0] = id
			} else {
				words = words[1:]
			}
			if len(words) > 1 {
				return k, fmt.Errorf("too many arguments for keyword:%s", k.verb) // Slurm's words
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

// hostVerbs are the ways to write lists of nodes, and how short Slurm takes them at the least.
var hostVerbs = []string{"hostnames", "hostlist", "hostlistsorted"}

const shortestVerb = 5

// hostVerb returns the first of them that begins so, in any case.
func hostVerb(word string) string {
	for _, verb := range hostVerbs {
		if n := len(word); n >= shortestVerb && n <= len(verb) && strings.EqualFold(verb[:n], word) {
			return verb
		}
	}
	return ""
}

// unsupportedControl refuses a command of scontrol's by name.
func unsupportedControl(what string) error {
	return &notation.Unsupported{
		What: "scontrol " + strings.TrimSpace(what),
		Why:  "it shows jobs and lists of nodes, and has jobs run again (requeue)",
	}
}

// scontrol shows jobs in full, and has them run again.
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
	// Each job is shown by itself, as Slurm does: the first that is not there ends the command, and what is before it
	// has been shown.
	for i := range k.jobs {
		id := &k.jobs[i]
		filter := job.Filter{Jobs: k.jobs[i : i+1]}
		if id.Job == 0 { // no job has that number: all of them
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

// requeue has jobs run again, from the beginning. What runs is ended first.
func (c *call) requeue(ids []notation.JobID) error {
	found, err := c.expand(ids)
	if err != nil {
		return err
	}
	// A job that is over begins again under its number, with the next attempt: its output is truncated, unless it was
	// submitted with --open-mode=append, and SLURM_RESTART_COUNT tells it.
	for i, jobs := range found {
		if len(jobs) == 0 {
			return fmt.Errorf("%w for job %s", job.ErrNoJob, ids[i])
		}
		for _, j := range jobs {
			switch {
			case j.State == job.Pending:
				return fmt.Errorf("Job is pending execution for job %s", ids[i]) // Slurm's words
			case j.State == job.Completed && time.Since(j.Times.Ended) >= minJobAge: // what it ran is not kept longer
				return fmt.Errorf("%w for job %s", job.ErrNoJob, ids[i])
			}
			if err := again(c, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// again has one job run again. A repetition does no harm: what it asks for is so then.
func again(c *call, j job.Job) error {
	number := j.ID - int(c.folder.Base())
	id := strconv.Itoa(number)
	ask := func(what func() (corral.Run, error)) error {
		_, err := untilAnswered(c, what)
		return err
	}
	if !j.State.Over() {
		err := ask(func() (corral.Run, error) { return c.client.CancelTasks(c.ctx, c.folder.Run, id) })
		_, errWait := untilAnswered(c, func() ([]api.Task, error) {
			return c.client.WaitTasks(c.ctx, c.folder.Run, []int{number}, 0)
		})
		if err := errors.Join(err, errWait); err != nil {
			return err
		}
	}
	return ask(func() (corral.Run, error) { return c.client.RetryTasks(c.ctx, c.folder.Run, id) })
}
