package engine

import (
	"cmp"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// setOptions tells the batch system what the site's options say, where the job's own do not say otherwise. The job's
// lines come after the site's.
func setOptions(spec *gridsite.JobSpec, site corral.Site, own corral.BatchOptions) {
	spec.Queue = cmp.Or(own.Queue, site.Queue)
	spec.Account = cmp.Or(own.Account, site.Account)
	spec.QOS = cmp.Or(own.QOS, site.QOS)
	spec.Constraint = cmp.Or(own.Constraint, site.Constraint)
	spec.Lines = slices.Concat(site.SiteOptions, own.SiteOptions)
}
