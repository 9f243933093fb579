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

// What a run leaves of the measurements of its tasks is bounded, since plans read those of many runs. With more kinds
// of tasks than maxKinds, a workflow has names instead of kinds, and nothing is to be learned from it.
const (
	keptSamples     = 256 // of each class
	maxKinds        = 1000
	maxProfileBytes = 64 << 20
	maxTraceBytes   = 64 << 20 // of one task: longer ones are not looked at
)

// writeProfile writes what was measured of an executed workflow, and on whose hosts; traced returns the trace of a
// task, nil if there is none. A task with a name that no profile
// takes is left out. Where nothing is to be learned the profile is empty: without a file, Profile would read the
// executed workflow.
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

// traces returns what finds the traces of a run's tasks that are done.
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
		if err == nil { // where nobody may trace there is none
			_ = trace.Read(bytes.NewReader(text), path, func(t *trace.Trace) error { found = t; return nil })
		}
		return found
	}
}

// sitesOf returns the names of the sites whose pilots had the workers of an executed workflow, by worker: its id begins
// with the tag of its pilot's attempt. Of other workers nothing is known.
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

// siteOf returns the name of the site of an attempt, empty if there is no such attempt.
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

// Workflow opens the workflow of a run in WfFormat: with what was measured of its tasks, once the run is over and tasks
// of it have run; before that as it was handed over. It is a NotFound error if the directory is gone.
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

// Profile returns what a run has left of the measurements of its tasks; of one that an earlier corrald ended, what its
// executed workflow tells. It is a NotFound error if there is neither: no task is done, or the directory is gone.
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
		return nil, corral.Errorf(corral.NotFound, "run %d has no profile: no task of it is done, or its directory is "+
			"gone (%w)", row.ID, err)
	}
	executed, _, err := wfformat.Read(ctx, bytes.NewReader(text), l.path(executedFile), workflow.Options{})
	if err != nil {
		return nil, err
	}
	return profile.Of(profile.Samples(executed, profile.Execution(executed, row.Dir)))
}

// ProfileText is Profile as JSON.
func ProfileText(ctx context.Context, row corral.Run) (io.ReadCloser, error) {
	p, err := Profile(ctx, row)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = p.WriteJSON(&text)
	return io.NopCloser(&text), err
}
