package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// The traces. The first one has 10,000 jobs that its authors' program drew for 256 processors.
const (
	lublin256 = "lublin_256.swf.gz"
	kth       = "KTH-SP2-1996-2.1-cln.swf.gz"
)

const week = 7 * 24 * time.Hour

// A machine is a set of processors with background jobs from a trace or a model.
type machine struct {
	queue.Machine
	name string
	jobs []queue.Job

	copied bool // the jobs include a second copy of the trace
}

// trace reads the jobs of a trace; it returns none if the file does not exist.
func (d *desk) trace(name string) ([]queue.Job, error) {
	f, err := os.Open(filepath.Join(d.data, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := workload.ReadJobs(context.Background(), f, name)
	if err != nil {
		return nil, err
	}
	return t.Jobs, nil
}

// exact returns the jobs with requests that equal their run times, as in all figures of the thesis but figure 8.
func exact(jobs []queue.Job) []queue.Job {
	all := slices.Clone(jobs)
	for i := range all {
		all[i].Requested = max(time.Second, min(all[i].Runtime, all[i].Requested))
	}
	return all
}

// lublin returns a machine of that size with the jobs of lublin_256, or with jobs drawn from the same model.
func (d *desk) lublin(processors int) (machine, error) {
	m := machine{Machine: queue.Machine{Processors: processors, Policy: queue.Conservative}, name: lublin256}
	var err error
	if m.jobs, err = d.trace(lublin256); err == nil && m.jobs == nil {
		m.name, m.jobs = "jobs drawn for 256 processors", workload.Draw(10_000, 256, 0, 1)
	}
	m.jobs = exact(m.jobs)
	return m, err
}

// loaded returns the machine with approximately the given load. To raise the load it adds a second copy of the trace
// that begins a week later, from which it takes each job with the same probability (Singh 2008, section 4.7; Sabin et
// al.). To lower the load it spreads the arrivals over a longer time.
func (m machine) loaded(load float64) machine {
	own := queue.Load(m.jobs, m.Processors)
	all := slices.Clone(m.jobs)
	if load < own {
		for i := range all {
			all[i].Submit = time.Duration(float64(all[i].Submit) * own / load).Truncate(time.Second)
		}
	} else {
		m.copied = true
		often := load/m.middle() - 1
		for i, j := range m.jobs {
			if j.Submit += week; chance.Draw(1, "copy", chance.Number(i)) < often {
				all = append(all, j)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b queue.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	m.jobs = all
	return m
}

// load returns the load of the jobs; with two copies, in the time in which both run.
func (m machine) load() float64 {
	if m.copied {
		return m.middle()
	}
	return queue.Load(m.jobs, m.Processors)
}

// middle returns the load without the first and the last week.
func (m machine) middle() float64 {
	last := m.jobs[len(m.jobs)-1].Submit
	return queue.Load(slices.DeleteFunc(slices.Clone(m.jobs), func(j queue.Job) bool {
		return j.Submit < week || j.Submit > last-week
	}), m.Processors)
}

// states returns the machine's queue at n instants, spread evenly from a tenth to seven tenths of the trace, so that
// jobs keep arriving while a workflow runs.
func (m machine) states(n int) []*queue.Queue { return m.statesAt(n, m.jobs[len(m.jobs)-1].Submit) }

// statesAt does the same with a given time of the last job.
func (m machine) statesAt(n int, last time.Duration) []*queue.Queue {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = (last/10 + last*6/10*time.Duration(i)/time.Duration(n)).Truncate(time.Second)
	}
	return queue.States(m.Machine, m.jobs, at)
}
