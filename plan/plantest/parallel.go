package plantest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Workflows of parallel tasks, for which Singh plans slots (An end-to-end framework for provisioning based resource and
// application management, PhD thesis, University of Southern California, 2008).

// SeismicHazard returns the CyberShake workflow of table 2 of the thesis, with its 8,039 tasks. Nothing in it is
// random. The widest tasks need 288 processors; a different width, for smaller machines, changes only these tasks. The
// edges follow figure 17: each synthetic seismogram depends on both wave propagations, and each peak value on its
// seismogram.
func SeismicHazard(wide int) plan.Work {
	const seismograms = 4017
	d := &draft{ids: map[string]int{}}
	d.work.Name = fmt.Sprintf("seismic-hazard.%d", wide)
	xyz := d.add("fd_grid_xyz", 1)
	pre := d.add("preSGT", 300, xyz)
	cvm := d.add("fd_grid_cvm", 2100, xyz)
	one := d.add("pvml_chk1", 86400, pre, cvm)
	two := d.add("pvml_chk2", 86400, pre, cvm)
	for range seismograms {
		d.add("synthSGT", 519, one, two)
	}
	for i := range seismograms {
		d.add("peakValCal", 1, two+1+i)
	}
	for _, i := range []int{cvm, one, two} {
		d.work.Tasks[i].Needs.CPUs = wide
	}
	return d.done()
}

// A Grid holds the parameters of Levels: the numbers of tasks and levels, the mean runtime, and the mean number of
// processors. The thesis uses 100 tasks in 10 levels, with a mean runtime of 1000 s (figure 12).
type Grid struct {
	Tasks, Levels int
	Runtime       time.Duration
	Processors    int
	Parents       int // number of parents of each task below the first level; at most the size of the previous level
}

// Levels generates a workflow. The thesis does not specify distributions: here runtimes are uniform up to twice their
// mean, processors uniform from 1 to twice their mean less 1, and parents are random tasks of the previous level.
func Levels(g Grid, seed uint64) plan.Work {
	rng := rand.New(rand.NewPCG(seed, uint64(g.Tasks)))
	d := &draft{rng: rng, ids: map[string]int{}}
	d.work.Name = "levels." + strconv.Itoa(g.Tasks) + "." + strconv.FormatUint(seed, 10)
	var above []int
	for level := range g.Levels {
		var now []int
		for range g.Tasks*(level+1)/g.Levels - g.Tasks*level/g.Levels {
			rng.Shuffle(len(above), func(i, j int) { above[i], above[j] = above[j], above[i] })
			seconds := 2 * g.Runtime.Seconds() * (1 - rng.Float64())
			i := d.add("task", max(0.001, seconds), above[:min(g.Parents, len(above))]...)
			d.work.Tasks[i].Needs = corral.Resources{CPUs: 1 + rng.IntN(2*g.Processors-1)}
			now = append(now, i)
		}
		above = now
	}
	return d.done()
}

// done returns the finished workflow with its graph.
func (d *draft) done() plan.Work {
	var err error
	if d.work.Graph, err = dag.New(len(d.work.Tasks), d.edges); err != nil {
		panic("recipe: " + err.Error()) // unreachable: tasks depend on earlier ones only
	}
	return d.work
}
