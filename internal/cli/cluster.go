package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

var clusters = noun[string]{name: "cluster", key: nameKey}

// clusterVerbs are the verbs on clusters.
type clusterVerbs struct{ *printer }

// command returns the noun with its verbs. The verbs that change a cluster are in cluster_lifecycle.go.
func (v clusterVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "cluster", Category: resources,
		Subcommands: []*cli.Command{
			v.createCommand(),
			clusterTable.listVerb(v.printer, (*api.Client).Clusters),
			clusters.verb("show", printing((*api.Client).Cluster, clusterTable.one(v.printer))),
			clusters.verb("workers", printing((*api.Client).Workers, workerTable.many(v.printer))),
			clusters.verb("history", printing((*api.Client).ClusterHistory, entryTable.many(v.printer))),
			v.scaleCommand(),
			v.envCommand(),
			v.startCommand("start"),
			v.startCommand("restart"),
			v.upgradeCommand(),
			v.moveCommand("stop", corral.ClusterStopped, (*api.Client).StopCluster, "it is STOPPED"),
			v.moveCommand("remove", corral.ClusterDeleted, (*api.Client).RemoveCluster, "nothing of it is left"),
		},
	}
}

// envCommand prints lines that a shell can evaluate. eval returns the status of the last line, so after an error the
// last line is false.
func (v clusterVerbs) envCommand() *cli.Command {
	env := clusters.verb("env", printing((*api.Client).ClusterEnv, func(env api.Env) error {
		if v.format != formTable {
			return v.encode(env)
		}
		_, err := fmt.Fprint(v.out, shellLines(env))
		return err
	}))
	print := env.Action
	env.Action = func(c *cli.Context) error {
		err := print(c)
		if err != nil && v.format == formTable {
			_, errPrint := fmt.Fprintln(v.out, "false")
			err = errors.Join(err, errPrint)
		}
		return err
	}
	return env
}

// shellLines returns the lines that set an environment in a POSIX shell.
func shellLines(env api.Env) string {
	var b strings.Builder
	for _, v := range env.Variables {
		fmt.Fprintf(&b, "export %s=%s\n", v.Name, shell.Legible(v.Value))
	}
	if len(env.Path) > 0 {
		fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", shell.Legible(strings.Join(env.Path, ":")))
	}
	return b.String()
}

// clusterTable shows the columns for clusters of kind condor only if such clusters exist, because empty columns are
// omitted.
var clusterTable = listing[corral.Cluster]{
	owner: func(k corral.Cluster) string { return k.Owner },
	id:    func(k corral.Cluster) string { return k.Name },
	none:  "no clusters; create one with `corral cluster create NAME`",
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
		{"runs", func(k corral.Cluster) any { return poolOwner(k) }},
		{"schedd", func(k corral.Cluster) any { return k.Schedd }},
		{"htcondor", func(k corral.Cluster) any { return k.HTCondor }},
	},
}

// poolOwner describes who runs the pool of a cluster.
func poolOwner(k corral.Cluster) string {
	switch {
	case k.Kind != corral.Condor:
		return "in corrald"
	case k.Attached:
		return "elsewhere; Corral is attached to it"
	}
	return "here, as daemons of its own"
}

// workerTable shows the registered workers with their free resources.
var workerTable = listing[corral.Worker]{
	id:   func(w corral.Worker) string { return w.ID },
	none: "no workers; request some with `corral glidein create --site local --wait`",
	columns: []column[corral.Worker]{
		{"worker", func(w corral.Worker) any { return w.ID }},
		{"glidein", func(w corral.Worker) any { return w.Glidein }},
		{"host", func(w corral.Worker) any { return w.Host }},
		{"free cpus", func(w corral.Worker) any { return fmt.Sprintf("%d of %d", w.CPUsFree, w.CPUs) }},
		{"memory", func(w corral.Worker) any { return size(w.MemoryMiB) }},
		{"free gpus", func(w corral.Worker) any {
			return choose(w.GPUs == 0, "", fmt.Sprintf("%d of %d", w.GPUsFree, w.GPUs))
		}},
		{"disk", func(w corral.Worker) any { return choose(w.DiskMiB == 0, "", size(w.DiskMiB)) }},
		{"state", func(w corral.Worker) any { return workerState(w) }},
		{"ends", func(w corral.Worker) any { return when(w.EndsAt) }},
	},
}

// workerState returns the first of these words that applies, because a silent worker, for example, may still have
// tasks.
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
