package cli

// A request for a glidein is read from flags. The client detects only mistakes in the command line, such as a size
// without a unit; corrald checks limits and the options of the site.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

// createCommand requests workers at a site, by default one host for an hour.
func (v glideinVerbs) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create",
		Flags: slices.Concat([]cli.Flag{
			siteFlag(), clusterFlag(),
			&cli.IntFlag{Name: "hosts", Value: 1, Usage: "`N` hosts; each runs one worker"},
			&cli.IntFlag{Name: "cpus", Value: 1, Usage: "`N` cpus of each host"},
			&cli.StringFlag{Name: "memory",
				Usage: "memory of each host, a `SIZE` such as 4GiB (default: its share of the machine)"},
			&cli.IntFlag{Name: "gpus", Usage: "`N` GPUs of each host"},
			durationFlag("walltime", time.Hour, "for `D` at most"),
			durationFlag("idle", 0, "leave after `D` without work (default: never)"),
			durationFlag("min-stay", 0,
				"with --idle: do not leave for lack of work before `D` after the start"),
			&cli.StringFlag{Name: "resubmit", Value: "never",
				Usage: "when the walltime is over, `WHEN`: never, N (times), until=TIME or forever"},
			&cli.IntFlag{Name: "retries", Value: 3,
				Usage: "`N` attempts in a row may be lost, or fail temporarily"},
			durationFlag("overlap", 0, "start the next attempt `D` before the last one leaves"),
			notBeforeFlag("nothing"),
			&cli.StringFlag{Name: "start-by",
				Usage: "start it by `TIME`, as in 4h or Friday 17:00, and run for the walltime after that"},
		}, batchFlags(), []cli.Flag{
			secondsFlag("queue-timeout", time.Duration(corral.DefaultQueueTimeout),
				"cancel an attempt that waits longer than `D` in the site's queue"),
			&cli.StringFlag{Name: "broker", Value: string(corral.BrokerAuto), Usage: "connect workers and cluster by " +
				"`WHAT`: auto, none, ccb (condor clusters only) or relay (ssh sites only)"},
			&cli.StringSliceFlag{Name: "ccb",
				Usage: "broker at `HOST:PORT`; may be repeated (default: the pool's collector)"},
			&cli.StringFlag{Name: "slots", Usage: "a worker of a condor cluster offers its cpus as `HOW`: " +
				"partitionable or static (default: partitionable)"},
			labelFlag(), keyFlag(),
			waitFlag("its workers are registered"), timeoutFlag(),
		}),
		Action: func(c *cli.Context) error {
			create := (*api.Client).CreateGlidein
			if c.IsSet("start-by") {
				create = v.startingBy(c)
			}
			return creating(newGlidein, create, func(c *cli.Context, cl *api.Client, g corral.Glidein) error {
				if c.Bool("wait") {
					return v.awaitWorkers(c, cl, g)
				}
				return glideinTable.show(v.printer, g)
			})(c)
		},
	}
}

// newGlidein reads the request from the flags. It leaves corrald's own checks to corrald.
func newGlidein(c *cli.Context) (api.NewGlidein, error) {
	n := api.NewGlidein{
		Site: c.String("site"), Cluster: c.String("cluster"),
		Shape: corral.Shape{Hosts: c.Int("hosts"), CPUs: c.Int("cpus"), GPUs: c.Int("gpus"),
			Walltime: corral.Seconds(c.Duration("walltime"))},
		Idle:         corral.Seconds(c.Duration("idle")),
		MinStay:      corral.Seconds(c.Duration("min-stay")),
		QueueLimit:   corral.Seconds(c.Duration("queue-timeout")),
		BatchOptions: batchOptions(c),
		Resubmission: api.Resubmission{Resubmit: c.String("resubmit"), Retries: c.Int("retries"),
			Overlap: corral.Seconds(c.Duration("overlap"))},
		PoolOptions: api.PoolOptions{Broker: corral.BrokerMode(c.String("broker")), CCB: c.StringSlice("ccb"),
			Slots: corral.SlotMode(c.String("slots"))},
	}
	if n.Site == "" {
		return n, corral.ErrorAt(corral.Invalid, "--site", "is missing: name a site of `corral site list`")
	}
	var err error
	if n.MemoryMiB, err = parseMiB("--memory", c.String("memory")); err != nil {
		return n, err
	}
	now := time.Now()
	in, at, err := notBeforeOf(c, now)
	if n.NotBefore = at; err != nil {
		return n, err
	}
	if in > 0 {
		n.NotBefore = now.Add(in).UTC().Round(time.Second)
	}
	if until, ok := strings.CutPrefix(n.Resubmit, "until="); ok {
		end, err := parseTime("--resubmit", until, time.Now())
		if err != nil {
			return n, err
		}
		n.Resubmit = "until=" + end.Format(time.RFC3339Nano)
	}
	n.Labels = labelsOf(c, "label")
	return n, nil
}

// awaitWorkers shows the glidein once its workers are registered. It prints the id in any case, because the glidein
// continues to exist if the wait fails.
func (v glideinVerbs) awaitWorkers(c *cli.Context, cl *api.Client, g corral.Glidein) error {
	if v.quiet {
		fmt.Fprintln(v.out, g.ID)
	}
	until := progress.Condition{Until: api.UntilWorkers, Timeout: c.Duration("timeout")}
	ready, err := v.follow(c.Context, cl, g.ID, until)
	if err != nil {
		v.say("glidein %d stays: see `corral glidein history %d`, or `corral glidein remove %d`", g.ID, g.ID, g.ID)
		return objectError{fmt.Sprintf("/v1/glideins/%d", g.ID), err}
	}
	if losses := ready.Losses(); losses != "" {
		v.say("glidein %d: %s", g.ID, losses)
	}
	if v.quiet {
		return nil
	}
	return glideinTable.show(v.printer, ready)
}
