package slurm

// scancel determines which of the selected jobs have not ended, and requests corrald to cancel them. Jobs that end in
// the meantime are not affected. Like Slurm, it prints nothing about jobs that have already ended.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/job"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A cancellation is the selection made by a call of scancel: the numbers of jobs, and filters that apply to these or to
// all jobs.
type cancellation struct {
	jobs                           []notation.JobID
	name, user, partition, account []string
	states                         []job.State
	clusters                       string
	quiet                          bool
}

// narrows reports whether jobs are selected by anything except their numbers.
func (k cancellation) narrows() bool {
	return len(k.name)+len(k.user)+len(k.partition)+len(k.account)+len(k.states) > 0
}

// matches reports whether the filters select a job, regardless of its number.
func (k cancellation) matches(j job.Job) bool {
	within := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	user := j.Spec.User
	return within(k.name, j.Name) && within(k.partition, j.Spec.Partition) && within(k.account, j.Spec.Account) &&
		(within(k.user, user.Name) || slices.Contains(k.user, strconv.Itoa(user.UID))) &&
		(len(k.states) == 0 || slices.Contains(k.states, j.State))
}

// scancel requests corrald to cancel jobs: waiting jobs never start, and running jobs are killed.
func scancel(c *call) error {
	k, err := parseCancel(c.args)
	if err != nil {
		return err
	}
	if unknown := strangers(k.user); len(unknown) > 0 {
		return fmt.Errorf("Invalid user name: %s", unknown[0]) // Slurm's wording
	}
	if err := openOf(c, k.clusters); err != nil {
		return err
	}
	wrong, err := k.carryOut(c)
	if k.quiet {
		wrong = nil
	}
	return cmp.Or(err, wrong)
}

// carryOut cancels the selected jobs that have not ended. wrong names the jobs that do not exist, in Slurm's wording.
func (k cancellation) carryOut(c *call) (wrong, err error) {
	var found []job.Job
	if len(k.jobs) == 0 {
		// A skipped task is a job whose condition can no longer be met.
		found, err = c.jobs(api.TaskQuery{States: append(slices.Clone(living), corral.TaskSkipped)})
	} else {
		found, wrong, err = c.named(k.jobs)
	}
	var ids []string
	for _, j := range found {
		if !j.State.Over() && k.matches(j) {
			ids = append(ids, strconv.Itoa(j.ID-int(c.folder.Base())))
		}
	}
	if err != nil || len(ids) == 0 {
		return wrong, err
	}
	for some := range slices.Chunk(ids, api.MaxTasks) {
		_, err = untilAnswered(c, func() (corral.Run, error) {
			return c.client.CancelTasks(c.ctx, c.folder.Run, some...)
		})
		if err != nil {
			break
		}
	}
	return wrong, err
}

// named returns the jobs of a list, and an error in Slurm's wording for the entries without a job.
func (c *call) named(list []notation.JobID) (found []job.Job, wrong error, err error) {
	all, err := c.expand(list)
	if err != nil {
		return nil, nil, err
	}
	// As in Slurm, the existing jobs are nevertheless cancelled.
	var words []error
	for i, jobs := range all {
		if found = append(found, jobs...); len(jobs) == 0 {
			// Slurm's wording
			words = append(words, fmt.Errorf("Kill job error on job id %s: Invalid job id specified", list[i]))
		}
	}
	return found, errors.Join(words...), nil
}

// cancelling parses scancel's command line. Unknown options are refused.
var cancelling = notation.Getopt{Command: "scancel", Options: notation.Options(
	"account|A= batch|b ctld clusters|M= full|f hurry|H jobname= me name|n= partition|p= quiet|Q signal|s= state|t= " +
		"user|u= verbose|v")}

// parseCancel parses scancel's command line.
func parseCancel(words []string) (k cancellation, err error) {
	given, rest, err := cancelling.Parse(words)
	if err != nil {
		return k, err
	}
	for _, word := range rest {
		ids, err := notation.ParseJobIDs(word)
		if err != nil {
			return k, fmt.Errorf("Invalid job id %s", word) // Slurm's wording
		}
		k.jobs = append(k.jobs, ids...)
	}
	for _, g := range given {
		if err := k.take(g.Name, g.Value); err != nil {
			return k, err
		}
	}
	// Without a selection, scancel does nothing: no user wants to cancel all jobs by mistake.
	if len(k.jobs) == 0 && !k.narrows() {
		return k, errors.New("No job identification provided") // Slurm's wording
	}
	return k, nil
}

// cancellable maps the states that scancel accepts.
var cancellable = map[string]job.State{
	"PENDING": job.Pending, "PD": job.Pending, "RUNNING": job.Running, "R": job.Running,
}

// take handles one option.
func (k *cancellation) take(meaning, value string) error {
	// An empty filter, for example from an unset variable, is a mistake: it must not select jobs with an empty value.
	list := slices.DeleteFunc(strings.Split(value, ","), func(one string) bool { return one == "" })
	filters := []string{"name", "jobname", "user", "partition", "account", "state"}
	if len(list) == 0 && slices.Contains(filters, meaning) {
		return fmt.Errorf("--%s has no value: no job is cancelled", meaning)
	}
	switch meaning {
	case "clusters":
		k.clusters = value
	case "quiet":
		k.quiet = true
	case "me":
		k.user = append(k.user, whoever().Name)
	case "name", "jobname":
		k.name = append(k.name, list...)
	case "user":
		k.user = append(k.user, list...)
	case "partition":
		k.partition = append(k.partition, list...)
	case "account":
		k.account = append(k.account, list...)
	case "state":
		for _, s := range list {
			state, ok := cancellable[strings.ToUpper(s)]
			if !ok {
				return fmt.Errorf("Invalid job state %s", s) // Slurm's wording
			}
			k.states = append(k.states, state)
		}
	case "signal":
		if n, err := notation.ParseSignal(value); err != nil || n != 9 && n != 15 {
			return &notation.Unsupported{
				What: "--signal=" + value,
				Why:  "jobs can only be ended; --signal of sbatch warns them before their time is up",
			}
		}
	}
	return nil
}
