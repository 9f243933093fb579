package admission

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
)

// The resources that a worker reports determine how many tasks it gets. An attempt has one worker on each host, named
// after the attempt's tag and the host's number, and each has at most the resources that the glidein requested:
// together they never exceed hosts × CPUs, even if a dishonest client knows the attempt's secrets. A worker job runs
// on one of these workers and may have a part of its resources.

// fits checks that a worker, or its courier, is one that the attempt can have.
func (v visitor) fits(cred port.Credentials) error {
	if cred.Role == wire.RolePilot {
		return nil
	}
	at, g := place(v.job.Tag), v.glidein
	if !isHost(cred.Worker, v.job.Tag, g.Hosts) {
		return corral.ErrorAt(corral.Forbidden, at, "its workers are %s/0 to %s/%d, and %.80q is not one of them",
			v.job.Tag, v.job.Tag, g.Hosts-1, cred.Worker)
	}
	return within(at, g, cred.Shape)
}

// jobFits checks that the worker of a worker job can run on its holder, a worker of the attempt.
func (v visitor) jobFits(cred port.Credentials) error {
	at, g := "worker job "+cred.Tag, v.glidein
	glidein, number, _ := strings.Cut(cred.Worker, jobfiles.StreamMark)
	if n, err := strconv.ParseInt(number, 10, 64); err != nil || n < 0 || glidein != cred.Holder ||
		!isHost(cred.Holder, v.job.Tag, g.Hosts) {
		return corral.ErrorAt(corral.Forbidden, at, "%.80q is not a worker job on a worker of %s",
			cred.Worker, v.job.Tag)
	}
	return within(at, g, cred.Shape)
}

// within checks that a worker has at most the resources of one of the glidein's hosts. Disk space is not checked,
// because it belongs to the node.
func within(at string, g corral.Glidein, r corral.Resources) error {
	switch {
	case r.CPUs > g.CPUs:
		return corral.ErrorAt(corral.Forbidden, at, "has %d CPUs on a host; a worker with %d does not belong to it",
			g.CPUs, r.CPUs)
	case r.MemoryMiB > g.MemoryMiB:
		return corral.ErrorAt(corral.Forbidden, at, "has %d MiB on a host; a worker with %d does not belong to it",
			g.MemoryMiB, r.MemoryMiB)
	case r.GPUs > g.GPUs:
		return corral.ErrorAt(corral.Forbidden, at, "has %d GPUs on a host; a worker with %d does not belong to it",
			g.GPUs, r.GPUs)
	}
	return nil
}

// isHost reports whether id is the id of a worker of the attempt with this tag: TAG/0 to TAG/(hosts-1), with the number
// in canonical form.
func isHost(id, tag string, hosts int) bool {
	number, ok := strings.CutPrefix(id, tag+"/")
	n, err := strconv.Atoi(number)
	return ok && err == nil && n >= 0 && n < hosts && number == strconv.Itoa(n)
}

// misfit is the history event for a worker that was refused because of the resources it reported.
const misfit = "worker refused"

// misfits tracks the attempts whose histories have that entry: it is written once for each, even across restarts,
// because a worker that keeps trying would otherwise fill the history.
type misfits struct {
	mu    sync.Mutex      // guards known
	known map[string]bool // :: tag → the history has the entry
}

// note records in an attempt's history that a worker was refused because of its resources.
func (m *misfits) note(ctx context.Context, c *Clusters, j corral.Job, why error) {
	m.mu.Lock()
	known := m.known[j.Tag]
	m.known[j.Tag] = true
	m.mu.Unlock()
	if known {
		return
	}
	err := write(ctx, c.db, j.ID, func(tx *store.Tx) error {
		said, err := tx.History(corral.ObjectJob, int64(j.ID), store.Page{})
		for _, e := range said {
			if e.Event == misfit {
				return nil
			}
		}
		if err != nil {
			return err
		}
		return tx.Log(corral.ObjectJob, int64(j.ID), misfit, jobfiles.OneLine(why.Error())+"; others are not listed")
	})
	if err != nil {
		m.forget(j.Tag) // the next refusal is recorded
		c.lg.Warn("noting that a worker was refused", "tag", j.Tag, "error", err)
	}
}

// forget drops an attempt that has ended, or whose history does not have the entry.
func (m *misfits) forget(tag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, tag)
}
