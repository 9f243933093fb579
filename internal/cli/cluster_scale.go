package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// scaleCommand starts or stops scaling a cluster; without flags it shows how the cluster is scaled.
func (v clusterVerbs) scaleCommand() *cli.Command {
	return clusters.verb("scale", func(c *cli.Context, cl *api.Client, ref string) error {
		s, err := scaleAs(c, cl, ref)
		if err != nil {
			return err
		}
		if c.Bool("off") && v.forPeople() {
			v.say("cluster %s is not scaled any more; its workers finish their tasks", s.ClusterName)
			return nil
		}
		return scaleTable.show(v.printer, s)
	},
		&cli.StringSliceFlag{Name: "site", Usage: "request workers at `SITE`; several are asked in their order"},
		&cli.IntFlag{Name: "min", Usage: "keep `A` cpus even when no job waits"},
		&cli.IntFlag{Name: "max", Usage: "never hold more than `B` cpus"},
		&cli.IntFlag{Name: "cpus", Value: 1, Usage: "request workers of `C` cpus"},
		durationFlag("walltime", time.Hour, "request workers that stay `D` at most"),
		durationFlag("idle", time.Minute,
			"above the minimum, a worker leaves after `D` without work"),
		&cli.BoolFlag{Name: "off", Usage: "stop scaling: workers finish their tasks"},
	)
}

func scaleAs(c *cli.Context, cl *api.Client, ref string) (corral.Scale, error) {
	terms := []string{"site", "min", "max", "cpus", "walltime", "idle"}
	given := false
	for _, flag := range terms {
		given = given || c.IsSet(flag)
	}
	switch {
	case c.Bool("off") && given:
		return corral.Scale{}, corral.ErrorAt(corral.Invalid, "--off", "cannot be used with other flags")
	case c.Bool("off"):
		return cl.UnscaleCluster(c.Context, ref)
	case !given:
		return cl.ClusterScale(c.Context, ref)
	case len(c.StringSlice("site")) == 0:
		return corral.Scale{}, corral.ErrorAt(corral.Invalid, "--site", "name the site at which to request workers")
	case c.Int("max") == 0:
		return corral.Scale{}, corral.ErrorAt(corral.Invalid, "--max", "name the maximum number of cpus: 1 or more")
	}
	return cl.ScaleCluster(c.Context, ref, api.NewScale{
		Sites: c.StringSlice("site"), Min: c.Int("min"), Max: c.Int("max"), CPUs: c.Int("cpus"),
		Walltime: corral.Seconds(c.Duration("walltime")), Idle: corral.Seconds(c.Duration("idle")),
	})
}

var scaleTable = listing[corral.Scale]{
	id: func(s corral.Scale) string { return s.ClusterName },
	columns: []column[corral.Scale]{
		{"cluster", func(s corral.Scale) any { return s.ClusterName }},
		{"sites", func(s corral.Scale) any { return strings.Join(s.Sites, ", ") }},
		{"cpus", func(s corral.Scale) any { return fmt.Sprintf("%d to %d", s.Min, s.Max) }},
		{"worker", func(s corral.Scale) any {
			return fmt.Sprintf("%d cpu(s) for %s, %s idle", s.CPUs, s.Walltime, s.Idle)
		}},
		{"since", func(s corral.Scale) any { return when(s.CreatedAt) }},
		{"report", func(s corral.Scale) any { return s.Report }},
	},
}
