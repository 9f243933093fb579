package cli

// probe makes corrald examine a site: its batch system and queues, one of its nodes and, with --network, the path
// between its nodes and a pool. corrald stores the findings with the site; the command prints them in up to three
// tables.

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func (v siteVerbs) probeCommand() *cli.Command {
	return sites.verb("probe",
		v.probe,
		&cli.BoolFlag{Name: "network", Usage: "also measure the network between the site and a condor cluster"},
		clusterFlag())
}

// probe prints the findings. If no broker can connect a pool with the site's nodes, the command also fails, because no
// glidein of that cluster could work at the site.
func (v siteVerbs) probe(c *cli.Context, cl *api.Client, ref string) error {
	n := api.NewProbe{Network: c.Bool("network")}
	if n.Network {
		n.Cluster = c.String("cluster")
	}
	probe, err := cl.ProbeSite(c.Context, ref, n)
	if err != nil {
		return err
	}
	if err := v.showProbe(probe); err != nil || probe.Network == nil || probe.Network.Broker != "" {
		return err
	}
	return printedError{corral.Errorf(corral.Unsatisfiable, "site %s: %s", probe.Site, probe.Network)}
}

// showProbe prints a probe and, in tables below, the queues and the network.
func (v siteVerbs) showProbe(probe api.Probe) error {
	if err := probeTable.show(v.printer, probe); err != nil || !v.forPeople() {
		return err
	}
	if len(probe.Facts.Queues) > 0 {
		fmt.Fprintln(v.out)
		if err := queueTable.list(v.printer, probe.Facts.Queues); err != nil {
			return err
		}
	}
	if probe.Network != nil {
		fmt.Fprintln(v.out)
		return networkTable.show(v.printer, *probe.Network)
	}
	return nil
}

var probeTable = listing[api.Probe]{
	id: func(n api.Probe) string { return n.Site },
	columns: []column[api.Probe]{
		{"site", func(n api.Probe) any { return n.Site }},
		{"platform", func(n api.Probe) any { return platform(n.Platform) }},
		{"batch", func(n api.Probe) any { return n.Facts.Batch }},
		{"jobs of a user", func(n api.Probe) any { return jobLimits(n.Facts) }},
		{"free", func(n api.Probe) any { return choose(n.Facts.FreeMiB < 0, "not known", size(int(n.Facts.FreeMiB))) }},
		{"quota left", func(n api.Probe) any { return choose(n.Facts.QuotaMiB == 0, "", size(int(n.Facts.QuotaMiB))) }},
		{"account", func(n api.Probe) any {
			if a := n.Facts.Allowance; a != nil {
				return fmt.Sprintf("%s has %d of %d cpu-hours left", a.Account, a.Left()/60, a.CPUMinutes/60)
			}
			return ""
		}},
		{"maintenance", func(n api.Probe) any {
			var said []string
			for _, m := range n.Facts.Maintenance {
				said = append(said, fmt.Sprintf("%s, %d nodes, from %s to %s", m.Queue, m.Nodes, when(m.From),
					when(m.To)))
			}
			return strings.Join(said, "; ")
		}},
		{"nodes see the root", func(n api.Probe) any { return yesNoUnknown(n.Facts.Shared) }},
		{"nodes reach corrald", func(n api.Probe) any { return yesNoUnknown(n.Facts.Outbound) }},
		{"a node", func(n api.Probe) any { return n.Facts.Node }},
		{"not known", func(n api.Probe) any { return strings.Join(n.Facts.Notes, "; ") }},
	},
}

// jobLimits returns the limits of the batch system on a user's jobs.
func jobLimits(f corral.SiteFacts) string {
	var limits []string
	for _, l := range []struct {
		n    int
		what string
	}{{f.MaxJobs, "running"}, {f.MaxSubmit, "in all"}} {
		if l.n > 0 {
			limits = append(limits, fmt.Sprintf("%d %s", l.n, l.what))
		}
	}
	return strings.Join(limits, ", ")
}

// yesNoUnknown formats the answer to a question that only a job on a node can answer.
func yesNoUnknown(found *bool) string {
	switch {
	case found == nil:
		return "not measured"
	case *found:
		return "yes"
	}
	return "no"
}

var queueTable = listing[corral.SiteQueue]{
	id: func(q corral.SiteQueue) string { return q.Name },
	columns: []column[corral.SiteQueue]{
		{"queue", func(q corral.SiteQueue) any { return choose(q.Default, q.Name+" (default)", q.Name) }},
		{"walltime", func(q corral.SiteQueue) any {
			return choose(q.MaxWalltime == 0, "no limit", "at most "+short(q.MaxWalltime.String()))
		}},
		{"nodes", func(q corral.SiteQueue) any { return unless(q.Nodes) }},
		{"nodes of a job", func(q corral.SiteQueue) any { return unless(q.MaxNodes) }},
		{"cpus", func(q corral.SiteQueue) any { return unless(q.CPUs) }},
		{"memory", func(q corral.SiteQueue) any { return choose(q.MemoryMiB == 0, "", size(q.MemoryMiB)) }},
		{"gpus", func(q corral.SiteQueue) any { return unless(q.GPUs) }},
		{"closed", func(q corral.SiteQueue) any { return q.Closed }},
	},
}

var networkTable = listing[corral.NetworkProbe]{
	id: func(n corral.NetworkProbe) string { return string(n.Broker) },
	columns: []column[corral.NetworkProbe]{
		{"cluster", func(n corral.NetworkProbe) any { return n.Cluster }},
		{"broker", func(n corral.NetworkProbe) any { return choose(n.Broker == "", "there is no way", n.Broker) }},
		{"reason", func(n corral.NetworkProbe) any { return n.Reason }},
		{"measured", func(n corral.NetworkProbe) any { return strings.Join(n.Measured, "; ") }},
	},
}
