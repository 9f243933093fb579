package admission

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/port"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
)

// What a worker says of itself decides how many tasks it gets. An attempt has one worker on each host, named by the
// attempt's tag and the host's number, and each has at most what the glidein asked for: so together they never have
// more than hosts × cpus, even if a liar knows the attempt's secrets. A worker job runs on one of these, and may have
// a part of it.

// fits decides whether a worker, or its courier, is one that the attempt can have.
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

// jobFits decides whether the worker of a worker job is one that can run on its holder, a worker of the attempt.
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

// within decides whether a worker at a place has at most what a host of the glidein has. The disk is the node's.
func within(at string, g corral.Glidein, r corral.Resources) error {
	switch {
	case r.CPUs > g.CPUs:
		return corral.ErrorAt(corral.Forbidden, at, "has %d cpus on a host; a worker that offers %d is not its own",
			g.CPUs, r.CPUs)
	case r.MemoryMiB > g.MemoryMiB:
		return corral.ErrorAt(corral.Forbidden, at, "has %d MiB on a host; a worker that offers %d is not its own",
			g.MemoryMiB, r.MemoryMiB)
	case r.GPUs > g.GPUs:
		return corral.ErrorAt(corral.Forbidden, at, "has %d GPUs on a host; a worker that offers %d is not its own",
			g.GPUs, r.GPUs)
	}
	return nil
}

// isHost reports whether id is that of a worker of the attempt with this tag: TAG/0 to TAG/(hosts-1), in no other
// spelling.
func isHost(id, tag string, hosts int) bool {
	number, ok := strings.CutPrefix(id, tag+"/")
	n, err := strconv.Atoi(number)
	return ok && err == nil && n >= 0 && n < hosts && number == strconv.Itoa(n)
}

// misfit is the line in the history of an attempt that has refused a worker for what it offers.
const misfit = "worker refused"

// misfits are the attempts whose histories have that line: it is written once for each, after a restart too, or a
// worker that tries a million times would fill the history.
type misfits struct {
	mu    sync.Mutex      // guards known
	known map[string]bool // :: tag → the history has the line
}

// note writes into an attempt's history that a worker was refused for what it offers.
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
		m.forget(j.Tag) // the next one is noted
		c.lg.Warn("noting that a worker was refused", "tag", j.Tag, "error", err)
	}
}

// forget is for an attempt that is over, and for one whose history does not have the line.
func (m *misfits) forget(tag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, tag)
}
