package gridsite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/corral-pilot/corral"
)

// ForkQueue is the name of the one queue that Fork has in its facts.
const ForkQueue = "fork"

// Survey says of the machine what a batch system would of its queue.
func (f *Fork) Survey(ctx context.Context, _ corral.BatchOptions) (corral.SiteFacts, error) {
	said, facts, err := survey(ctx, f.conn, f.root, "", "fork")
	if err != nil {
		return facts, err
	}
	facts.Batch = "fork"
	q := corral.SiteQueue{Name: ForkQueue, Default: true, Nodes: 1}
	for _, m := range []struct {
		section, what string
		to            *int
	}{{"cpus", "the number of cpus", &q.CPUs}, {"memory", "the memory", &q.MemoryMiB}} {
		out, err := said.of(m.section)
		if err == nil {
			if *m.to, err = strconv.Atoi(out); err != nil || *m.to < 0 {
				*m.to, err = 0, fmt.Errorf("the machine said %q", oneLine(out))
			}
		}
		if err != nil {
			note(&facts, m.what, err)
		}
	}
	if q.CPUs > 0 {
		q.CPUMemoryMiB = q.MemoryMiB / q.CPUs
	}
	facts.Queues = []corral.SiteQueue{q}
	return facts, nil
}

var _ Surveyor = (*Fork)(nil)
