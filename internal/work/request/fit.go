package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// The resources of a site are known from its facts, which a survey of its batch system has found: queues with their
// limits, the memory per cpu, and whether worker nodes see the site's root. Facts may be absent or old, so each message
// contains their time, and unknown limits do not refuse anything.

const localContact = "local:"

// leastFreeMiB is the room that a site's root must have: for a worker package, twice, and for the files of jobs.
const leastFreeMiB = 64

// CheckRoom returns an error if the site's root has too little room according to the site's facts. Without the check,
// the setup job would fail halfway with a less helpful message.
func CheckRoom(site corral.Site) error {
	var k checker
	free := site.Facts.FreeMiB
	k.unsatisfiable(free >= 0 && free < leastFreeMiB, "root",
		"only %d MiB of disk or quota are free at %s on %s; a site needs %d MiB",
		free, site.Root, site.Contact, leastFreeMiB)
	return k.err
}

// CheckQueues returns an error if pilots with the site's own options cannot start according to the site's facts,
// because all these queues are closed to the user. If the site does not have such a queue, glideins may still name
// another one.
func CheckQueues(site corral.Site) error {
	queues, err := queuesOf(site, site.BatchOptions)
	if err != nil {
		return nil
	}
	for _, q := range queues {
		if q.Closed == "" {
			return nil
		}
		err = corral.ErrorAt(corral.Unsatisfiable, "queue", "queue %s of %s at %s does not start your jobs: %s; "+
			"another --qos, --account or --queue may have access", q.Name, site.Batch, site.Contact, q.Closed)
	}
	return err
}

// Fit sets the memory of the glidein if it does not request any, and returns an error if its site cannot provide its
// resources according to the site's facts. The check is useful because a batch system may accept a job that it will
// never start.
func Fit(g *corral.Glidein, site corral.Site, machine corral.SiteQueue) error {
	if site.System().Queueless {
		return fitMachine(g, site, machine)
	}
	if f := site.Facts; f != nil && f.Shared != nil && !*f.Shared { // each attempt would fail for this reason
		return corral.ErrorAt(corral.Unsatisfiable, "site",
			"worker nodes of %s do not see its root %s (%s)", site.Name, site.Root, asOf(site))
	}
	queues, err := queuesOf(site, g.BatchOptions)
	if err != nil || len(queues) == 0 {
		return err
	}
	defaultMemory(g, share(queues, g.CPUs))
	for _, q := range queues { // the batch system uses any queue that is suitable
		if err = overLimit(site, q, *g); err == nil {
			return nil
		}
	}
	return err
}

// fitMachine is Fit for a site without a batch system: all hosts of a glidein are the site's one machine, which is this
// machine if the site is local.
func fitMachine(g *corral.Glidein, site corral.Site, machine corral.SiteQueue) error {
	var k checker
	k.optionsOf(site.Batch, g.BatchOptions)
	k.unsatisfiable(g.GPUs != 0, "gpus", "the batch system %s has none", site.Batch)
	what := "this machine"
	if site.Contact != localContact {
		what = "the machine of site " + site.Name
	}
	machine = Machine(site, machine)
	if machine.CPUs == 0 || k.err != nil { // 0: unknown
		return k.err
	}
	k.unsatisfiable(g.CPUs > machine.CPUs, "cpus", "each host needs %d; %s has %d", g.CPUs, what, machine.CPUs)
	k.unsatisfiable(g.Hosts*g.MemoryMiB > machine.MemoryMiB && machine.MemoryMiB > 0, "memory_mib",
		"%d hosts with %d MiB each; %s, which all of them are, has %d MiB",
		g.Hosts, g.MemoryMiB, what, machine.MemoryMiB)
	// If the request does not set the memory, each host gets a share in proportion to its cpus. If the hosts together
	// request more cpus than the machine has, the shares are relative to the requested cpus, so that they still add up
	// to the machine's memory.
	defaultMemory(g, max(1, machine.MemoryMiB*g.CPUs/max(machine.CPUs, g.Hosts*g.CPUs)))
	return k.err
}

// defaultMemory sets the memory of each host if the glidein does not specify it.
func defaultMemory(g *corral.Glidein, mib int) {
	g.MemoryMiB = cmp.Or(g.MemoryMiB, mib)
}

// Machine returns the machine of a site without a batch system, described as a queue: this machine if the site is
// local, otherwise the machine found there. If it is unknown, the queue has 0 cpus.
func Machine(site corral.Site, here corral.SiteQueue) corral.SiteQueue {
	switch {
	case site.Contact == localContact:
		return here
	case site.Facts != nil && len(site.Facts.Queues) > 0:
		return site.Facts.Queues[0]
	}
	return corral.SiteQueue{}
}

// queuesOf returns the queues in which a job with these options may start, or none if the site's queues are unknown.
// They are the queues that the options name, which may be a list separated by commas, as in Slurm; otherwise the site's
// own; otherwise its default queue. If the site lacks a queue, the Unsatisfiable error lists the queues that it has.
func queuesOf(site corral.Site, o corral.BatchOptions) ([]corral.SiteQueue, error) {
	if site.Facts == nil || len(site.Facts.Queues) == 0 {
		return nil, nil
	}
	known := site.Facts.Queues
	asked := cmp.Or(o.Queue, site.Queue)
	if asked == "" {
		i := slices.IndexFunc(known, func(q corral.SiteQueue) bool { return q.Default })
		if i < 0 {
			return nil, corral.ErrorAt(corral.Unsatisfiable, "queue",
				"site %s has no default queue: name one of %s", site.Name, names(known))
		}
		return known[i : i+1], nil
	}
	var queues []corral.SiteQueue
	for name := range strings.SplitSeq(asked, ",") {
		i := slices.IndexFunc(known, func(q corral.SiteQueue) bool { return q.Name == name })
		if i < 0 {
			return nil, corral.ErrorAt(corral.Unsatisfiable, "queue",
				"site %s has no queue %.80q; it has %s (%s)", site.Name, name, names(known), asOf(site))
		}
		queues = append(queues, known[i])
	}
	return queues, nil
}

// names lists queues for a message, but not all of them: some sites have hundreds.
func names(queues []corral.SiteQueue) string {
	const most = 20
	var all []string
	for _, q := range queues {
		all = append(all, q.Name)
	}
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(all, ", ")
}

// asOf returns the time of a site's facts, and the command that updates them.
func asOf(site corral.Site) string {
	return fmt.Sprintf("as of %s; corral site probe %s updates this", site.Facts.At.Format(time.RFC3339), site.Name)
}

// share returns the memory of a number of cpus in the queue that has the least memory per cpu, or 0 if that of a queue
// is unknown. The batch system chooses the queue later, so a glidein can rely only on the memory that all of them have.
func share(queues []corral.SiteQueue, cpus int) int {
	least := queues[0].CPUMemoryMiB
	for _, q := range queues {
		least = min(least, q.CPUMemoryMiB)
	}
	return least * cpus
}

// overLimit returns an error for the first limit of a queue that the glidein exceeds. A limit of 0 is unknown and does
// not refuse anything. The limits on the walltime and the number of nodes also depend on the account and the QOS: if
// these are not the site's own, only the batch system knows the limits.
func overLimit(site corral.Site, q corral.SiteQueue, g corral.Glidein) error {
	var k checker
	queue := q.Name
	if site.QOS != "" { // its limits are part of the queue's
		queue += " with QOS " + site.QOS
	}
	over := func(place, asked, limit string, most any) {
		k.unsatisfiable(true, place, "%s exceeds %s of queue %s at site %s, which is %v (%s)",
			asked, limit, queue, site.Name, most, asOf(site))
	}
	own := cmp.Or(g.Account, site.Account) == site.Account && cmp.Or(g.QOS, site.QOS) == site.QOS
	k.unsatisfiable(own && q.Closed != "", "queue",
		"queue %s at site %s does not start your jobs: %s (%s)", q.Name, site.Name, q.Closed, asOf(site))
	if own && q.MaxWalltime > 0 && g.Walltime > q.MaxWalltime {
		over("walltime_s", g.Walltime.String(), "max_walltime_s", q.MaxWalltime)
	}
	if own && q.MaxNodes > 0 && g.Hosts > q.MaxNodes {
		over("hosts", fmt.Sprint(g.Hosts), "max_nodes", q.MaxNodes)
	}
	for _, l := range []struct {
		place, limit string
		asked, most  int
	}{
		{"hosts", "nodes", g.Hosts, q.Nodes},
		{"cpus", "cpus", g.CPUs, q.CPUs},
		{"memory_mib", "memory_mib", g.MemoryMiB, q.MemoryMiB},
	} {
		if l.most > 0 && l.asked > l.most {
			over(l.place, fmt.Sprint(l.asked), l.limit, l.most)
		}
	}
	if q.CPUs > 0 && g.GPUs > q.GPUs { // if the nodes are known, so are their gpus
		over("gpus", fmt.Sprint(g.GPUs), "gpus", q.GPUs)
	}
	return k.err
}

// Hosts returns the maximum resources of the hosts of pilots like g at the site where Place has put it: the largest
// node of each queue that accepts g. Unknown components are Unlimited.
func Hosts(g corral.Glidein, site corral.Site, machine corral.SiteQueue) (all []corral.Resources) {
	if site.System().Queueless {
		m := Machine(site, machine)
		return []corral.Resources{{CPUs: OrUnlimited(m.CPUs), MemoryMiB: OrUnlimited(m.MemoryMiB),
			DiskMiB: corral.Unlimited}}
	}
	queues, err := queuesOf(site, g.BatchOptions)
	if err != nil || len(queues) == 0 {
		const any = corral.Unlimited
		return []corral.Resources{{CPUs: any, MemoryMiB: any, GPUs: any, DiskMiB: any}}
	}
	for _, q := range queues {
		if overLimit(site, q, g) != nil {
			continue
		}
		host := corral.Resources{CPUs: OrUnlimited(q.CPUs), MemoryMiB: OrUnlimited(q.MemoryMiB), GPUs: q.GPUs,
			DiskMiB: corral.Unlimited}
		if q.CPUs == 0 { // if the nodes are known, so are their gpus
			host.GPUs = corral.Unlimited
		}
		all = append(all, host)
	}
	return all
}

// OrUnlimited returns a queue's limit n, or Unlimited if n is 0, which means unknown.
func OrUnlimited(n int) int {
	if n == 0 {
		return corral.Unlimited
	}
	return n
}
