package siteaccess

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/sites/admission"
)

// lookTime is the time limit for a query of a queue.
const lookTime = time.Minute

// Queues queries the queues of sites. A query takes a command or two at the site, and its result is a snapshot:
// queues are not tracked continuously.
type Queues struct{ Reach *Reach }

// Backlog asks a site's batch system which jobs hold the processors of a queue and which wait for them; an empty name
// means the site's own queue. If the batch system cannot show that, the error is Unsatisfiable; if it does not
// answer, the error is Unavailable.
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
			"%s has batch system %s, for which corrald cannot list other jobs in the queue", site.Name, site.Batch)
	}
	return observer.Backlog(limited, cmp.Or(queue, site.Queue))
}

// Forecast asks a site's batch system how long pilots of these shapes would wait in a queue if they were submitted now.
// It returns the shapes whose waits are known, in the same order, with their waits and the source. The error is
// Unsatisfiable if the batch system cannot predict any wait, and a *gridsite.Refused if it refuses all shapes.
func (r Queues) Forecast(ctx context.Context, site corral.Site, queue string, shapes []corral.Shape) (
	known []corral.Shape, waits []corral.Seconds, source string, err error,
) {
	limited, cancel := context.WithTimeoutCause(ctx, lookTime,
		corral.Errorf(corral.Unavailable, "site %s has given no answer for %s", site.Name, lookTime))
	defer cancel()
	access, err := r.Reach.Open(limited, site)
	if err != nil {
		return nil, nil, "", err
	}
	defer access.Head.Close()
	f, ok := access.Pilots.(gridsite.Forecaster)
	if !ok {
		return nil, nil, "", corral.ErrorAt(corral.Unsatisfiable, "site",
			"%s has batch system %s, which does not predict when a job would start", site.Name, site.Batch)
	}
	known, waits, err = foretold(shapes, func(s corral.Shape) (time.Duration, error) {
		return f.Forecast(limited, gridsite.JobSpec{Tag: admission.NewTag(probe), Argv: []string{"/bin/true"},
			Hosts: s.Hosts, CPUs: s.CPUs, MemoryMiB: s.MemoryMiB, GPUs: s.GPUs, Walltime: time.Duration(s.Walltime),
			BatchOptions: Options(site, corral.BatchOptions{Queue: queue})})
	})
	return known, waits, f.ForecastBy(), err
}

// foretold returns the shapes whose waits are known, and the waits. A shape that the site refuses does not prevent
// questions about the others, unlike any other error. The error is the last one if no wait is known, otherwise nil.
func foretold(shapes []corral.Shape, ask func(corral.Shape) (time.Duration, error)) (
	known []corral.Shape, waits []corral.Seconds, last error,
) {
	for _, s := range shapes {
		wait, err := ask(s)
		if err == nil {
			known, waits = append(known, s), append(waits, corral.Seconds(wait))
			continue
		}
		if last = err; !errors.As(err, new(*gridsite.Refused)) && corral.KindOf(err) != corral.Unsatisfiable {
			break
		}
	}
	if len(known) > 0 {
		last = nil
	}
	return known, waits, last
}
