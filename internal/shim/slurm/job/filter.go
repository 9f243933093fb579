package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Filter says which jobs a command asks for. What is empty asks for all.
type Filter struct {
	Jobs       []notation.JobID
	Clusters   string   // a list of names
	States     []State  // any of them
	AllStates  bool     // "all" was asked for
	users      []string // names or numbers
	names      []string // of jobs
	partitions []string
	accounts   []string
	qos        []string
	me         string // whom --me means
}

// option takes over an option that squeue and sacct have in common.
func (f *Filter) option(g notation.Given) (err error) {
	list := strings.Split(g.Value, ",") // all of these options have lists
	switch g.Name {
	case "jobs":
		f.Jobs, err = notation.ParseJobIDs(strings.TrimPrefix(g.Value, "="))
	case "states", "state":
		return f.states(list)
	case "clusters", "cluster":
		f.Clusters = g.Value
	case "user", "users", "uid":
		f.users = list
	case "me":
		f.users = []string{f.me}
	case "name":
		f.names = list
	case "partition":
		f.partitions = list
	case "account", "accounts":
		f.accounts = list
	case "qos":
		f.qos = list
	}
	return err
}

// Users are those of whom jobs are asked for, by their names or numbers; none: all.
func (f *Filter) Users() []string { return f.users }

// states takes the states of -t, in any case and cut short as Slurm cuts them. One that is unknown is refused with
// the list of those that are known.
func (f *Filter) states(list []string) error {
	for _, text := range list {
		if strings.EqualFold(text, "all") {
			f.AllStates, f.States = true, nil // also those said before
			return nil
		}
		state, ok := ParseState(text)
		if !ok {
			var names []string
			for _, c := range codes {
				names = append(names, string(c.state))
			}
			// Slurm's words
			return fmt.Errorf("Invalid job state specified: %s\nValid job states include: %s",
				text, strings.Join(names, ","))
		}
		f.States = append(f.States, state)
	}
	return nil
}

// is says whether the job is one of those that id names.
func (j *Job) is(id notation.JobID) bool {
	if id.Tasks != nil {
		_, ok := slices.BinarySearch(id.Tasks, j.ArrayTask)
		return ok && j.ArrayID == id.Job
	}
	return j.ID == id.Job || j.ArrayID == id.Job
}

// tasks says whether tasks of arrays were asked for by their numbers: then each has its line.
func (f *Filter) tasks() bool {
	return slices.ContainsFunc(f.Jobs, func(id notation.JobID) bool { return id.Tasks != nil })
}

// Wants says whether the filter lets a job through.
func (f *Filter) Wants(j *Job) bool {
	among := func(list []string, value string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(s string) bool { return strings.TrimSpace(s) == value })
	}
	return (len(f.Jobs) == 0 || slices.ContainsFunc(f.Jobs, j.is)) &&
		(len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
		(among(f.users, j.Spec.User.Name) || among(f.users, strconv.Itoa(j.Spec.User.UID))) &&
		among(f.names, j.Name) && among(f.partitions, j.Spec.Partition) && among(f.accounts, j.Spec.Account) &&
		among(f.qos, cmp.Or(j.Spec.QOS, "normal"))
}

// Select returns the jobs that the filter lets through.
func (f *Filter) Select(jobs []Job) []Job {
	var list []Job
	for i := range jobs {
		if f.Wants(&jobs[i]) {
			list = append(list, jobs[i])
		}
	}
	return list
}
