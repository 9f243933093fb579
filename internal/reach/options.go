package reach

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/gate"
)

// Options returns what the batch system of a site is told about a job with options of its own: what these do not say,
// the site's do. The job's own lines come after the site's, which they may override.
func Options(site corral.Site, own corral.BatchOptions) corral.BatchOptions {
	return corral.BatchOptions{
		Queue: cmp.Or(own.Queue, site.Queue), Account: cmp.Or(own.Account, site.Account),
		QOS:         cmp.Or(own.QOS, site.QOS),
		Constraint:  cmp.Or(own.Constraint, site.Constraint),
		SiteOptions: slices.Concat(site.SiteOptions, own.SiteOptions),
	}
}

// checkOptions reports why the batch system of a site would take no job with the site's options, if it can be asked.
func checkOptions(ctx context.Context, site corral.Site, pilots gridsite.Batch) error {
	c, ok := pilots.(gridsite.Checker)
	if !ok {
		return nil
	}
	spec := gridsite.JobSpec{
		Tag: gate.NewTag(probe), Argv: []string{"/bin/true"}, Hosts: 1, CPUs: 1, Walltime: probeWalltime,
	}
	spec.BatchOptions = Options(site, corral.BatchOptions{})
	err := c.Check(ctx, spec)
	var refused *gridsite.Refused
	var option *corral.Error
	switch {
	case errors.As(err, &refused):
		return corral.ErrorAt(corral.Unsatisfiable, "batch", "%s at %s takes no job with these options: %s; "+
			"change --queue, --account, --qos, --constraint or --site-opt", site.Batch, site.Contact, refused.Text)
	case errors.As(err, &option) && option.Kind == corral.Invalid: // the option is named, and nobody was asked
		return option
	case err != nil:
		return corral.ErrorAt(corral.KindOf(err), "batch", "asking %s at %s: %w", site.Batch, site.Contact, err)
	}
	return nil
}
