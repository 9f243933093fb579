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
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// scancelOptions are the options of scancel. Repeated filters add to each other.
var scancelOptions = notation.Command[query]{Name: "scancel", Options: []option{
	{Names: "account|A=", Set: onlyOf(func(q *query) *[]string { return &q.accounts })},
	{Names: "clusters|M=", Set: clusters},
	{Names: "me", Set: func(q *query, _ notation.Given) error {
		q.users = append(q.users, q.me)
		return nil
	}},
	{Names: "jobname= name|n=", Set: onlyOf(func(q *query) *[]string { return &q.names })},
	{Names: "partition|p=", Set: onlyOf(func(q *query) *[]string { return &q.partitions })},
	{Names: "quiet|Q", Set: notation.On(func(q *query) *bool { return &q.quiet })},
	{Names: "signal|s=", Set: func(_ *query, g notation.Given) error {
		if n, err := notation.ParseSignal(g.Value); err != nil || n != 9 && n != 15 {
			return g.Refuse("jobs can only be ended; --signal of sbatch warns them before their time is up")
		}
		return nil
	}},
	{Names: "state|t=", Set: cancelStates},
	{Names: "user|u=", Set: onlyOf(func(q *query) *[]string { return &q.users })},
	{Names: "batch|b ctld full|f hurry|H verbose|v"},
}}

// filled splits the argument of a filter. An empty filter, for example from an unset variable, is a mistake: it must
// not select jobs with an empty value.
func filled(g notation.Given) ([]string, error) {
	list := slices.DeleteFunc(strings.Split(g.Value, ","), func(one string) bool { return one == "" })
	if len(list) == 0 {
		return nil, fmt.Errorf("--%s has no value: no job is cancelled", g.Name)
	}
	return list, nil
}

// onlyOf returns the effect of a filter.
func onlyOf(field func(*query) *[]string) notation.Effect[query] {
	return func(q *query, g notation.Given) error {
		list, err := filled(g)
		*field(q) = append(*field(q), list...)
		return err
	}
}

// cancelStates parses the states of jobs to be cancelled: those of jobs that have not ended.
func cancelStates(q *query, g notation.Given) error {
	list, err := filled(g)
	for _, text := range list {
		s, _ := parseState(text)
		if s != pending && s != running {
			return fmt.Errorf("Invalid job state %s", text) // Slurm's wording
		}
		q.states = append(q.states, s)
	}
	return err
}

// parseScancel parses scancel's command line.
func parseScancel(words []string, me string) (*query, error) {
	q := &query{me: me}
	if err := q.parse(scancelOptions, words, ""); err != nil {
		return nil, err
	}
	for _, word := range q.rest {
		ids, err := notation.ParseJobIDs(word)
		if err != nil {
			return nil, fmt.Errorf("Invalid job id %s", word) // Slurm's wording
		}
		q.jobs = append(q.jobs, ids...)
	}
	// Without a selection, scancel does nothing: no user wants to cancel all jobs by mistake.
	if len(q.jobs)+len(q.names)+len(q.users)+len(q.partitions)+len(q.accounts)+len(q.states) == 0 {
		return nil, errors.New("No job identification provided") // Slurm's wording
	}
	return q, nil
}

// scancel requests corrald to cancel jobs: waiting jobs never start, and running jobs are killed.
func scancel(c *call) error {
	q, err := parseScancel(c.args, currentUser().Name)
	if err != nil {
		return err
	}
	if unknown := strangers(q.users); len(unknown) > 0 {
		return fmt.Errorf("Invalid user name: %s", unknown[0]) // Slurm's wording
	}
	if err := openOf(c, q.clusters); err != nil {
		return err
	}
	found, wrong, err := c.cancellable(q)
	if err != nil {
		return err
	}
	var ids []string
	for i := range found {
		if !found[i].State.over() && q.wants(&found[i]) {
			ids = append(ids, strconv.Itoa(found[i].ID-int(c.folder.Base())))
		}
	}
	for some := range slices.Chunk(ids, api.MaxTasks) {
		_, err = untilAnswered(c, func() (corral.Run, error) {
			return c.client.CancelTasks(c.ctx, c.folder.Run, some...)
		})
		if err != nil {
			break
		}
	}
	if q.quiet {
		wrong = nil
	}
	return cmp.Or(err, wrong)
}

// cancellable returns the jobs from which a query selects, and an error in Slurm's wording for the named jobs that do
// not exist. As in Slurm, the existing jobs are nevertheless cancelled.
func (c *call) cancellable(q *query) (found []job, wrong, err error) {
	if len(q.jobs) == 0 {
		if len(q.states) == 0 {
			q.states = []state{pending, running, completing}
		}
		found, err = c.chosen(q, time.Time{})
		return found, nil, err
	}
	all, err := c.expand(q.jobs)
	var words []error
	for i, jobs := range all {
		if found = append(found, jobs...); len(jobs) == 0 {
			// Slurm's wording
			words = append(words, fmt.Errorf("Kill job error on job id %s: Invalid job id specified", q.jobs[i]))
		}
	}
	return found, errors.Join(words...), err
}
