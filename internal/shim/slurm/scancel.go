package slurm

// scancel looks which of the jobs that are meant are not over, and has corrald cancel these. Between the two some may
// end, which stay as they are. Slurm says nothing about jobs that are over already, and neither does this.

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

// A cancellation is what scancel is asked for: jobs by number, and which of them, or of all.
type cancellation struct {
	jobs                           []notation.JobID
	name, user, partition, account []string
	states                         []job.State
	clusters                       string
	quiet                          bool
}

// narrows reports whether jobs are to be chosen by something else than their numbers.
func (k cancellation) narrows() bool {
	return len(k.name)+len(k.user)+len(k.partition)+len(k.account)+len(k.states) > 0
}

// matches reports whether a job is one of those that are meant, whatever its number.
func (k cancellation) matches(j job.Job) bool {
	within := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	user := j.Spec.User
	return within(k.name, j.Name) && within(k.partition, j.Spec.Partition) && within(k.account, j.Spec.Account) &&
		(within(k.user, user.Name) || slices.Contains(k.user, strconv.Itoa(user.UID))) &&
		(len(k.states) == 0 || slices.Contains(k.states, j.State))
}

// scancel has corrald cancel jobs: those that wait never start, and those that run are killed.
func scancel(c *call) error {
	k, err := parseCancel(c.args)
	if err != nil {
		return err
	}
	if unknown := strangers(k.user); len(unknown) > 0 {
		return fmt.Errorf("Invalid user name: %s", unknown[0]) // Slurm's words
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

// carryOut cancels what is to be cancelled and is not over. wrong says in Slurm's words which of the jobs are none.
func (k cancellation) carryOut(c *call) (wrong, err error) {
	var found []job.Job
	if len(k.jobs) == 0 {
		// What is skipped waits in vain.
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

// named returns the jobs of a list, and as an error in Slurm's words those that are none.
func (c *call) named(list []notation.JobID) (found []job.Job, wrong error, err error) {
	all, err := c.expand(list)
	if err != nil {
		return nil, nil, err
	}
	// Those that are there are cancelled all the same, as Slurm does.
	var words []error
	for i, jobs := range all {
		if found = append(found, jobs...); len(jobs) == 0 {
			// Slurm's words
			words = append(words, fmt.Errorf("Kill job error on job id %s: Invalid job id specified", list[i]))
		}
	}
	return found, errors.Join(words...), nil
}

// cancelling reads scancel's words. What it does not know is refused.
var cancelling = notation.Getopt{Command: "scancel", Options: notation.Options(
	"account|A= batch|b ctld clusters|M= full|f hurry|H jobname= me name|n= partition|p= quiet|Q signal|s= state|t= " +
		"user|u= verbose|v")}

// parseCancel reads scancel's words.
func parseCancel(words []string) (k cancellation, err error) {
	given, rest, err := cancelling.Parse(words)
	if err != nil {
		return k, err
	}
	for _, word := range rest {
		ids, err := notation.ParseJobIDs(word)
		if err != nil {
			return k, fmt.Errorf("Invalid job id %s", word) // Slurm's words
		}
		k.jobs = append(k.jobs, ids...)
	}
	for _, g := range given {
		if err := k.take(g.Name, g.Value); err != nil {
			return k, err
		}
	}
	// Without a word that says which, scancel does nothing: nobody wants to cancel all by a slip.
	if len(k.jobs) == 0 && !k.narrows() {
		return k, errors.New("No job identification provided") // Slurm's words
	}
	return k, nil
}

// cancellable are the states that scancel takes.
var cancellable = map[string]job.State{
	"PENDING": job.Pending, "PD": job.Pending, "RUNNING": job.Running, "R": job.Running,
}

// take takes in one option.
func (k *cancellation) take(meaning, value string) error {
	// A filter without a value, as of a variable that is not set, is a slip: it must not stand for jobs that have none.
	list := slices.DeleteFunc(strings.Split(value, ","), func(one string) bool { return one == "" })
	filters := []string{"name", "jobname", "user", "partition", "account", "state"}
	if len(list) == 0 && slices.Contains(filters, meaning) {
		return fmt.Errorf("--%s names nothing: no job is cancelled", meaning)
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
				return fmt.Errorf("Invalid job state %s", s) // Slurm's words
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
