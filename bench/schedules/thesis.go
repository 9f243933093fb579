package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A kind contains the runtimes of the tasks of one transformation, in seconds: mean and standard deviation (Juve 2012,
// tables 5.3, 5.5 and 5.6).
type kind struct {
	name     string
	mean, sd float64
}

var (
	mProjectPP  = kind{"mProjectPP", 1.73, 0.09}
	mDiffFit    = kind{"mDiffFit", 0.66, 0.56}
	mConcatFit  = kind{"mConcatFit", 143.26, 0}
	mBgModel    = kind{"mBgModel", 384.49, 0}
	mBackground = kind{"mBackground", 1.72, 0.65}
	mImgtbl     = kind{"mImgtbl", 2.78, 1.37}
	mAdd        = kind{"mAdd", 282.37, 137.93}
	mShrink     = kind{"mShrink", 66.10, 46.37}
	mJPEG       = kind{"mJPEG", 0.64, 0}

	ucsbCreateSRF = kind{"ucsb_createSRF", 0.57, 0.13}
	ursCreateSRF  = kind{"urs_createSRF", 0.43, 0.09}
	ursLP         = kind{"urs_lp_seisgen", 84.92, 6.69}
	ursHF         = kind{"urs_hf_seisgen", 3.06, 0.63}
	sdsuHF        = kind{"sdsu_hf_seisgen", 196.40, 11.14}
	ucsbSeisgen   = kind{"ucsb_seisgen", 68.32, 12.43}
	rspectra      = kind{"rspectra", 0.34, 0.21}

	fastqSplit     = kind{"fastqSplit", 34.32, 8.94}
	filterContams  = kind{"filterContams", 2.47, 0.43}
	sol2sanger     = kind{"sol2sanger", 0.48, 0.14}
	fast2bfq       = kind{"fast2bfq", 1.40, 0.24}
	mapReads       = kind{"map", 201.89, 21.91}
	mapMerge       = kind{"mapMerge", 11.01, 12.18}
	mapIndex       = kind{"mapIndex", 43.57, 0}
	pileup         = kind{"pileup", 55.95, 0}
	leastOfItsMean = 0.05 // minimum runtime of a task relative to the mean, for kinds with a large deviation

	// From table 5.4: its counts are those of one site's workflow.
	extractSGT = kind{"ExtractSGT", 110.58, 141.20}
	seisSynth  = kind{"SeisSynth", 79.47, 70.86}
	zipSeis    = kind{"ZipSeis", 265.73, 275.04}
	pvcOkaya   = kind{"PVCOkaya", 0.55, 2.48}
	zipPeakSA  = kind{"ZipPeakSA", 195.80, 237.99}
)

// A maker builds a workflow from kinds.
type maker struct {
	wf   *workflow.Workflow
	b    *workflow.Builder
	seed uint64
	err  error
}

func newMaker(name string, seed uint64) *maker {
	wf := &workflow.Workflow{Name: name}
	return &maker{wf: wf, b: workflow.NewBuilder(wf, workflow.Options{}), seed: seed}
}

// task adds a task that waits for others, and returns its id. Its runtime depends only on its id and the seed.
func (m *maker) task(k kind, after ...string) (id string) {
	id = fmt.Sprintf("%s-%d", k.name, len(m.wf.Tasks))
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.wf.Name + "/" + id))
	took := max(leastOfItsMean*k.mean, k.mean+k.sd*rand.New(rand.NewPCG(m.seed, h.Sum64())).NormFloat64())
	t := workflow.Task{ID: id, Name: k.name, Argv: []string{"sleep", "1"}}
	t.Runtime = time.Duration(took * float64(time.Second))
	if err := m.b.Add(t, workflow.Place{}); err != nil && m.err == nil {
		m.err = err
	}
	for _, parent := range after {
		m.b.Edge(parent, id, workflow.Place{})
	}
	return id
}

// some adds n tasks that wait for the same others.
func (m *maker) some(n int, k kind, after ...string) (ids []string) {
	for range n {
		ids = append(ids, m.task(k, after...))
	}
	return ids
}

func (m *maker) made() (*workflow.Workflow, error) {
	if m.err == nil {
		m.err = m.b.Build(workflow.Place{})
	}
	return m.wf, m.err
}

// montage projects images, fits each overlapping pair, corrects their backgrounds and adds them up, in tiles if there
// are many (§1.5.9).
func montage(images, pairs, tiles int) (*workflow.Workflow, error) {
	m := newMaker(fmt.Sprintf("Montage of the thesis, %d images", images), 1)
	projected := m.some(images, mProjectPP)
	var fits []string
	for apart := 1; len(fits) < pairs; apart += 7 { // neighbours in a row, then in other rows
		for i := 0; i+apart < images && len(fits) < pairs; i++ {
			fits = append(fits, m.task(mDiffFit, projected[i], projected[i+apart]))
		}
	}
	model := m.task(mBgModel, m.task(mConcatFit, fits...))
	var corrected []string
	for _, image := range projected {
		corrected = append(corrected, m.task(mBackground, model, image))
	}
	if tiles == 1 {
		m.task(mJPEG, m.task(mShrink, m.task(mAdd, m.task(mImgtbl, corrected...))))
		return m.made()
	}
	var shrunk []string
	for k := range tiles {
		tile := corrected[images*k/tiles : images*(k+1)/tiles]
		shrunk = append(shrunk, m.task(mShrink, m.task(mAdd, m.task(mImgtbl, tile...))))
	}
	m.task(mJPEG, m.task(mAdd, m.task(mImgtbl, shrunk...)))
	return m.made()
}

// broadband simulates earthquakes as observed at stations, with 16 tasks for each combination (§1.5.11).
func broadband(scenarios, stations int) (*workflow.Workflow, error) {
	m := newMaker(fmt.Sprintf("Broadband of the thesis, %d scenarios at %d stations", scenarios, stations), 1)
	for range scenarios * stations {
		for _, source := range []string{m.task(ursCreateSRF), m.task(ucsbCreateSRF)} {
			low := m.task(ursLP, source)
			for _, high := range []string{m.task(ursHF, low), m.task(sdsuHF, low), m.task(ucsbSeisgen, source)} {
				m.task(rspectra, high)
			}
		}
	}
	return m.made()
}

// epigenome maps the chunks of some lanes of a sequencer, each through a chain of four tasks, and merges them
// (§1.5.12).
func epigenome(lanes, chunks int, seed uint64) (*workflow.Workflow, error) {
	m := newMaker(fmt.Sprintf("Epigenome of the thesis, %d chunks", chunks), seed)
	var merged []string
	for l := range lanes {
		split := m.task(fastqSplit)
		var mapped []string
		for range chunks*(l+1)/lanes - chunks*l/lanes {
			read := m.task(fast2bfq, m.task(sol2sanger, m.task(filterContams, split)))
			mapped = append(mapped, m.task(mapReads, read))
		}
		merged = append(merged, m.task(mapMerge, mapped...))
	}
	m.task(pileup, m.task(mapIndex, m.task(mapMerge, merged...)))
	return m.made()
}

// ofTheThesis returns the workflows measured in chapter 2, with the same number of tasks.
func ofTheThesis() (all []*workflow.Workflow, err error) {
	for _, f := range []func() (*workflow.Workflow, error){
		func() (*workflow.Workflow, error) { return montage(40, 120, 1) },
		func() (*workflow.Workflow, error) { return broadband(6, 8) },
		func() (*workflow.Workflow, error) { return epigenome(3, 512, 1) },
	} {
		wf, err := f()
		if err != nil {
			return nil, err
		}
		all = append(all, wf)
	}
	return all, nil
}

// sixDegrees returns the Montage with 6,062 tasks.
func sixDegrees() (*workflow.Workflow, error) { return montage(1217, 3575, 16) }

// cyberShake returns a site's workflow with about the given number of tasks, in the proportions of table 5.4 (§1.5.10):
// seismograms are synthesized from extracts, the peaks of each are found, and both are packed. Runtimes are lognormal,
// because their deviations are as large as their means. The workflow contains only what the simulator needs, because
// 840,000 tasks need no names.
func cyberShake(tasks int) asleep {
	const extracts, synths, zips = 5939, 404_864, 78
	part := func(of int) int { return max(1, of*tasks/(extracts+2*synths+2*zips)) }
	wf := &workflow.Workflow{Name: fmt.Sprintf("CyberShake of the thesis, %d tasks", tasks)}
	a := asleep{wf: wf}
	var edges [][2]int
	add := func(k kind, parents ...int) int {
		i := len(a.times)
		sigma := math.Sqrt(math.Log(1 + k.sd*k.sd/(k.mean*k.mean)))
		took := k.mean * chance.Lognormal(sigma, 1, k.name, chance.Number(i))
		length := time.Duration(took * float64(time.Second)).Round(time.Millisecond)
		a.times = append(a.times, max(time.Millisecond, length))
		wf.Tasks = append(wf.Tasks, workflow.Task{ID: strconv.Itoa(i)})
		for _, p := range parents {
			edges = append(edges, [2]int{p, i})
		}
		return i
	}
	var first []int
	for range part(extracts) {
		first = append(first, add(extractSGT))
	}
	n, groups := part(synths), part(zips)
	for g := range groups {
		var seismograms, peaks []int
		for i := n * g / groups; i < n*(g+1)/groups; i++ {
			seismograms = append(seismograms, add(seisSynth, first[i*len(first)/n]))
			peaks = append(peaks, add(pvcOkaya, seismograms[len(seismograms)-1]))
		}
		add(zipSeis, seismograms...)
		add(zipPeakSA, peaks...)
	}
	wf.Graph, _ = dag.New(len(a.times), edges) // no task waits for a later one
	return a
}
