package corral

import (
	"slices"
	"strings"
	"time"
)

// ForkBatch is the batch system of a machine that has none. It runs setup and cleanup jobs unless a site says
// otherwise.
const ForkBatch = "fork"

// A BatchSystem describes one of the batch systems that Corral supports. Help, completion, the checks of requests and
// the dialect itself read it here; the dialects are below gridsite, and programs that only name them link none.
type BatchSystem struct {
	Name    string
	Help    string            // completes "NAME ..."
	Options map[string]string // :: JSON name of a field of BatchOptions → what the system calls it

	// Queueless is true if jobs start at once, on the one machine that the site is, and share its processors. Such a
	// site has no queue to wait in, and its batch system does not say what is free.
	Queueless bool

	// StartUp is how long a pilot takes from its job's start to its workers in the cluster, until that is learned.
	StartUp time.Duration

	// Leave is how long a pilot takes to leave: from the order until its job is gone from the queue, and that is seen.
	Leave time.Duration
}

// BatchSystems lists those that there are, in the order in which help names them.
var BatchSystems = []BatchSystem{
	{Name: ForkBatch, Help: "starts each job at once on the machine itself", Queueless: true,
		StartUp: time.Second, Leave: 3 * time.Second},
	{Name: "slurm", Help: "is asked with its own commands, on a head node that shares a file system with the nodes",
		Options: map[string]string{
			"queue": "--partition", "account": "--account", "qos": "--qos", "constraint": "--constraint",
			"site_options": "#SBATCH",
		}, StartUp: usualStartUp, Leave: usualLeave},
}

// BatchSystemNames lists their names.
func BatchSystemNames() []string {
	var names []string
	for _, b := range BatchSystems {
		names = append(names, b.Name)
	}
	return names
}

// BatchSystemNamed returns the one with the name. One that is not known is an Invalid error, which lists those that
// are.
func BatchSystemNamed(name string) (BatchSystem, error) {
	if i := slices.IndexFunc(BatchSystems, func(b BatchSystem) bool { return b.Name == name }); i >= 0 {
		return BatchSystems[i], nil
	}
	known := strings.Join(BatchSystemNames(), ", ")
	return BatchSystem{}, Errorf(Invalid, "%.80q is not supported; what is: %s", name, known)
}

// Of batch systems that say nothing else: prologues and file systems of a cluster take seconds.
const (
	usualStartUp = 10 * time.Second
	usualLeave   = 15 * time.Second
)

// System returns the batch system of the site's pilots. One that is not in the table, as in a database that a newer
// corrald has written, has a queue, the usual times and none of the options.
func (s Site) System() BatchSystem {
	b, err := BatchSystemNamed(s.Batch)
	if err != nil {
		return BatchSystem{Name: s.Batch, StartUp: usualStartUp, Leave: usualLeave}
	}
	return b
}

// A BatchOption is one of BatchOptions: the JSON name of its field there, and its value.
type BatchOption struct{ Name, Value string }

// Given lists the options that are set. Each line of the site options is one.
func (o BatchOptions) Given() []BatchOption {
	all := []BatchOption{{"queue", o.Queue}, {"account", o.Account}, {"qos", o.QOS}, {"constraint", o.Constraint}}
	all = slices.DeleteFunc(all, func(b BatchOption) bool { return b.Value == "" })
	for _, line := range o.SiteOptions {
		all = append(all, BatchOption{"site_options", line})
	}
	return all
}

// Lacks returns the JSON names of the options that are set and of which the batch system has none.
func (b BatchSystem) Lacks(o BatchOptions) []string {
	var lacks []string
	for _, given := range o.Given() {
		if b.Options[given.Name] == "" {
			lacks = append(lacks, given.Name)
		}
	}
	return slices.Compact(lacks)
}
