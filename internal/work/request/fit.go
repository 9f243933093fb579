package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// What a site can give is known from its facts, which a survey of its batch system has found: queues with their limits,
// the memory that a cpu comes with, and whether worker nodes see the site's root. Facts may be absent or old, so each
// check says of when they are, and what is not known refuses nothing.

const localContact = "local:"

// leastFreeMiB is what a site's root must have room for: a worker package, twice, and what jobs write.
const leastFreeMiB = 64

// CheckRoom reports that the place of a site's root has too little room, as far as the site's facts say. Without the
// check the setup job would fail in the middle, with words that say less.
func CheckRoom(site corral.Site) error {
	var k checker
	free := site.Facts.FreeMiB
	k.unsatisfiable(free >= 0 && free < leastFreeMiB, "root",
		"only %d MiB may be written at %s on %s, of disk or quota; a site needs %d MiB",
		free, site.Root, site.Contact, leastFreeMiB)
	return k.err
}

// CheckQueues reports why no pilot with the site's own options may start there, as far as the site's facts say: all of
// its queues are closed to the user. If the site has not got such a queue at all, glideins may still name another.
func CheckQueues(site corral.Site) error {
	queues, err := queuesOf(site, site.BatchOptions)
	if err != nil {
		return nil
	}
	for _, q := range queues {
		if q.Closed == "" {
			return nil
		}
		err = corral.ErrorAt(corral.Unsatisfiable, "queue", "queue %s of %s at %s starts no job of yours: %s; "+
			"another --qos, --account or --queue may have rights there", q.Name, site.Batch, site.Contact, q.Closed)
	}
	return err
}

// Fit gives the glidein the memory that it did not ask for, and reports why its site cannot give what it asks for, as
// far as the site's facts say. The check is worth it because a batch system may take a job that it will never start.
func Fit(g *corral.Glidein, site corral.Site, machine corral.SiteQueue) error {
	if site.System().Queueless {
		return fitMachine(g, site, machine)
	}
	if f := site.Facts; f != nil && f.Shared != nil && !*f.Shared { // each attempt would fail with this
		return corral.ErrorAt(corral.Unsatisfiable, "site",
			"worker nodes of %s do not see its root %s (%s)", site.Name, site.Root, asOf(site))
	}
	queues, err := queuesOf(site, g.BatchOptions)
	if err != nil || len(queues) == 0 {
		return err
	}
	defaultMemory(g, share(queues, g.CPUs))
	for _, q := range queues { // the batch system takes any that will do
		if err = overLimit(site, q, *g); err == nil {
			return nil
		}
	}
	return err
}

// fitMachine is Fit for a site without a batch system: all hosts of a glidein are the one machine, which is this one if
// the site is here.
func fitMachine(g *corral.Glidein, site corral.Site, machine corral.SiteQueue) error {
	var k checker
	k.optionsOf(site.Batch, g.BatchOptions)
	k.unsatisfiable(g.GPUs != 0, "gpus", "the batch system %s has none", site.Batch)
	what := "this machine"
	if site.Contact != localContact {
		what = "the machine of site " + site.Name
	}
	machine = Machine(site, machine)
	if machine.CPUs == 0 || k.err != nil { // 0: not known
		return k.err
	}
	k.unsatisfiable(g.CPUs > machine.CPUs, "cpus", "%d of each host; %s has %d", g.CPUs, what, machine.CPUs)
	k.unsatisfiable(g.Hosts*g.MemoryMiB > machine.MemoryMiB && machine.MemoryMiB > 0, "memory_mib",
		"%d hosts with %d MiB each; %s, which all of them are, has %d MiB",
		g.Hosts, g.MemoryMiB, what, machine.MemoryMiB)
	// Without a number of its own each host gets its share of the memory by its cpus. Where the hosts together want
	// more cpus than there are, the shares are of what they want, so that they still sum to the machine's memory.
	defaultMemory(g, max(1, machine.MemoryMiB*g.CPUs/max(machine.CPUs, g.Hosts*g.CPUs)))
	return k.err
}

// defaultMemory sets the memory of each host if the glidein does not say how much that is.
func defaultMemory(g *corral.Glidein, mib int) {
	if g.MemoryMiB == 0 {
		g.MemoryMiB = mib
	}
}

// Machine is the machine that a site without a batch system is, as a queue: this one if the site is here, else the one
// that was found there; without cpus if it is not known.
func Machine(site corral.Site, here corral.SiteQueue) corral.SiteQueue {
	switch {
	case site.Contact == localContact:
		return here
	case site.Facts != nil && len(site.Facts.Queues) > 0:
		return site.Facts.Queues[0]
	}
	return corral.SiteQueue{}
}

// queuesOf returns the queues that a job with these options may start in, none if the site's are not known: those that
// the options name, which may be several with commas between them as Slurm takes them, else the site's own, else its
// default queue. One that the site does not have is an Unsatisfiable error that lists those it has.
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

// names lists queues for a message; sites with hundreds of them exist.
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

// asOf says how old a site's facts are, and how to get new ones.
func asOf(site corral.Site) string {
	return fmt.Sprintf("as of %s; corral site probe %s looks again", site.Facts.At.Format(time.RFC3339), site.Name)
}

// share is the memory of so many cpus in whichever of the queues has the least; 0 if one does not say. The batch system
// chooses the queue later, so a glidein may count only on what all of them have.
func share(queues []corral.SiteQueue, cpus int) int {
	least := queues[0].CPUMemoryMiB
	for _, q := range queues {
		least = min(least, q.CPUMemoryMiB)
	}
	return least * cpus
}

// overLimit reports the first limit of a queue that the glidein is over. A limit of 0 is not known, and refuses
// nothing. The walltime and the number of nodes depend on account and QOS, too: with others than the site's own, only
// the batch system knows.
func overLimit(site corral.Site, q corral.SiteQueue, g corral.Glidein) error {
	var k checker
	queue := q.Name
	if site.QOS != "" { // whose limits are among the queue's
		queue += " with QOS " + site.QOS
	}
	over := func(place, asked, limit string, most any) {
		k.unsatisfiable(true, place, "%s is over %s of queue %s at site %s, which is %v (%s)",
			asked, limit, queue, site.Name, most, asOf(site))
	}
	own := cmp.Or(g.Account, site.Account) == site.Account && cmp.Or(g.QOS, site.QOS) == site.QOS
	k.unsatisfiable(own && q.Closed != "", "queue",
		"queue %s at site %s starts no job of yours: %s (%s)", q.Name, site.Name, q.Closed, asOf(site))
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
	if q.CPUs > 0 && g.GPUs > q.GPUs { // where nodes are known, so are their gpus
		over("gpus", fmt.Sprint(g.GPUs), "gpus", q.GPUs)
	}
	return k.err
}

// Hosts returns what the hosts of pilots like g may have at most at a site that Place has put it to: of each queue that
// takes it, the largest node. A component that is not known is Unlimited.
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
		if q.CPUs == 0 { // where nodes are known, so are their gpus
			host.GPUs = corral.Unlimited
		}
		all = append(all, host)
	}
	return all
}

// OrUnlimited returns what a queue says that it has, where 0 is not known.
func OrUnlimited(n int) int {
	if n == 0 {
		return corral.Unlimited
	}
	return n
}
