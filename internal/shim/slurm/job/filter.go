package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Filter selects the jobs of a command. An empty field selects all jobs.
type Filter struct {
	Jobs       []notation.JobID
	Clusters   string   // a list of names
	States     []State  // any of them
	AllStates  bool     // "all" was given
	users      []string // names or numbers
	names      []string // of jobs
	partitions []string
	accounts   []string
	qos        []string
	me         string // the user for --me
}

// option handles an option that squeue and sacct share.
func (f *Filter) option(g notation.Given) (err error) {
	list := strings.Split(g.Value, ",") // the arguments of all these options are lists
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

// Users returns the names or numbers of the users whose jobs are selected; an empty list selects all users.
func (f *Filter) Users() []string { return f.users }

// states parses the states of -t, in any case and with Slurm's abbreviations. An unknown state is refused with a list
// of the known states.
func (f *Filter) states(list []string) error {
	for _, text := range list {
		if strings.EqualFold(text, "all") {
			f.AllStates, f.States = true, nil // also discards states given before
			return nil
		}
		state, ok := ParseState(text)
		if !ok {
			var names []string
			for _, c := range codes {
				names = append(names, string(c.state))
			}
			// Slurm's wording
			return fmt.Errorf("Invalid job state specified: %s\nValid job states include: %s",
				text, strings.Join(names, ","))
		}
		f.States = append(f.States, state)
	}
	return nil
}

// is reports whether id names the job.
func (j *Job) is(id notation.JobID) bool {
	if id.Tasks != nil {
		_, ok := slices.BinarySearch(id.Tasks, j.ArrayTask)
		return ok && j.ArrayID == id.Job
	}
	return j.ID == id.Job || j.ArrayID == id.Job
}

// tasks reports whether tasks of arrays were selected by number: in that case each task has its own line.
func (f *Filter) tasks() bool {
	return slices.ContainsFunc(f.Jobs, func(id notation.JobID) bool { return id.Tasks != nil })
}

// Wants reports whether the filter selects a job.
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

// Select returns the jobs that the filter selects.
func (f *Filter) Select(jobs []Job) []Job {
	var list []Job
	for i := range jobs {
		if f.Wants(&jobs[i]) {
			list = append(list, jobs[i])
		}
	}
	return list
}
