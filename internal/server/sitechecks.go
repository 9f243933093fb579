package server

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

const localContact = "local:"

// leastFreeMiB is what a site's root must have room for: a worker package, twice, and what jobs write.
const leastFreeMiB = 64

// facts asks a site what its batch system has; nil if nobody can be asked.
func (s *Server) facts(ctx context.Context, site corral.Site) (*corral.SiteFacts, error) {
	if s.cfg.Facts == nil {
		return nil, nil
	}
	facts, err := s.cfg.Facts(ctx, site)
	if err != nil {
		return nil, err
	}
	return &facts, nil
}

// firstFacts are those of a site that is about to be created, so that its first glidein is checked, too.
func (s *Server) firstFacts(ctx context.Context, site corral.Site) (*corral.SiteFacts, error) {
	facts, err := s.facts(ctx, site)
	if err == nil && facts != nil && facts.FreeMiB >= 0 && facts.FreeMiB < leastFreeMiB {
		err = corral.ErrorAt(corral.Unsatisfiable, "root", "only %d MiB may be written at %s on %s, of disk or quota; a site needs %d MiB",
			facts.FreeMiB, site.Root, site.Contact, leastFreeMiB)
	}
	if err == nil {
		err = open(site, facts)
	}
	return facts, err
}

// open reports why no pilot with the site's own options may start there, as far as these facts say.
func open(site corral.Site, facts *corral.SiteFacts) error {
	site.Facts = facts
	queues, err := queuesOf(site, site.BatchOptions)
	if err != nil { // glideins may name another
		return nil
	}
	for _, q := range queues {
		if q.Closed == "" {
			return nil
		}
		err = corral.ErrorAt(corral.Unsatisfiable, "queue", "queue %s of %s at %s starts no job of yours: %s; another --qos, --account or --queue may have rights there",
			q.Name, site.Batch, site.Contact, q.Closed)
	}
	return err
}

// factsWith are those of a site with options that its present facts are not about, nil if they are: what the user may
// have depends on account and QOS. What was seen from a node stays.
func (s *Server) factsWith(ctx context.Context, site corral.Site, in api.SetSite) (*corral.SiteFacts, error) {
	before := site
	set(&site, in)
	if reflect.DeepEqual(before.BatchOptions, site.BatchOptions) {
		return nil, nil
	}
	facts, err := s.facts(ctx, site)
	if facts != nil && before.Facts != nil {
		facts.Outbound, facts.Shared, facts.Node = before.Facts.Outbound, before.Facts.Shared, before.Facts.Node
	}
	if err == nil {
		err = open(site, facts)
	}
	return facts, err
}

// fits gives the glidein the memory that it did not ask for, and reports why its site cannot give what it asks for,
// as far as that is known: a batch system may take a job that it will never start.
func (s *Server) fits(site corral.Site, g *corral.Glidein) error {
	if site.Batch == forkBatch {
		return s.fitsMachine(site, g)
	}
	if f := site.Facts; f != nil && f.Shared != nil && !*f.Shared { // each attempt would fail with this
		return corral.ErrorAt(corral.Unsatisfiable, "site", "worker nodes of %s do not see its root %s (%s)", site.Name, site.Root, asOf(site))
	}
	queues, err := queuesOf(site, g.BatchOptions)
	if err != nil || len(queues) == 0 {
		return err
	}
	if g.MemoryMiB == 0 {
		g.MemoryMiB = share(queues, g.CPUs)
	}
	for _, q := range queues { // the batch system takes any that will do
		if err = overLimit(site, q, *g); err == nil {
			return nil
		}
	}
	return err
}

// fitsMachine is fits for a machine with no batch system, which all hosts of a glidein are.
func (s *Server) fitsMachine(site corral.Site, g *corral.Glidein) error {
	var k checker
	k.optionsOf(site.Batch, g.BatchOptions)
	k.unsatisfiable(g.GPUs != 0, "gpus", "the batch system %s has none", site.Batch)
	machine, what := s.machineOf(site)
	if machine.CPUs == 0 || k.err != nil {
		return k.err
	}
	k.unsatisfiable(g.CPUs > machine.CPUs, "cpus", "%d of each host; %s has %d", g.CPUs, what, machine.CPUs)
	k.unsatisfiable(g.Hosts*g.MemoryMiB > machine.MemoryMiB && machine.MemoryMiB > 0, "memory_mib",
		"%d hosts with %d MiB each; %s, which all of them are, has %d MiB", g.Hosts, g.MemoryMiB, what, machine.MemoryMiB)
	if g.MemoryMiB == 0 { // a share by cpus; of more cpus than there are, by those
		g.MemoryMiB = max(1, machine.MemoryMiB*g.CPUs/max(machine.CPUs, g.WantCPUs()))
	}
	return k.err
}

// machineOf is the machine of a site with no batch system, with what to call it; its zero value is not known.
func (s *Server) machineOf(site corral.Site) (Shape, string) {
	if site.Contact == localContact {
		return s.cfg.Machine, "this machine"
	}
	if site.Facts == nil || len(site.Facts.Queues) == 0 {
		return Shape{}, ""
	}
	q := site.Facts.Queues[0]
	return Shape{CPUs: q.CPUs, MemoryMiB: q.MemoryMiB}, "the machine of site " + site.Name
}

// queuesOf returns the queues that a job with these options may start in, none if the site's are not known. One that
// the site does not have is an Unsatisfiable error.
func queuesOf(site corral.Site, o corral.BatchOptions) ([]corral.SiteQueue, error) {
	if site.Facts == nil || len(site.Facts.Queues) == 0 {
		return nil, nil
	}
	known := site.Facts.Queues
	asked := orDefault(o.Queue, site.Queue)
	if asked == "" {
		i := slices.IndexFunc(known, func(q corral.SiteQueue) bool { return q.Default })
		if i < 0 {
			return nil, corral.ErrorAt(corral.Unsatisfiable, "queue", "site %s has no default queue: name one of %s", site.Name, names(known))
		}
		return known[i : i+1], nil
	}
	var queues []corral.SiteQueue
	for name := range strings.SplitSeq(asked, ",") {
		i := slices.IndexFunc(known, func(q corral.SiteQueue) bool { return q.Name == name })
		if i < 0 {
			return nil, corral.ErrorAt(corral.Unsatisfiable, "queue", "site %s has no queue %.80q; it has %s (%s)", site.Name, name, names(known), asOf(site))
		}
		queues = append(queues, known[i])
	}
	return queues, nil
}

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

// asOf says how old a site's facts are, and how to have others.
func asOf(site corral.Site) string {
	return fmt.Sprintf("as of %s; corral site probe %s looks again", site.Facts.At.Format(time.RFC3339), site.Name)
}

// share is the memory of so many cpus in whichever of the queues has the least; 0 if one does not say.
func share(queues []corral.SiteQueue, cpus int) int {
	least := queues[0].CPUMemoryMiB
	for _, q := range queues {
		least = min(least, q.CPUMemoryMiB)
	}
	return least * cpus
}

// overLimit reports the first limit of a queue that the glidein is over. The walltime and the number of nodes depend
// on account and QOS, too: with others than the site's own, only the batch system knows.
func overLimit(site corral.Site, q corral.SiteQueue, g corral.Glidein) error {
	var k checker
	queue := q.Name
	if site.QOS != "" { // whose limits are among the queue's
		queue += " with QOS " + site.QOS
	}
	over := func(place, asked, limit string, most any) {
		k.unsatisfiable(true, place, "%s is over %s of queue %s at site %s, which is %v (%s)", asked, limit, queue, site.Name, most, asOf(site))
	}
	own := orDefault(g.Account, site.Account) != site.Account || orDefault(g.QOS, site.QOS) != site.QOS
	k.unsatisfiable(!own && q.Closed != "", "queue", "queue %s at site %s starts no job of yours: %s (%s)", q.Name, site.Name, q.Closed, asOf(site))
	if !own && q.MaxWalltime > 0 && g.Walltime > q.MaxWalltime {
		over("walltime_s", g.Walltime.String(), "max_walltime_s", q.MaxWalltime)
	}
	if !own && q.MaxNodes > 0 && g.Hosts > q.MaxNodes {
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
