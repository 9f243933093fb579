package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
	"github.com/corral-pilot/corral/workflow/profile"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A run's profile of its tasks' measurements is limited, since plans read the profiles of many runs. If a workflow has
// more kinds of tasks than maxKinds, these are names rather than kinds, and plans cannot learn from them.
const (
	keptSamples     = 256 // per class
	maxKinds        = 1000
	maxProfileBytes = 64 << 20
	maxTraceBytes   = 64 << 20 // per task: longer traces are ignored
)

// writeProfile writes the measurements of an executed workflow, with the sites of its hosts. The function traced
// returns the trace of a task, or nil. Tasks whose names profiles do not support are omitted. If plans cannot learn
// from the workflow, an empty profile is written: without a file, Profile would read the executed workflow.
func writeProfile(
	path string, executed *workflow.Workflow, sites map[string]string, traced func(task string) *trace.Trace,
) error {
	p := profile.New()
	hosts := make(map[string]string, len(executed.Tasks)) // :: task → its type of host
	for _, t := range executed.Tasks {
		if site := sites[t.Worker]; site != "" {
			hosts[t.ID] = profile.SiteHosts(site)
		}
	}
	for _, s := range profile.Samples(executed, profile.Execution(executed, "")) {
		s.Host = cmp.Or(hosts[s.ID], s.Host)
		if t := traced(s.ID); t != nil {
			s.AddTrace(t)
		}
		_ = p.Add(s)
	}
	if len(p.Transformations()) > maxKinds {
		p = profile.New()
	}
	p.Thin(keptSamples)
	var text bytes.Buffer
	if err := p.WriteJSON(&text); err != nil {
		return err // unreachable: a profile is numbers and names
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}

// traces returns a function that reads the traces of a run's tasks that are done.
func (s *state) traces() func(task string) *trace.Trace {
	if s.plan.care.Trace == "" {
		return func(string) *trace.Trace { return nil }
	}
	last := make(map[string]int, len(s.plan.flow.Tasks)) // :: task → the attempt that is done
	for i := range s.plan.flow.Tasks {
		last[s.plan.flow.Tasks[i].ID] = s.x.Task(i).Begun
	}
	return func(task string) (found *trace.Trace) {
		path := filepath.Join(layout{s.plan.dir}.attempt(task, last[task]), LogTrace)
		text, err := input.ReadFile(path, maxTraceBytes)
		if err == nil { // there are no traces if tracing is not permitted
			_ = trace.Read(bytes.NewReader(text), path, func(t *trace.Trace) error { found = t; return nil })
		}
		return found
	}
}

// sitesOf returns the sites of the workers of an executed workflow. A worker's id begins with the tag of its pilot's
// attempt, which determines the site. The site of other workers is unknown.
func sitesOf(tx *store.Tx, executed *workflow.Workflow) (map[string]string, error) {
	sites, byTag := make(map[string]string), make(map[string]string)
	for _, m := range executed.Machines {
		tag, _, _ := strings.Cut(m.Name, "/")
		name, known := byTag[tag]
		if !known {
			var err error
			if name, err = siteOf(tx, tag); err != nil {
				return nil, err
			}
			byTag[tag] = name
		}
		sites[m.Name] = name
	}
	return sites, nil
}

// siteOf returns the name of the site of an attempt, or "" if the attempt does not exist.
func siteOf(tx *store.Tx, tag string) (string, error) {
	job, err := tx.JobTagged(tag)
	if corral.KindOf(err) == corral.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	site, err := tx.Site(job.Site)
	return site.Name, err
}

// Workflow opens the workflow of a run in WfFormat: with the measurements of its tasks if the run is over and any of
// them ran, and otherwise the original one. It returns a NotFound error if the directory is missing.
func Workflow(ctx context.Context, row corral.Run) (io.ReadCloser, error) {
	if row.Options.Open {
		return grownWorkflow(ctx, row)
	}
	l := layout{row.Dir}
	f, err := input.Open(l.path(executedFile))
	if !row.State.Over() || errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			_ = f.Close()
		}
		f, err = input.Open(l.path(workflowFile))
	}
	if err != nil {
		return nil, unread(row, corral.NotFound, err)
	}
	return f, nil
}

// Profile returns the profile of the measurements of a run's tasks. For a run that an older corrald ended, it is
// derived from the executed workflow. It returns a NotFound error if neither exists, because no task is done or the
// directory is missing.
func Profile(ctx context.Context, row corral.Run) (*profile.Profile, error) {
	l := layout{row.Dir}
	text, err := input.ReadFile(l.path(profileFile), maxProfileBytes)
	if err == nil {
		return profile.ReadJSON(bytes.NewReader(text), l.path(profileFile))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, corral.ErrorAt(corral.Failed, "dir", "reading the run's profile: %w", err)
	}
	text, err = input.ReadFile(l.path(executedFile), workflow.DefaultMaxBytes)
	if err != nil {
		return nil, corral.Errorf(corral.NotFound, "run %d has no profile: none of its tasks is done, or its "+
			"directory is gone (%w)", row.ID, err)
	}
	executed, _, err := wfformat.Read(ctx, bytes.NewReader(text), l.path(executedFile), workflow.Options{})
	if err != nil {
		return nil, err
	}
	return profile.Of(profile.Samples(executed, profile.Execution(executed, row.Dir)))
}

// ProfileText returns the result of Profile as JSON.
func ProfileText(ctx context.Context, row corral.Run) (io.ReadCloser, error) {
	p, err := Profile(ctx, row)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = p.WriteJSON(&text)
	return io.NopCloser(&text), err
}
