package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func probeSiteCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "probe", Usage: "measure, at a site, how its workers would be reached", ArgsUsage: "SITE",
		Description: explained("A small job at the site dials the pool of a condor cluster, and is dialled by corrald, as its pilots would be: what is printed is what --broker auto would choose there, and why. The exit code is 3 if no worker could be reached. The job is gone when it returns.",
			"corral site probe campus --network --cluster mine"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "network", Usage: "measure the network between the site and the cluster: what there is to probe so far"},
			clusterFlag(),
		},
		Action: func(c *cli.Context) error { return probeSite(c, p) },
	}
}

func probeSite(c *cli.Context, p *printer) error {
	ref, err := argument(c, "site")
	if err != nil {
		return err
	}
	if !c.Bool("network") {
		return corral.ErrorAt(corral.Invalid, "--network", "is missing: it is what there is to probe so far")
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	probe, err := cl.ProbeSite(c.Context, ref, api.NewProbe{Cluster: c.String("cluster")})
	if err != nil {
		return err
	}
	if err := show(p, probe, probeTable); err != nil || probe.Broker != "" {
		return err
	}
	return shown{corral.Errorf(corral.Unsatisfiable, "site %s: %s", probe.Site, probe)}
}

var probeTable = listing[corral.NetworkProbe]{
	id: func(n corral.NetworkProbe) string { return string(n.Broker) },
	columns: []column[corral.NetworkProbe]{
		{"site", func(n corral.NetworkProbe) any { return n.Site }},
		{"cluster", func(n corral.NetworkProbe) any { return n.Cluster }},
		{"broker", func(n corral.NetworkProbe) any {
			if n.Broker == "" {
				return "there is no way"
			}
			return n.Broker
		}},
		{"reason", func(n corral.NetworkProbe) any { return n.Reason }},
		{"measured", func(n corral.NetworkProbe) any { return strings.Join(n.Measured, "; ") }},
	},
}
