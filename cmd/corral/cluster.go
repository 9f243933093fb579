package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func clusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "cluster", Category: resources, Usage: "personal clusters, which workers join",
		Description: explained("A personal cluster is the pool that workers join and that runs the tasks.", "corral cluster workers default"),
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make a personal cluster", ArgsUsage: "NAME",
				Description: explained("", "corral cluster create mine --kind embedded"),
				Flags:       []cli.Flag{&cli.StringFlag{Name: "kind", Value: string(corral.Embedded), Usage: "`KIND` of engine: embedded"}, keyFlag()},
				Action:      func(c *cli.Context) error { return createCluster(c, p) },
			},
			{
				Name: "list", Usage: "list clusters", Description: explained("", "corral cluster list"),
				Flags:  []cli.Flag{allFlag()},
				Action: func(c *cli.Context) error { return listClusters(c, p) },
			},
			clusterVerb("show", "show a cluster", func(c *cli.Context, cl *api.Client, ref string) error {
				k, err := cl.Cluster(c.Context, ref)
				if err != nil {
					return err
				}
				return show(p, k, clusterTable)
			}),
			clusterVerb("workers", "list the workers that are registered now", func(c *cli.Context, cl *api.Client, ref string) error {
				workers, err := cl.Workers(c.Context, ref)
				if err != nil {
					return err
				}
				return list(p, workers, workerTable)
			}),
			clusterVerb("env", "print what makes a cluster a shell's default", func(c *cli.Context, cl *api.Client, ref string) error {
				k, err := cl.Cluster(c.Context, ref)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "export CORRAL_CLUSTER=%s\n", k.Name)
				return err
			}),
			clusterVerb("remove", "remove a cluster that nothing uses", func(c *cli.Context, cl *api.Client, ref string) error {
				k, err := cl.RemoveCluster(c.Context, ref)
				if err != nil {
					return err
				}
				return show(p, k, clusterTable)
			}),
		},
	}
}

func clusterVerb(name, usage string, do func(*cli.Context, *api.Client, string) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "CLUSTER",
		Description: explained("", "corral cluster "+name+" default"),
		Action: func(c *cli.Context) error {
			ref, err := argument(c, "cluster")
			if err != nil {
				return err
			}
			cl, err := connect(c)
			if err != nil {
				return err
			}
			return do(c, cl, ref)
		},
	}
}

func createCluster(c *cli.Context, p *printer) error {
	name, err := argument(c, "cluster name")
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	k, err := cl.CreateCluster(c.Context, api.NewCluster{Name: name, Kind: corral.ClusterKind(c.String("kind"))}, c.String("key"))
	if err != nil {
		return err
	}
	return show(p, k, clusterTable)
}

func listClusters(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	clusters, err := cl.Clusters(c.Context, api.Filter{All: c.Bool("all")})
	if err != nil {
		return err
	}
	return list(p, clusters, clusterTable)
}

var clusterTable = listing[corral.Cluster]{
	id:   func(k corral.Cluster) string { return k.Name },
	none: "no clusters; make one with `corral cluster create NAME`",
	columns: []column[corral.Cluster]{
		{"id", func(k corral.Cluster) any { return k.ID }},
		{"name", func(k corral.Cluster) any { return k.Name }},
		{"kind", func(k corral.Cluster) any { return k.Kind }},
		{"state", func(k corral.Cluster) any { return k.State }},
		{"created", func(k corral.Cluster) any { return when(k.CreatedAt) }},
		{"reason", func(k corral.Cluster) any { return k.Reason }},
	},
}

var workerTable = listing[corral.Worker]{
	id:   func(w corral.Worker) string { return w.ID },
	none: "no workers; ask for some with `corral glidein create --site local --wait`",
	columns: []column[corral.Worker]{
		{"worker", func(w corral.Worker) any { return w.ID }},
		{"glidein", func(w corral.Worker) any { return w.Glidein }},
		{"host", func(w corral.Worker) any { return w.Host }},
		{"free cpus", func(w corral.Worker) any { return fmt.Sprintf("%d of %d", w.CPUsFree, w.CPUs) }},
		{"memory", func(w corral.Worker) any { return size(w.MemoryMiB) }},
		{"state", func(w corral.Worker) any { return workerState(w) }},
		{"ends", func(w corral.Worker) any { return when(w.EndsAt) }},
	},
}

func workerState(w corral.Worker) string {
	switch {
	case !w.Connected:
		return "silent"
	case w.Draining:
		return "draining"
	case w.RunningTasks > 0:
		return "busy"
	}
	return "free"
}
