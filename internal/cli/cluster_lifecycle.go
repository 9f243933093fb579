package cli

// Changes of a cluster take a while, because daemons have to start or end. The verbs wait for the changes unless
// --no-wait is given, because the next command usually needs the pool. corrald makes the changes, and continues to make
// them if the wait ends early.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// poolPackage is the kind of package from which a pool can be created.
const poolPackage = "htcondor-pool"

// maxTokenFile is the maximum length of a token file in bytes.
const maxTokenFile = 64 << 10

// htcondorFlag selects the HTCondor release of a pool that is created or upgraded.
func htcondorFlag() cli.Flag {
	return &cli.StringFlag{Name: "htcondor",
		Usage: "make the pool from `WHAT`: a package of what=" + poolPackage + ", or a folder " +
			"(default: the newest)"}
}

// createCommand creates a cluster: inside corrald, with daemons of its own, or attached to an existing pool. The flags
// after --kind are for kind condor; corrald refuses invalid combinations.
func (v clusterVerbs) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: string(corral.Embedded),
				Usage: "`KIND` of engine: embedded or condor"},
			htcondorFlag(),
			&cli.StringFlag{Name: "address", Usage: "the pool listens on `IP[:PORT]` (default: corrald chooses)"},
			&cli.StringFlag{Name: "collector", Usage: "attach to the pool whose collector is at `HOST:PORT`"},
			&cli.StringFlag{Name: "token", Usage: "with an IDTOKEN for that pool, in `FILE`"},
			&cli.StringFlag{Name: "schedd",
				Usage: "and with its schedd `NAME` (required if there are several)"},
			noWaitFlag(), timeoutFlag(), keyFlag(),
		},
		Action: creating(newCluster, (*api.Client).CreateCluster,
			v.awaitNew),
	}
}

// awaitNew shows a new cluster once it is ready, or explains what the user can do with a cluster that failed.
func (v clusterVerbs) awaitNew(c *cli.Context, cl *api.Client, k corral.Cluster) error {
	k, err := awaitCluster(c, cl, k, corral.ClusterReady)
	if err != nil {
		v.say("cluster %s stays: see `corral cluster history %s`, or `corral cluster remove %s`", k.Name, k.Name,
			k.Name)
		return err
	}
	return clusterTable.show(v.printer, k)
}

// newCluster reads the request from the flags. It leaves corrald's own checks to corrald.
func newCluster(c *cli.Context) (n api.NewCluster, err error) {
	n.Name, n.Kind = c.Args().First(), corral.ClusterKind(c.String("kind"))
	n.Address, n.Collector, n.Schedd = c.String("address"), c.String("collector"), c.String("schedd")
	if n.HTCondor, err = release(c); err != nil {
		return n, err
	}
	if file := c.String("token"); file != "" {
		n.Token, err = readToken(c.Context, file)
	} else if n.Collector != "" {
		err = corral.ErrorAt(corral.Invalid, "--token", "is missing: name a file with an IDTOKEN for the pool at %s",
			n.Collector)
	}
	return n, err
}

// release reads --htcondor. corrald reads the folder, so its path must be absolute.
func release(c *cli.Context) (string, error) {
	of := c.String("htcondor")
	if !strings.Contains(of, "/") {
		return of, nil
	}
	folder, err := filepath.Abs(of)
	if err != nil {
		return "", corral.ErrorAt(corral.Invalid, "--htcondor", "%w", err)
	}
	return folder, nil
}

// readToken reads the text of a token. Messages never contain this text.
func readToken(ctx context.Context, file string) (string, error) {
	b, err := readAll(ctx, file, nil, maxTokenFile)
	if err != nil {
		return "", corral.ErrorAt(corral.Invalid, "--token", "%w", err)
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", corral.ErrorAt(corral.Invalid, "--token", "%s is empty", file)
	}
	return text, nil
}

// startCommand returns the verb start or restart, which corrald handles in the same way.
func (v clusterVerbs) startCommand(name string) *cli.Command {
	start := func(cl *api.Client, ctx context.Context, ref string) (corral.Cluster, error) {
		return cl.StartCluster(ctx, ref, api.StartCluster{})
	}
	return v.moveCommand(name, corral.ClusterReady, start, "it is READY")
}

// upgradeCommand restarts a pool with another HTCondor release, by default the newest.
func (v clusterVerbs) upgradeCommand() *cli.Command {
	return clusters.verb("upgrade", func(c *cli.Context, cl *api.Client, ref string) error {
		of, err := release(c)
		if err != nil {
			return err
		}
		return v.move(c, cl, corral.ClusterReady, func() (corral.Cluster, error) {
			return cl.StartCluster(c.Context, ref, api.StartCluster{HTCondor: of, Newest: of == ""})
		})
	}, htcondorFlag(), noWaitFlag(), timeoutFlag())
}

// moveCommand returns a verb that requests a change of a cluster and waits until the change is complete.
func (v clusterVerbs) moveCommand(
	name string, until corral.ClusterState,
	ask func(*api.Client, context.Context, string) (corral.Cluster, error), done string,
) *cli.Command {
	return clusters.verb(name, func(c *cli.Context, cl *api.Client, ref string) error {
		return v.move(c, cl, until, func() (corral.Cluster, error) { return ask(cl, c.Context, ref) })
	}, waitFlag(done+": the default"), noWaitFlag(), timeoutFlag())
}

// move requests a change of a cluster, waits for the change, and shows the cluster.
func (v clusterVerbs) move(
	c *cli.Context, cl *api.Client, until corral.ClusterState, ask func() (corral.Cluster, error),
) error {
	k, err := ask()
	if err == nil {
		k, err = awaitCluster(c, cl, k, until)
	}
	if err != nil {
		return err
	}
	return clusterTable.show(v.printer, k)
}

// awaitCluster waits for a state of a cluster, unless --no-wait is given.
func awaitCluster(c *cli.Context, cl *api.Client, k corral.Cluster, until corral.ClusterState) (corral.Cluster, error) {
	if k.State == until || c.Bool("no-wait") {
		return k, nil
	}
	id, name := fmt.Sprint(k.ID), k.Name
	k, err := cl.WaitCluster(c.Context, id, string(until), c.Duration("timeout"))
	if err != nil {
		k.Name = name // the name is empty if there was no answer
		return k, objectError{"/v1/clusters/" + id, err}
	}
	return k, nil
}
