package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func clusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "cluster", Category: resources, Usage: "personal clusters, which workers join",
		Description: explained("A personal cluster is the pool that workers join and that runs the tasks: corrald's own, or an HTCondor pool.",
			"corral cluster create mine --kind condor\ncorral cluster workers mine"),
		Subcommands: []*cli.Command{
			createClusterCommand(p),
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
			clusterVerb("history", "what happened to a cluster, and when", func(c *cli.Context, cl *api.Client, ref string) error {
				entries, err := cl.ClusterHistory(c.Context, ref)
				if err != nil {
					return err
				}
				return list(p, entries, entryTable)
			}),
			envClusterCommand(p),
			startClusterCommand(p, "start", "start a condor cluster that is stopped or failed"),
			startClusterCommand(p, "restart", "start a condor cluster again; its queue is kept"),
			upgradeClusterCommand(p),
			stopClusterCommand(p),
			removeClusterCommand(p),
		},
	}
}

// clusterVerb is a command that takes one cluster and nothing else.
func clusterVerb(name, usage string, do func(*cli.Context, *api.Client, string) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "CLUSTER",
		Description: explained("", "corral cluster "+name+" default"),
		Action:      func(c *cli.Context) error { return onCluster(c, do) },
	}
}

// onCluster does something with the cluster that the command line names.
func onCluster(c *cli.Context, do func(*cli.Context, *api.Client, string) error) error {
	ref, err := argument(c, "cluster")
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	return do(c, cl, ref)
}

func envClusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "env", Usage: "print what makes a cluster a shell's own", ArgsUsage: "CLUSTER",
		Description: explained("The lines are for sh. After them corral takes the cluster unless told otherwise, and of a condor cluster condor_submit, condor_submit_dag, condor_q, condor_status and all the rest work on its pool. If the cluster cannot be used the only line is false, so that eval fails, too.",
			`eval "$(corral cluster env mine)" && condor_status`),
		Action: func(c *cli.Context) error {
			err := onCluster(c, func(c *cli.Context, cl *api.Client, ref string) error {
				env, err := cl.ClusterEnv(c.Context, ref)
				if err != nil {
					return err
				}
				if p.format != formTable {
					return p.encode(env)
				}
				_, err = fmt.Fprint(p.out, shellLines(env))
				return err
			})
			if err != nil && p.format == formTable { // a shell gives eval the status of the last line
				_, errPrint := fmt.Fprintln(p.out, "false")
				err = errors.Join(err, errPrint)
			}
			return err
		},
	}
}

// shellLines are the lines by which a POSIX shell takes over an environment.
func shellLines(env api.Env) string {
	var b strings.Builder
	for _, v := range env.Variables {
		fmt.Fprintf(&b, "export %s=%s\n", v.Name, quoted(v.Value))
	}
	if len(env.Path) > 0 {
		fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", quoted(strings.Join(env.Path, ":")))
	}
	return b.String()
}

// plainInShell are the characters besides letters and digits that mean nothing to a shell.
const plainInShell = "_-./:,+@%"

// quoted writes s as one word of a POSIX shell.
func quoted(s string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(plainInShell, r))
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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
		{"version", func(k corral.Cluster) any { return k.Version }},
		{"collector", func(k corral.Cluster) any { return k.Collector }},
		{"created", func(k corral.Cluster) any { return when(k.CreatedAt) }},
		{"reason", func(k corral.Cluster) any { return k.Reason }},
	},
	details: []column[corral.Cluster]{
		{"runs", func(k corral.Cluster) any { return whose(k) }},
		{"schedd", func(k corral.Cluster) any { return k.Schedd }},
		{"htcondor", func(k corral.Cluster) any { return k.HTCondor }},
	},
}

// whose says who runs a cluster's pool.
func whose(k corral.Cluster) string {
	switch {
	case k.Kind != corral.Condor:
		return "in corrald"
	case k.Attached:
		return "elsewhere; Corral is attached to it"
	}
	return "here, as daemons of its own"
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
