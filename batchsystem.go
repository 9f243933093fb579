package corral

import (
	"slices"
	"strings"
	"time"
)

// ForkBatch is the batch system of a machine without a real batch system. It runs setup and cleanup jobs unless a site
// specifies another.
const ForkBatch = "fork"

// A BatchSystem describes one of the batch systems that Corral supports. Help, completion, request checks and the
// dialects use this description. The dialects are below gridsite; a program that only uses their names does not link
// them.
type BatchSystem struct {
	Name    string
	Help    string            // completes "NAME ..."
	Options map[string]string // :: JSON name of a field of BatchOptions → the system's own name for it

	// Queueless means that jobs start at once and share the processors of the one machine that makes up the site. Such
	// a site has no queue in which jobs wait, and its batch system does not report free processors.
	Queueless bool

	// StartUp is the assumed time from a pilot job's start until its workers register, used until it has been measured.
	StartUp time.Duration

	// Leave is the time from the request to a pilot to leave until its job is observed to have left the queue.
	Leave time.Duration
}

// BatchSystems lists the supported batch systems in the order in which help names them.
var BatchSystems = []BatchSystem{
	{Name: ForkBatch, Help: "starts each job at once on the machine itself", Queueless: true,
		StartUp: time.Second, Leave: 3 * time.Second},
	{Name: "slurm", Help: "is asked with its own commands, on a head node that shares a file system with the nodes",
		Options: map[string]string{
			"queue": "--partition", "account": "--account", "qos": "--qos", "constraint": "--constraint",
			"site_options": "#SBATCH",
		}, StartUp: usualStartUp, Leave: usualLeave},
}

// BatchSystemNames lists the names of the supported batch systems.
func BatchSystemNames() []string {
	var names []string
	for _, b := range BatchSystems {
		names = append(names, b.Name)
	}
	return names
}

// BatchSystemNamed returns the batch system with the given name. For an unknown name it returns an Invalid error that
// lists the supported names.
func BatchSystemNamed(name string) (BatchSystem, error) {
	if i := slices.IndexFunc(BatchSystems, func(b BatchSystem) bool { return b.Name == name }); i >= 0 {
		return BatchSystems[i], nil
	}
	known := strings.Join(BatchSystemNames(), ", ")
	return BatchSystem{}, Errorf(Invalid, "%.80q is not supported; want one of %s", name, known)
}

// Times of batch systems that specify none: a cluster's prologues and file systems take seconds.
const (
	usualStartUp = 10 * time.Second
	usualLeave   = 15 * time.Second
)

// System returns the batch system of the site's pilots. If the name is not in the table, as in a database written by a
// newer corrald, the result has a queue, the usual times and no options.
func (s Site) System() BatchSystem {
	b, err := BatchSystemNamed(s.Batch)
	if err != nil {
		return BatchSystem{Name: s.Batch, StartUp: usualStartUp, Leave: usualLeave}
	}
	return b
}

// A BatchOption is one of the BatchOptions: the JSON name of its field, and its value.
type BatchOption struct{ Name, Value string }

// Given lists the options that are set. Each line of the site options counts as one option.
func (o BatchOptions) Given() []BatchOption {
	all := []BatchOption{{"queue", o.Queue}, {"account", o.Account}, {"qos", o.QOS}, {"constraint", o.Constraint}}
	all = slices.DeleteFunc(all, func(b BatchOption) bool { return b.Value == "" })
	for _, line := range o.SiteOptions {
		all = append(all, BatchOption{"site_options", line})
	}
	return all
}

// Lacks returns the JSON names of the options that are set but not supported by the batch system.
func (b BatchSystem) Lacks(o BatchOptions) []string {
	var lacks []string
	for _, given := range o.Given() {
		if b.Options[given.Name] == "" {
			lacks = append(lacks, given.Name)
		}
	}
	return slices.Compact(lacks)
}
