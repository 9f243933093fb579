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

// A Prepared is a run that has been checked and laid out on disk, but does not have a row yet. Its directory contains a
// marker until the run is started.
type Prepared struct {
	manager *Manager
	row     corral.Run
	layout  layout
}

// Prepare checks the request, then creates the run's directory: the one that the request names, which must be new or
// empty, or one in the manager's home. If the request is wrong, it returns an Invalid error and creates nothing. The
// caller must have looked up the cluster, and checked that paths are absolute and numbers are in their ranges.
// Afterwards it must call either Insert and, after the commit, Start, or Discard.
//
// flow is the workflow of the request, or nil for an open run, and belongs to the run afterwards. If the request
// contains the workflow's text, this text is written to the run's directory unchanged, so that users find the original
// there. Otherwise the caller has changed flow, and the text is generated from it.
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

// lacking returns a sentence about the resources that the cluster now lacks for tasks of a new run, so that users learn
// of them before the run stalls. More workers may still start, so this is not an error.
func lacking(ctx context.Context, clusters Clusters, cluster corral.ClusterID, p *plan) string {
	offer, err := clusters.Offer(ctx, cluster)
	if err != nil {
		return "" // the run requests the offer again, and reports the shortage
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

// Check returns the error with which Prepare would refuse a request, as far as it can be determined without creating
// files. It only reads flow, unless the request is for a comparison with an earlier run.
func (m *Manager) Check(ctx context.Context, r api.NewRun, flow *workflow.Workflow) error {
	_, err := checked(ctx, r, flow, m.rows)
	return cmp.Or(err, free(r.Dir))
}

// CheckOptions checks the options of a request. Prepare and Check also do this; with CheckOptions, a caller need not
// read a large workflow for a request that they would refuse.
func CheckOptions(r api.NewRun) error {
	r.Options.Open = r.Open
	_, err := withDefaults(r.Options)
	return err
}

// free returns the reason why a directory named by a request cannot be used for a run.
func free(dir string) error {
	if dir == "" {
		return nil
	}
	l := layout{filepath.Clean(dir)}
	if l.unfinished() { // Prepare removes the files there, or reports whose they are
		return nil
	}
	return l.free()
}

// A candidate is a requested run, as far as it is known before its directory exists.
type candidate struct {
	plan    *plan
	text    []byte   // original text of the workflow; nil: generate it from the plan's workflow
	why     []string // with --changed: reason why each task runs; "": it does not run
	doneDir string   // folder with the outputs of tasks done before; "": the workflow's folder
	links   []link
	origin  reuse.Origin
	before  reuse.Origin      // of the run with which --changed compares
	options corral.RunOptions // complete
}

// checked makes the plan of a request's workflow, and finds the files that it needs: its own inputs, and earlier
// outputs.
//
// rows lists all runs: unchanged results may be reused from one of them.
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

// write writes the workflow as a document: the original text, or the workflow with the tasks that were done before.
func (c *candidate) write(w io.Writer) error {
	if c.text == nil {
		return wfformat.Write(w, c.plan.flow)
	}
	_, err := w.Write(c.text)
	return err
}

// layOut creates the run's directory. First it removes the files of an unfinished preparation.
func (m *Manager) layOut(ctx context.Context, l layout, c *candidate) error {
	if l.unfinished() {
		rows, err := m.rows(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rows, func(row corral.Run) bool { return row.Dir == l.dir }) {
			return corral.ErrorAt(corral.Conflict, "dir", "%s is the directory of another run", l.dir)
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

// withDefaults adds default values to options and refuses invalid ones.
func withDefaults(o corral.RunOptions) (corral.RunOptions, error) {
	o.Clustering = cmp.Or(o.Clustering, clustering.Nothing)
	o.Stall = cmp.Or(o.Stall, defaultStall)
	o.CrashLimit = cmp.Or(o.CrashLimit, defaultCrashes)
	o.DefaultRuntime = cmp.Or(o.DefaultRuntime, defaultRuntime)
	if o.Open && o.Clustering != clustering.Nothing {
		return o, corral.ErrorAt(corral.Invalid, "clustering", "an open run cannot have clustered jobs")
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

// Insert stores the run's row in tx, for the owner for whom tx works, with a function of package admit.
func (p *Prepared) Insert(tx *store.Tx, admit func(*store.Tx, corral.Run) (corral.Run, error)) (corral.Run, error) {
	row := p.row
	row.Owner = tx.For()
	row, err := admit(tx, row)
	row.Open = row.Options.Open
	return row, err
}

// Discard removes the files that Prepare created. It is for a run whose row was not committed.
func (p *Prepared) Discard() error {
	defer p.manager.home.release(p.layout.dir)
	return p.layout.remove()
}
