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

// Workflows of parallel tasks, on which slots are planned in Singh (An end-to-end framework for provisioning based
// resource and application management, PhD thesis, University of Southern California, 2008).

// SeismicHazard returns the CyberShake workflow of the thesis's table 2, with its 8,039 tasks. Nothing of it is drawn.
// The widest tasks need 288 processors; with another width they, and nothing else, need so many, for smaller machines.
// The edges are read from figure 17: each synthetic seismogram waits for both wave propagations, and each peak value
// for its seismogram.
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

// A Grid is what workflows of Levels have: so many tasks in so many levels, in the mean for how long, and on how many
// processors. The thesis has 100 tasks in 10 levels of 1000 s (figure 12).
type Grid struct {
	Tasks, Levels int
	Runtime       time.Duration
	Processors    int
	Parents       int // of each task below the first level, or as many as the level above has
}

// Levels draws a workflow. The thesis names no distributions: runtimes are uniform up to twice their mean, processors
// uniform from 1 to twice their mean less 1, and parents are drawn from the level above.
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

// done returns the workflow that was drafted.
func (d *draft) done() plan.Work {
	var err error
	if d.work.Graph, err = dag.New(len(d.work.Tasks), d.edges); err != nil {
		panic("recipe: " + err.Error()) // unreachable: a task waits for earlier ones only
	}
	return d.work
}
