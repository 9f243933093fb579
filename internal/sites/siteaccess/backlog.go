package siteaccess

import (
	"cmp"
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// lookTime is for a look at a queue.
const lookTime = time.Minute

// Queues looks at the queues of sites. A look is a command or two at the site, and as old as it is: nobody follows a
// queue.
type Queues struct{ Reach *Reach }

// Backlog asks a site's batch system who holds the processors of a queue, and who waits for them; an empty name is the
// site's own queue. A site without a batch system that shows that is an error of kind Unsatisfiable, one that does not
// answer of kind Unavailable.
func (r Queues) Backlog(ctx context.Context, site corral.Site, queue string) (seen corral.Backlog, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, lookTime,
		corral.Errorf(corral.Unavailable, "site %s has given no answer for %s", site.Name, lookTime))
	defer cancel()
	access, err := r.Reach.Open(limited, site)
	if err != nil {
		return seen, err
	}
	defer access.Head.Close()
	observer, ok := access.Pilots.(gridsite.Observer)
	if !ok {
		return seen, corral.ErrorAt(corral.Unsatisfiable, "site",
			"%s has batch system %s, which is not asked who else is in its queue", site.Name, site.Batch)
	}
	return observer.Backlog(limited, cmp.Or(queue, site.Queue))
}
