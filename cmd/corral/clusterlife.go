package main

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// poolPackage is what a package is called that a pool can be made of.
const poolPackage = "htcondor-pool"

// maxTokenFile is how long a file may be that is read as a token.
const maxTokenFile = 64 << 10

func htcondorFlag(otherwise string) cli.Flag {
	return &cli.StringFlag{Name: "htcondor", Usage: "make the pool of `WHAT`: a package of what=" + poolPackage + ", or a folder (default: " + otherwise + ")"}
}

func createClusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make a personal cluster", ArgsUsage: "NAME",
		Description: explained("One of kind condor is an HTCondor pool of your own, or, with --collector and --token, one that somebody else runs and that workers are to join. It returns when the pool takes jobs; if that fails the exit code is 1, and the cluster stays, FAILED.",
			"corral cluster create small --kind embedded\ncorral cluster create mine --kind condor\ncorral cluster create theirs --kind condor --collector cm:9618 --token FILE"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: string(corral.Embedded), Usage: "`KIND` of engine: embedded or condor"},
			htcondorFlag("the newest there is"),
			&cli.StringFlag{Name: "address", Usage: "the pool listens on `IP[:PORT]` (default: corrald chooses)"},
			&cli.StringFlag{Name: "collector", Usage: "attach to the pool whose collector is at `HOST:PORT`"},
			&cli.StringFlag{Name: "token", Usage: "with an IDTOKEN for that pool, in `FILE`"},
			&cli.StringFlag{Name: "schedd", Usage: "and with its schedd `NAME` (default: the only one there is; of several, one has to be named)"},
			noWaitFlag(), timeoutFlag(), keyFlag(),
		},
		Action: func(c *cli.Context) error { return createCluster(c, p) },
	}
}

func createCluster(c *cli.Context, p *printer) error {
	n, err := newCluster(c)
	if err != nil {
		return err
	}
	wait, d, err := waits(c)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	k, err := cl.CreateCluster(c.Context, n, c.String("key"))
	if err != nil {
		return err
	}
	if !wait {
		return show(p, k, clusterTable)
	}
	if k, err = awaitCluster(c, cl, k, corral.ClusterReady, d); err != nil {
		p.say("cluster %s stays: see `corral cluster history %s`, or `corral cluster remove %s`", k.Name, k.Name, k.Name)
		return err
	}
	return show(p, k, clusterTable)
}

// newCluster reads the request from the flags. What corrald checks is not checked here.
func newCluster(c *cli.Context) (n api.NewCluster, err error) {
	if n.Name, err = argument(c, "cluster name"); err != nil {
		return n, err
	}
	n.Kind = corral.ClusterKind(c.String("kind"))
	n.Address, n.Collector, n.Schedd = c.String("address"), c.String("collector"), c.String("schedd")
	if n.HTCondor, err = release(c); err != nil {
		return n, err
	}
	if file := c.String("token"); file != "" {
		n.Token, err = readToken(c.Context, file)
	} else if n.Collector != "" {
		err = corral.ErrorAt(corral.Invalid, "--token", "is missing: which file has an IDTOKEN for the pool at %s?", n.Collector)
	}
	return n, err
}

// release reads --htcondor. A folder is corrald's to look at, for which it must be absolute.
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

// readToken reads the text of a token. No message has any of it.
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

// startClusterCommand is start, or restart, which are the same to corrald.
func startClusterCommand(p *printer, name, usage string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "CLUSTER",
		Description: explained("It returns when the pool takes jobs. Jobs that run when it ends are put back into the queue.", "corral cluster "+name+" mine"),
		Flags:       []cli.Flag{waitFlag("it is READY: the default"), noWaitFlag(), timeoutFlag()},
		Action: func(c *cli.Context) error {
			return moveCluster(c, p, corral.ClusterReady, func(cl *api.Client, ref string) (corral.Cluster, error) {
				return cl.StartCluster(c.Context, ref, api.StartCluster{})
			})
		},
	}
}

func upgradeClusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "start a condor cluster again, made of another HTCondor", ArgsUsage: "CLUSTER",
		Description: explained("Its queue is kept. Workers that are there go on; a worker must not be newer than its pool, so upgrade the pool first.",
			"corral cluster upgrade mine\ncorral cluster upgrade mine --htcondor /opt/htcondor-24"),
		Flags: []cli.Flag{htcondorFlag("the newest there is"), noWaitFlag(), timeoutFlag()},
		Action: func(c *cli.Context) error {
			of, err := release(c)
			if err != nil {
				return err
			}
			return moveCluster(c, p, corral.ClusterReady, func(cl *api.Client, ref string) (corral.Cluster, error) {
				return cl.StartCluster(c.Context, ref, api.StartCluster{HTCondor: of, Newest: of == ""})
			})
		},
	}
}

func stopClusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "end the daemons of a condor cluster; its queue is kept", ArgsUsage: "CLUSTER",
		Description: explained("Workers find nobody until it is started again.", "corral cluster stop mine"),
		Flags:       []cli.Flag{waitFlag("it is STOPPED: the default"), noWaitFlag(), timeoutFlag()},
		Action: func(c *cli.Context) error {
			return moveCluster(c, p, corral.ClusterStopped, func(cl *api.Client, ref string) (corral.Cluster, error) {
				return cl.StopCluster(c.Context, ref)
			})
		},
	}
}

func removeClusterCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "remove a cluster that nothing uses", ArgsUsage: "CLUSTER",
		Description: explained("Of a condor cluster the daemons end, and its folder goes, with the jobs in its queue. A pool that somebody else runs is only forgotten.", "corral cluster remove mine"),
		Flags:       []cli.Flag{waitFlag("nothing of it is left: the default"), noWaitFlag(), timeoutFlag()},
		Action: func(c *cli.Context) error {
			return moveCluster(c, p, corral.ClusterDeleted, func(cl *api.Client, ref string) (corral.Cluster, error) {
				return cl.RemoveCluster(c.Context, ref)
			})
		},
	}
}

// moveCluster asks something of the cluster that the command line names, and waits until it is done.
func moveCluster(c *cli.Context, p *printer, until corral.ClusterState, ask func(*api.Client, string) (corral.Cluster, error)) error {
	wait, d, err := waits(c)
	if err != nil {
		return err
	}
	return onCluster(c, func(c *cli.Context, cl *api.Client, ref string) error {
		k, err := ask(cl, ref)
		if err == nil && wait {
			k, err = awaitCluster(c, cl, k, until, d)
		}
		if err != nil {
			return err
		}
		return show(p, k, clusterTable)
	})
}

func awaitCluster(c *cli.Context, cl *api.Client, k corral.Cluster, until corral.ClusterState, d time.Duration) (corral.Cluster, error) {
	if k.State == until {
		return k, nil
	}
	id := strconv.FormatInt(int64(k.ID), 10)
	name := k.Name
	k, err := cl.WaitCluster(c.Context, id, string(until), d)
	if err != nil {
		k.Name = name // an answer that did not come has none
		return k, about{"/v1/clusters/" + id, err}
	}
	return k, nil
}
