package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/reuse"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// Defaults of options that a request leaves out.
const (
	defaultStall   = corral.Seconds(5 * time.Minute)
	defaultRuntime = corral.Seconds(time.Minute)
	defaultCrashes = 5
)

// A Prepared is a run that is checked and laid out on disk, but has no row yet. Its directory
// carries a marker until the run is started.
type Prepared struct {
	manager *Manager
	row     corral.Run
	layout  layout
}

// Prepare checks all that is asked for, then makes the run's directory: the one that the request names, which must be
// new or empty, or one in the manager's home. What is wrong with the request is an Invalid error, and nothing was made.
// The caller has found the cluster, and checked that paths are absolute and numbers in their ranges. It must end with
// Insert, committed, and Start, or with Discard.
//
// flow is the workflow of the request, nil for an open run, and belongs to the run from then on. The run's directory
// gets its text from the request, if that has one, so that the user finds there what was handed over; otherwise the
// caller has changed flow, and the text is written from it.
func (m *Manager) Prepare(ctx context.Context, cluster corral.ClusterID, r api.NewRun, flow *workflow.Workflow) (
	*Prepared, error,
) {
	c, err := checked(ctx, r, flow, m.rows)
	if err != nil {
		return nil, err
	}
	p := c.plan
	dir, err := m.home.choose(r.Dir, p.flow.Name)
	if err != nil {
		return nil, err
	}
	l := layout{dir}
	if err := m.layOut(ctx, l, c); err != nil {
		m.home.release(dir)
		return nil, err
	}
	row := corral.Run{
		Cluster: cluster, Workflow: p.flow.Name, Dir: dir, Options: c.options, Labels: r.Labels,
		Tasks: newState(p).x.Counts(), Reason: lacking(ctx, m.clusters, cluster, p),
	}
	m.home.keep(dir, p)
	return &Prepared{manager: m, layout: l, row: row}, nil
}

// lacking says what the cluster lacks now for tasks of a new run, in a sentence: whoever begins it need not wait for
// the stall to hear of it. Workers may still come, so it is no error.
func lacking(ctx context.Context, clusters Clusters, cluster corral.ClusterID, p *plan) string {
	offer, err := clusters.Offer(ctx, cluster)
	if err != nil {
		return "" // the run asks again, and says so
	}
	lacks := execution.Lacks(p.spec, offer)
	if len(lacks) == 0 {
		return ""
	}
	text := fmt.Sprintf("task %s %s", p.flow.Tasks[lacks[0].Tasks[0]].ID, lacks[0].What)
	others := -1
	for _, l := range lacks {
		others += len(l.Tasks)
	}
	switch others {
	case 0:
		return text
	case 1:
		return text + "; one more task cannot run either"
	}
	return text + fmt.Sprintf("; %d more tasks cannot run either", others)
}

// Check reports why Prepare would refuse a request for a workflow, as far as that can be seen without making anything.
// Unless the request is for a comparison with an earlier run, flow is only read.
func (m *Manager) Check(ctx context.Context, r api.NewRun, flow *workflow.Workflow) error {
	_, err := checked(ctx, r, flow, m.rows)
	return cmp.Or(err, free(r.Dir))
}

// CheckOptions reports which option of a request does not exist. Prepare and Check do so, too; a caller that reads a
// large workflow for them need not read it for a request that they refuse.
func CheckOptions(r api.NewRun) error {
	r.Options.Open = r.Open
	_, err := withDefaults(r.Options)
	return err
}

// free reports why a directory that a request names cannot be a run's.
func free(dir string) error {
	if dir == "" {
		return nil
	}
	l := layout{filepath.Clean(dir)}
	if l.unfinished() { // Prepare removes what is left there, or says whose it is
		return nil
	}
	return l.free()
}

// A candidate is a run that is asked for, as far as it is known before there is a directory.
type candidate struct {
	plan    *plan
	text    []byte   // of the workflow, as in the request; nil: it is written from the plan's
	why     []string // with --changed: why each task runs; "": it does not
	doneDir string   // where the files are that tasks have made which were done before; "": beside the workflow
	links   []link
	origin  reuse.Origin
	before  reuse.Origin      // of the run with which --changed compares
	options corral.RunOptions // complete
}

// checked makes a plan of the workflow of a request, and finds what it needs: its own inputs, and what was made before.
//
// rows lists all runs: what has not changed may be kept from one of them.
func checked(ctx context.Context, r api.NewRun, flow *workflow.Workflow,
	rows func(context.Context) ([]corral.Run, error)) (*candidate, error) {
	r.Options.Open = r.Open
	options, err := withDefaults(r.Options)
	if err != nil {
		return nil, err
	}
	if r.Open {
		r.Workflow = openDocument(r.WorkflowName)
	}
	p, err := planOf(flow, r.WorkflowName, options)
	if err != nil {
		return nil, err
	}
	c := &candidate{plan: p, text: r.Workflow, doneDir: r.DoneDir, options: options}
	if r.Changed {
		all, err := rows(ctx)
		if err == nil {
			err = c.keepUnchanged(ctx, r, all)
		}
		if err != nil {
			return nil, err
		}
	}
	c.links, err = inputs(p.flow, r.SourceDir, c.doneDir)
	files := make(map[string]string, len(c.links))
	for _, k := range c.links {
		files[k.name] = k.source
	}
	c.origin = reuse.OriginOf(r, files).Keep(c.before)
	return c, err
}

// write writes the workflow as a document: as it was handed over, or with what is done before.
func (c *candidate) write(w io.Writer) error {
	if c.text == nil {
		return wfformat.Write(w, c.plan.flow)
	}
	_, err := w.Write(c.text)
	return err
}

// layOut makes the run's directory. What an unfinished preparation left there goes first.
func (m *Manager) layOut(ctx context.Context, l layout, c *candidate) error {
	if l.unfinished() {
		rows, err := m.rows(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rows, func(row corral.Run) bool { return row.Dir == l.dir }) {
			return corral.ErrorAt(corral.Conflict, "dir", "%s is that of another run", l.dir)
		}
		if err := l.remove(); err != nil {
			return err
		}
	}
	if filepath.Dir(l.dir) == m.home.dir {
		m.home.make()
	}
	if err := l.create(c.write, c.links); err != nil {
		return err
	}
	if err := c.origin.Write(l.dir); err != nil {
		return errors.Join(corral.ErrorAt(corral.Failed, "dir", "making the run's directory: %w", err), l.remove())
	}
	return nil
}

// withDefaults fills in what is left out and refuses what does not exist.
func withDefaults(o corral.RunOptions) (corral.RunOptions, error) {
	o.Clustering = cmp.Or(o.Clustering, clustering.Nothing)
	o.Stall = cmp.Or(o.Stall, defaultStall)
	o.CrashLimit = cmp.Or(o.CrashLimit, defaultCrashes)
	o.DefaultRuntime = cmp.Or(o.DefaultRuntime, defaultRuntime)
	if o.Open && o.Clustering != clustering.Nothing {
		return o, corral.ErrorAt(corral.Invalid, "clustering", "tasks of an open run are jobs of their own")
	}
	if _, err := clustering.Parse(o.Clustering); err != nil {
		return o, corral.ErrorAt(corral.Invalid, "clustering", "%w", err)
	}
	if o.Inputs != "" && o.Inputs != corral.LinkInputs && o.Inputs != corral.CopyInputs {
		return o, corral.ErrorAt(corral.Invalid, "inputs", "%q is neither %s nor %s", o.Inputs, corral.LinkInputs,
			corral.CopyInputs)
	}
	if o.Trace != "" && o.Trace != corral.TraceProcesses && o.Trace != corral.TraceIO {
		return o, corral.ErrorAt(corral.Invalid, "trace", "%q is neither %s nor %s", o.Trace, corral.TraceProcesses,
			corral.TraceIO)
	}
	if _, err := execution.ExitStatuses(o.RetryUnless); err != nil {
		return o, err
	}
	return o, nil
}

// Insert makes the run known: its row is written in tx, for the owner for whom tx works, by a function of package
// admit.
func (p *Prepared) Insert(tx *store.Tx, admit func(*store.Tx, corral.Run) (corral.Run, error)) (corral.Run, error) {
	row := p.row
	row.Owner = tx.For()
	row, err := admit(tx, row)
	row.Open = row.Options.Open
	return row, err
}

// Discard removes what Prepare made. It is for a run whose row was not committed.
func (p *Prepared) Discard() error {
	defer p.manager.home.release(p.layout.dir)
	return p.layout.remove()
}
