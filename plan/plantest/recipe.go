package plantest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// Draw generates workflows of five applications, of any size. Their structure and the distributions of runtimes are
// those of the workflow generator with which the thesis made its ensembles (Bharathi, Chervenak, Deelman, Mehta, Su and
// Vahi: Characterization of scientific workflows, WORKS 2008; the constants are those of its program). These
// distributions differ from those of the thesis's profiles: an mProjectPP takes 13.59 s here, and 1.73 s there.
//
// Parameters that the constants do not determine (compression ratios of archives and pictures, sizes of the parts of
// lanes) are estimated from the generator's output, see each recipe. The generator itself has no seed, so published
// instances cannot be reproduced exactly. Here the same seed yields the same workflow.

// Applications lists the names that Draw accepts.
var Applications = []string{"sipht", "ligo", "epigenomics", "montage", "cybershake"}

var recipes = map[string]func(*draft, int){
	"sipht": sipht, "ligo": ligo, "epigenomics": epigenomics, "montage": montage, "cybershake": cyberShake,
}

// Least is the number of tasks of the smallest workflow.
const Least = 20

// Draw returns a workflow of an application with about the given number of tasks; it may have slightly fewer if the
// structure does not allow the exact number. An unknown name or a number of tasks below Least is an Invalid error.
func Draw(application string, tasks int, seed uint64) (plan.Work, error) {
	of, ok := recipes[application]
	if !ok {
		return plan.Work{}, corral.Errorf(corral.Invalid, "%.40q is not one of the applications %q", application,
			Applications)
	}
	if tasks < Least || tasks > 1_000_000 {
		return plan.Work{}, corral.Errorf(corral.Invalid,
			"a workflow of %d tasks is not supported: ask for %d to a million", tasks, Least)
	}
	d := &draft{rng: rand.New(rand.NewPCG(seed, uint64(tasks))), ids: map[string]int{}}
	d.work.Name = fmt.Sprintf("%s.%d.%d", application, tasks, seed)
	of(d, tasks)
	return d.done(), nil
}

// A draft is an unfinished workflow, to which recipes add tasks.
type draft struct {
	rng   *rand.Rand
	work  plan.Work
	edges [][2]int
	ids   map[string]int // :: kind → number of its tasks
}

// add appends a task of a kind with a runtime in seconds after its parents, and returns its index.
func (d *draft) add(kind string, seconds float64, after ...int) int {
	d.ids[kind]++
	i := len(d.work.Tasks)
	d.work.Tasks = append(d.work.Tasks, plan.Task{ID: kind + strconv.Itoa(d.ids[kind]), Kind: kind,
		Needs: corral.Resources{CPUs: 1}, Runtime: time.Duration(math.Round(seconds*1000)) * time.Millisecond})
	for _, a := range after {
		d.edges = append(d.edges, [2]int{a, i})
	}
	return i
}

// normal draws from the normal distribution with the given mean and variance until the value is within half of the
// mean; after a hundred attempts it returns the mean.
func (d *draft) normal(mean, variance float64) float64 {
	for range 100 {
		if x := mean + math.Sqrt(variance)*d.rng.NormFloat64(); x >= mean/2 && x <= mean*3/2 {
			return x
		}
	}
	return mean
}

func (d *draft) between(low, high float64) float64 { return low + (high-low)*d.rng.Float64() }

// many adds n tasks of a kind with random runtimes and the same parents.
func (d *draft) many(n int, kind string, mean, variance float64, after ...int) (all []int) {
	for range n {
		all = append(all, d.add(kind, d.normal(mean, variance), after...))
	}
	return all
}

// montage: images are projected, overlapping pairs are compared, the differences are fitted, and all images are
// combined into a mosaic, which is shrunk to a picture. The shrunken mosaic has about 7.4 MB per degree, and the
// picture 8 to 30 % of that.
func montage(d *draft, n int) {
	images := int(math.Round(float64(n-6) / 6))
	for images*(images-1)/2 < n-6-2*images {
		images++
	}
	pairs := n - 6 - 2*images
	degrees := math.Sqrt(float64(images) / 50)
	projected := d.many(images, "mProjectPP", 13.59, 0.06)
	var differences []int
	for _, k := range d.rng.Perm(images * (images - 1) / 2)[:pairs] {
		i, j := pair(k)
		differences = append(differences, d.add("mDiffFit", d.normal(10.59, 0.01), projected[i], projected[j]))
	}
	fit := d.add("mConcatFit", 0.08*float64(pairs), differences...)
	model := d.add("mBgModel", d.normal(0.13, 0.01)*float64(pairs), fit)
	var corrected []int
	for _, p := range projected {
		corrected = append(corrected, d.add("mBackground", d.normal(10.74, 0.03), p, model))
	}
	table := d.add("mImgTbl", d.normal(0.37, 0.01)*float64(images), corrected...)
	mosaic := d.add("mAdd", d.normal(30.11, 0.05)*degrees*degrees, table)
	shrunk := d.add("mShrink", 12.21*degrees, mosaic)
	d.add("mJPEG", 7.4e6*degrees*d.between(0.08, 0.30)/d.normal(549291, 3.93e9), shrunk)
}

// pair returns the kth of the pairs (1, 0), (2, 0), (2, 1), (3, 0) …
func pair(k int) (i, j int) {
	i = 1
	for k >= i {
		k -= i
		i++
	}
	return i, k
}

// cyberShake: seismograms are made from a few extracted volumes, and peak values from each seismogram. Archives of the
// seismograms and of the peak values are compressed to 5 to 20 % of 24,000 and 216 bytes per item, respectively.
func cyberShake(d *draft, n int) {
	volumes := max(2, int(math.Round(d.between(0.5, 1.5)*0.0081*float64(n-2))))
	seismograms := (n - 2 - volumes) / 2
	extracted := d.many(volumes, "ExtractSGT", 137.45, 42681)
	var made, peaks []int
	for i := range seismograms {
		made = append(made, d.add("SeismogramSynthesis", d.normal(43.40, 984), extracted[i%volumes]))
	}
	for _, m := range made {
		peaks = append(peaks, d.add("PeakValCalcOkaya", d.normal(1.09, 3.71), m))
	}
	d.add("ZipSeis", 24000*float64(seismograms)*d.between(0.05, 0.20)/228180, made...)
	d.add("ZipPSA", 216*float64(seismograms)*d.between(0.05, 0.20)/2782, peaks...)
}

// epigenomics: lanes of reads are split; each part is filtered, converted twice, and mapped to the genome, which takes
// most of the time; maps are merged by lane, then all are indexed and piled up. The first conversion halves a part's
// size, the second reduces it to 0.8 of that, and a map is 0.23 of that size; the index is 1.3 % of the size of all
// maps.
func epigenomics(d *draft, n int) {
	lanes, parts := lanesOf(n, d.rng)
	genome := float64(int64(4)<<30) * d.between(0.75, 1.25)
	var merged []int
	bytes := 0.0
	for range lanes {
		lane := d.normal(3.51e8, 2.19e16)
		split := d.add("fastqSplit", lane/7.66e6)
		part := lane / float64(parts)
		var maps []int
		for range parts {
			filtered := d.add("filterContams", part/8.47e6, split)
			converted := d.add("sol2sanger", part/2/1.507e7, filtered)
			packed := d.add("fastq2bfq", part/2*0.8/6.80e6, converted)
			maps = append(maps, d.add("map", genome/d.normal(369551, 6.4e9), packed))
		}
		merged = append(merged, d.add("mapMerge", lane/2*0.8*0.23/2.27e6, maps...))
		bytes += lane / 2 * 0.8 * 0.23
	}
	if lanes > 1 {
		merged = []int{d.add("mapMerge", bytes/2.27e6, merged...)}
	}
	index := d.add("maqIndex", bytes*0.013/1.77e7, merged...)
	d.add("pileup", genome/881356, index)
}

// lanesOf returns the number of lanes and of parts per lane: a random one of the combinations closest to n tasks.
func lanesOf(n int, rng *rand.Rand) (lanes, parts int) {
	var best [][2]int
	least := n
	for lanes := 1; lanes <= max(1, n/4) && lanes <= 8; lanes++ {
		fixed := 2*lanes + 2 // splits and merges, index and pileup
		if lanes > 1 {
			fixed++
		}
		parts := (n - fixed) / (4 * lanes)
		missing := n - fixed - 4*lanes*parts
		if parts < 1 || missing > least {
			continue
		}
		if missing < least {
			best, least = nil, missing
		}
		best = append(best, [2]int{lanes, parts})
	}
	chosen := best[rng.IntN(len(best))]
	return chosen[0], chosen[1]
}

// ligo: template banks are made, and inspirals are searched for with them, which takes most of the time. Coincidences
// of several searches are bottlenecks, after which the same steps are repeated.
func ligo(d *draft, n int) {
	bottlenecks := max(1, int(math.Round(d.between(0.01, 0.05)*float64(n)/2))) // per half
	searches := (n - 2*bottlenecks) / 4
	bottlenecks = min(bottlenecks, searches)
	groups := make([][]int, bottlenecks)
	for i := range searches {
		bank := d.add("TmpltBank", d.normal(18.14, 0.18))
		found := d.add("Inspiral", d.normal(460.21, 297397), bank)
		groups[i%bottlenecks] = append(groups[i%bottlenecks], found)
	}
	for _, group := range groups {
		coincident := d.add("Thinca", d.normal(5.37, 0.06), group...)
		var again []int
		for range group {
			bank := d.add("TrigBank", d.normal(5.11, 0.1), coincident)
			again = append(again, d.add("Inspiral", d.normal(460.21, 297397), bank))
		}
		d.add("Thinca", d.normal(5.37, 0.06), again...)
	}
}

// sipht: independent searches for small RNAs, each of which compares one genome in several ways.
func sipht(d *draft, n int) {
	copies := max(1, int(math.Round(float64(n)/31)))
	for c := range copies {
		patsers := max(1, (n-12*copies)/copies)
		if c < (n-12*copies)%copies {
			patsers++
		}
		joined := d.add("Patser_concate", d.normal(0.08, 0.01), d.many(patsers, "Patser", 1.27, 0.11)...)
		found := slices.Concat(d.many(1, "Findterm", 1349.47, 635206), d.many(1, "RNAMotif", 36.42, 78),
			d.many(1, "Transterm", 55.78, 2356), d.many(1, "Blast", 2350.58, 1033834))
		srna := d.add("SRNA", d.normal(361.33, 117451), found...)
		parsed := d.add("FFN_parse", d.normal(1.64, 0.06), srna)
		last := []int{joined, srna, d.add("Blast_synteny", 33, srna, parsed)}
		last = append(last, d.many(1, "Blast_candidate", 5.18, 0.99, srna)...)
		last = append(last, d.many(1, "Blast_QRNA", 1412.09, 9702, srna)...)
		last = append(last, d.many(1, "Blast_paralogues", 4.99, 1.32, srna)...)
		d.add("SRNA_annotate", d.normal(1.68, 0.92), last...)
	}
}
