package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

// A source provides workflows by application, size and instance, and caches them.
type source struct {
	dir       string // of generated workflows in DAX; empty: they are drawn at random
	instances int    // of each size

	mutex sync.Mutex
	known map[string]plan.Work
}

// files maps applications to their names in the directory.
var files = map[string]string{"montage": "MONTAGE", "cybershake": "CYBERSHAKE", "ligo": "LIGO", "epigenomics": "GENOME",
	"sipht": "SIPHT"}

// take returns a workflow. It panics if there is none: the panels request only existing workflows.
func (s *source) take(application string, size, instance int) plan.Work {
	instance %= s.instances
	name := fmt.Sprintf("%s.%d.%d", application, size, instance)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if w, ok := s.known[name]; ok {
		return w
	}
	w, err := s.read(application, size, instance)
	if err != nil {
		panic(err)
	}
	s.known[name] = w
	return w
}

func (s *source) read(application string, size, instance int) (plan.Work, error) {
	if s.dir == "" {
		return plantest.Draw(application, size, uint64(instance))
	}
	file := filepath.Join(s.dir, fmt.Sprintf("%s.n.%d.%d.dax.gz", files[application], size, instance))
	flow, _, err := formats.ReadFile(context.Background(), file, workflow.Options{})
	if err != nil {
		return plan.Work{}, err
	}
	w := plan.Work{Name: strings.TrimSuffix(filepath.Base(file), ".dax.gz"), Graph: flow.Graph}
	for _, t := range flow.Tasks {
		w.Tasks = append(w.Tasks, plan.Task{ID: t.ID, Kind: t.Name, Needs: corral.Resources{CPUs: 1},
			Runtime: t.Runtime.Round(time.Millisecond)})
	}
	return w, nil
}
