package server_test

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// far simulates the sites that corrald connects to: the far end of the real reach. Real sites, with an sshd and a
// Slurm, are in internal/e2e.
type far struct {
	files     map[string]string             // files of attempts, by TAG/NAME
	jobs      map[string]gridsite.JobStatus // among which orphans are looked for, by tag
	shut      error                         // error of a login without a person
	stranger  error                         // error for a host key that is not accepted
	bad       error                         // error for the root
	checked   []corral.Site                 // sites whose root and options were checked
	meanwhile func()                        // called during a check of options; nil: nothing
	unwell    error                         // error of ProbeNetwork
	ill       error                         // error of Survey
	untold    error                         // error of a query of the batch system
	login     func(context.Context, gridsite.Asker) error

	mu    sync.Mutex     // guards the fields below
	lines map[string]int // connections by owner
}

// dialled returns the numbers of connections by owner.
func (f *far) dialled() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.lines)
}

func (f *far) dial(owner, _ string) (gridsite.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines[owner]++
	return line{far: f}, nil
}

// backends returns backends that reach the same site by every contact.
func (f *far) backends() gridsite.Backends {
	dialect := func(gridsite.Conn, string) gridsite.Batch { return queue{far: f} }
	return gridsite.Backends{
		Transports: map[string]gridsite.Dialer{
			"local": func(string, string) (gridsite.Conn, error) { return machineConn{}, nil },
			"ssh":   f.dial,
		},
		Dialects: map[string]func(gridsite.Conn, string) gridsite.Batch{"fork": dialect, "slurm": dialect},
		Head:     func(_ gridsite.Conn, root string) gridsite.Head { return front{far: f, root: root} },
	}
}

// machineConn is a connection to this machine.
type machineConn struct{ gridsite.Conn }

func (machineConn) Close() error { return nil }

// line is a connection to a site.
type line struct {
	gridsite.Conn
	gridsite.Remote
	gridsite.Streamer
	far *far
}

func (l line) Connect(_ context.Context, accept bool) error {
	if l.far.stranger != nil && !accept {
		return l.far.stranger
	}
	return l.far.shut
}

func (l line) Login(ctx context.Context, ask gridsite.Asker) error { return l.far.login(ctx, ask) }

func (line) Close() error { return nil }

// front is a head node.
type front struct {
	gridsite.Head
	far  *far
	root string
}

func (h front) Check(context.Context, gridsite.Claim) error {
	h.far.checked = append(h.far.checked, corral.Site{Root: h.root})
	return h.far.bad
}

func (front) Expand(context.Context, string) (string, error) { return "/home/ann", nil }

func (front) Close() error { return nil }

// queue is a batch system.
type queue struct {
	gridsite.Batch
	far *far
}

func (q queue) Check(_ context.Context, spec gridsite.JobSpec) error {
	q.far.checked[len(q.far.checked)-1].BatchOptions = spec.BatchOptions
	if q.far.meanwhile != nil {
		q.far.meanwhile()
	}
	return nil
}

// Survey returns no facts: those of batch systems are tested in package request.
func (q queue) Survey(context.Context, corral.BatchOptions) (corral.SiteFacts, error) {
	return corral.SiteFacts{}, q.far.untold
}

// Backlog always returns the same.
func (q queue) Backlog(_ context.Context, name string) (corral.Backlog, error) {
	return corral.Backlog{Queue: cmp.Or(name, "normal"), At: time.Now().UTC(), Processors: 64, Hidden: 2, Ineligible: 1,
		Running: []corral.QueuedJob{{Processors: 48, Limit: corral.Seconds(8 * time.Hour), Elapsed: corral.Seconds(time.Hour),
			StartsAt: time.Now().UTC()}},
		Waiting: []corral.QueuedJob{{Processors: 32, Limit: corral.Seconds(2 * time.Hour)}}}, q.far.untold
}

func (q queue) Read(_ context.Context, tag, name string) ([]byte, error) {
	content, ok := q.far.files[tag+"/"+name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(content), nil
}

// Tags returns the tags of the jobs that have files at the site.
func (q queue) Tags(context.Context) (tags []string, err error) {
	return slices.Sorted(maps.Keys(q.far.jobs)), q.far.shut
}

func (q queue) Poll(_ context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	known := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		if st := q.far.jobs[tag]; st.Phase != "" {
			known[tag] = st
		}
	}
	return known, nil
}

func (q queue) Cancel(_ context.Context, tag string, _ time.Duration) error {
	q.far.jobs[tag] = gridsite.JobStatus{Tag: tag, Phase: gridsite.Ended}
	return nil
}

func (q queue) Forget(_ context.Context, tag string) error { delete(q.far.jobs, tag); return nil }

// probes simulates what a job at a site would see; real probes take a minute.
type probes struct{ *far }

func (p probes) Survey(context.Context, corral.Site) (corral.SiteFacts, error) {
	yes := true
	return corral.SiteFacts{At: time.Now().UTC(), Batch: "slurm 22.05.8", Outbound: &yes, Shared: &yes, FreeMiB: 81920, MaxJobs: 2,
		Queues: []corral.SiteQueue{{Name: "short", Default: true, MaxWalltime: corral.Seconds(time.Hour), Nodes: 8, CPUs: 4, MemoryMiB: 8192}},
	}, p.ill
}

func (p probes) ProbeNetwork(_ context.Context, site corral.Site, cluster corral.Cluster) (corral.NetworkProbe, error) {
	return corral.NetworkProbe{Site: site.Name, Cluster: cluster.Name, Broker: corral.BrokerCCB,
		Reason:   "the pool's side could not connect to this node: 10.1.4.7:40213: timed out; the collector is its broker",
		Measured: []string{"collector 192.0.2.1:9618: reached from 10.1.4.7 in 0.4 ms", "this node, from the pool's side: 10.1.4.7:40213: timed out"}}, p.unwell
}
