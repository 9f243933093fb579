package cli

// Orphans are jobs of ours at a site that have no record in corrald, because corrald's database was lost.

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func (v siteVerbs) orphansCommand() *cli.Command {
	return &cli.Command{
		Name: "orphans",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "adopt", Usage: "record live pilots as glideins, which continue to work"},
			&cli.BoolFlag{Name: "cancel", Usage: "end the jobs, and remove their files at the site"},
			&cli.StringFlag{Name: "cluster",
				Usage: "with --adopt: `CLUSTER` that the pilots work for (default: default)"},
		},
		Action: v.orphans,
	}
}

// orphans lists, adopts or cancels the orphans at one site, or at all sites. If a site cannot be queried, the command
// queries the other sites and then fails with the error.
func (v siteVerbs) orphans(c *cli.Context) error {
	in := api.SettleOrphans{Cluster: c.String("cluster"), Tags: c.Args().Tail()}
	switch adopt, cancel := c.Bool("adopt"), c.Bool("cancel"); {
	case adopt && cancel:
		return corral.Errorf(corral.Invalid, "want either --adopt or --cancel")
	case adopt:
		in.Do = api.AdoptOrphans
	case cancel:
		in.Do = api.CancelOrphans
	case len(in.Tags) > 0:
		return corral.Errorf(corral.Invalid, "want --adopt or --cancel for %s", in.Tags[0])
	}
	if in.Cluster != "" && in.Do != api.AdoptOrphans {
		return corral.ErrorAt(corral.Invalid, "--cluster", "requires --adopt")
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	names := []string{c.Args().First()}
	if names[0] == "" {
		all, err := cl.Sites(c.Context, api.Filter{})
		if err != nil {
			return err
		}
		names = names[:0]
		for _, s := range all {
			names = append(names, s.Name)
		}
	}
	var found []siteOrphan
	for _, name := range names {
		some, failed := siteOrphans(c, cl, name, in)
		for _, o := range some {
			found = append(found, siteOrphan{name, o})
		}
		err = cmp.Or(err, failed)
	}
	return cmp.Or(orphanTable.list(v.printer, found), err)
}

// siteOrphans lists or settles the orphans of one site.
func siteOrphans(c *cli.Context, cl *api.Client, site string, in api.SettleOrphans) ([]api.Orphan, error) {
	if in.Do == "" {
		return cl.Orphans(c.Context, site)
	}
	return cl.SettleOrphans(c.Context, site, in)
}

// A siteOrphan is an orphan together with its site.
type siteOrphan struct {
	Site string `json:"site"`
	api.Orphan
}

var orphanTable = listing[siteOrphan]{
	id:   func(o siteOrphan) string { return o.Tag },
	none: "no orphans: corrald has a record of all jobs of ours at the sites",
	columns: []column[siteOrphan]{
		{"site", func(o siteOrphan) any { return o.Site }},
		{"tag", func(o siteOrphan) any { return o.Tag }},
		{"job", func(o siteOrphan) any { return o.SiteJobID }},
		{"state", func(o siteOrphan) any { return o.State }},
		{"started", func(o siteOrphan) any { return when(o.StartedAt) }},
		{"hosts×cpus", func(o siteOrphan) any {
			if o.Shape == nil {
				return ""
			}
			return fmt.Sprintf("%d×%d", o.Hosts, o.CPUs)
		}},
		{"walltime", func(o siteOrphan) any {
			if o.Shape == nil {
				return ""
			}
			return short(time.Duration(o.Walltime).String())
		}},
		{"glidein", func(o siteOrphan) any { return unless(int(o.Glidein)) }},
		{"fate", func(o siteOrphan) any { return o.Fate }},
		{"not adoptable", func(o siteOrphan) any { return o.Kept }},
	},
}
