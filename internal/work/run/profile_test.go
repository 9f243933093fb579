package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// TestProfileSaysWhoseHosts: measurements are distinguished by the sites of the workers' pilots.
func TestProfileSaysWhoseHosts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(&simWorker{id: "corral-pilot-1/0", cpus: 1, memoryMiB: 2048},
			&simWorker{id: "stray", cpus: 1, memoryMiB: 2048})
		w := newWorld(t, c)
		defer w.stop()
		w.write(func(tx *store.Tx) error {
			site, err := tx.CreateSite(corral.Site{Name: "hpc", Owner: "local", Contact: "local:", Batch: "fork",
				HeadBatch: "fork", Root: "/srv/corral"})
			if err != nil {
				return err
			}
			_, err = tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: site.ID, Tag: "corral-pilot-1"})
			return err
		})
		row := w.awaitOver(w.create(api.NewRun{Workflow: document(fan(4, 10)...)}).ID)
		p, err := Profile(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		hosts := map[string]int{}
		for _, s := range p.Classes()[0].Samples() {
			hosts[s.Host]++
		}
		if len(hosts) != 2 || hosts["site hpc"] == 0 || hosts[""] == 0 {
			t.Errorf("hosts %v, want some at site hpc and others nowhere that is known", hosts)
		}
	})
}

// TestRunLeavesAProfile: the measurements of tasks that are done can be read after the run's end. If an older corrald
// did not write a profile, it is derived from the executed workflow and has the same runs.
func TestRunLeavesAProfile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		c.run = func(task execution.Task) (execution.Status, time.Duration) {
			if task.ID == "m0" {
				return execution.Failed, time.Second
			}
			return execution.Done, 7 * time.Second
		}
		w := newWorld(t, c)
		defer w.stop()
		row := w.awaitOver(w.create(api.NewRun{Workflow: document(fan(2, 1)...)}).ID)
		var runs [][]string
		for range 2 {
			p, err := Profile(t.Context(), row)
			if err != nil {
				t.Fatal(err)
			}
			classes := p.Classes()
			if len(classes) != 1 || classes[0].Transformation != "step" ||
				classes[0].Stat(profile.Runtime).Mean != 7 || classes[0].Count() != int64(row.Tasks.Done) {
				t.Errorf("classes %+v of a run with %d tasks done, want those of 7 s", classes, row.Tasks.Done)
			}
			runs = append(runs, p.Runs())
			if err := os.RemoveAll(filepath.Join(row.Dir, profileFile)); err != nil {
				t.Fatal(err)
			}
		}
		if len(runs[0]) != 1 || !cmp.Equal(runs[0], runs[1]) {
			t.Errorf("runs %q, want the same one twice", runs)
		}
		if err := os.Remove(filepath.Join(row.Dir, executedFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := Profile(t.Context(), row); corral.KindOf(err) != corral.NotFound {
			t.Errorf("without either file: %v, want kind NotFound", err)
		}
	})
}

// TestProfileIsBounded: the profile of many tasks of a kind has some samples and exact statistics; with too many kinds,
// the profile is empty, so that the executed workflow is not read.
func TestProfileIsBounded(t *testing.T) {
	t.Parallel()
	made := func(tasks, kinds int) *workflow.Workflow {
		w := &workflow.Workflow{Name: "w", ExecutedAt: time.Unix(1, 0)}
		b := workflow.NewBuilder(w, workflow.Options{})
		for i := range tasks {
			task := workflow.Task{ID: fmt.Sprint(i), Name: fmt.Sprintf("k%d", i%kinds),
				Execution: workflow.Execution{Runtime: time.Second}}
			if err := b.Add(task, workflow.Place{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Build(workflow.Place{}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	row := corral.Run{Dir: t.TempDir()}
	path := layout{row.Dir}.path(profileFile)
	if err := writeProfile(path, made(1000, maxKinds+1), nil, (&state{plan: &plan{}}).traces()); err != nil {
		t.Fatal(err)
	}
	p, err := Profile(t.Context(), row)
	if err != nil || len(p.Transformations()) != 1000 {
		t.Errorf("1000 kinds: %v", err)
	}
	if err := writeProfile(path, made(maxKinds+1, maxKinds+1), nil, (&state{plan: &plan{}}).traces()); err != nil {
		t.Fatal(err)
	}
	if p, err = Profile(t.Context(), row); err != nil || len(p.Transformations()) != 0 {
		t.Errorf("too many kinds: %v, and a profile of some", err)
	}
	if err := writeProfile(path, made(3*keptSamples, 1), nil, (&state{plan: &plan{}}).traces()); err != nil {
		t.Fatal(err)
	}
	if p, err = Profile(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	c := p.Classes()[0]
	if len(c.Samples()) != keptSamples || c.Count() != 3*keptSamples {
		t.Errorf("%d samples of %d tasks, want %d of %d", len(c.Samples()), c.Count(), keptSamples, 3*keptSamples)
	}
}
