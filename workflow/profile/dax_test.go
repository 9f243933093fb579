package profile_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
	"github.com/corral-pilot/corral/workflow/profile"
)

// F68, on DAX: workflows in the generator's dialect with the tasks of the thesis's tables, which have the tables' means
// and standard deviations, yield profiles that equal these tables, and from which the lines of table 5.2 can be
// computed. The 10,429 tasks of Montage and the 815,823 tasks of CyberShake are left to the long tests.
func TestThesisTablesFromDAX(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"broadband", "epigenomics", "ligo", "sipht"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkTableFromDAX(t, name)
		})
	}
}

func checkTableFromDAX(t *testing.T, name string) {
	table, ok := profile.FromLibrary(name)
	if !ok {
		t.Fatalf("%s is not in the library", name)
	}
	flow, _, err := formats.Read(t.Context(), strings.NewReader(daxOf(table)), name+".dax", workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := of(t, profile.Samples(flow, name))
	classes := got.Classes()
	if len(classes) != len(table.Classes()) {
		t.Fatalf("%d classes, want %d", len(classes), len(table.Classes()))
	}
	for i, want := range table.Classes() {
		c := classes[i]
		if c.Transformation != want.Transformation || c.Count() != want.Count() {
			t.Fatalf("%d of %s, want %d of %s", c.Count(), c.Transformation, want.Count(), want.Transformation)
		}
		for _, x := range []struct {
			what      string
			got, want float64
			off       float64 // tolerance: sizes are whole bytes
		}{
			{"mean", c.Stat(profile.Runtime).Mean, want.Stat(profile.Runtime).Mean, 1e-6},
			{"sd", c.Stat(profile.Runtime).SD, want.Stat(profile.Runtime).SD, 1e-6},
			{"read", c.Stat(profile.Read).Mean, want.Stat(profile.Read).Mean, 0.5},
			{"written", c.Stat(profile.Written).Mean, want.Stat(profile.Written).Mean, 0.5},
		} {
			if math.Abs(x.got-x.want) > x.off+1e-6*x.want {
				t.Errorf("%s: %s is %v, want %v", c.Transformation, x.what, x.got, x.want)
			}
		}
	}
	sum, _ := recomputed(got)
	line, _ := recomputed(table)
	for _, x := range [][2]float64{{sum.hours, line.hours}, {sum.readGB, line.readGB}, {sum.writtenGB, line.writtenGB}} {
		if math.Abs(x[0]-x[1]) > 0.001*x[1] {
			t.Errorf("the totals are %+v, want those of the table, %+v", sum, line)
		}
	}
	if sum.tasks != printed[name].tasks {
		t.Errorf("%d tasks, want %d", sum.tasks, printed[name].tasks)
	}
}

// daxOf returns a workflow with the tasks of a table. The runtimes of each transformation have two values, with the
// mean and standard deviation in the table; each task reads and writes the mean number of bytes in the table.
func daxOf(table *profile.Profile) string {
	var b strings.Builder
	b.WriteString(`<adag version="2.1" name="thesis">` + "\n")
	for k, c := range table.Classes() {
		n, runtime := int(c.Count()), c.Stat(profile.Runtime)
		for i := range n {
			fmt.Fprintf(&b, `<job id="ID%d.%d" name="%s" runtime="%.9f">`, k, i, c.Transformation, spread(runtime.Mean, runtime.SD, i, n))
			for link, m := range map[string]profile.Metric{"input": profile.Read, "output": profile.Written} {
				if bytes := math.Round(c.Stat(m).Mean); bytes > 0 {
					fmt.Fprintf(&b, `<uses file="%s.%d.%d" link="%s" size="%.0f"/>`, link, k, i, link, bytes)
				}
			}
			b.WriteString("</job>\n")
		}
	}
	b.WriteString("</adag>\n")
	return b.String()
}

// spread returns element i of n non-negative numbers that have two different values, and the given mean and sample
// standard deviation.
func spread(mean, sd float64, i, n int) float64 {
	if n < 2 || sd == 0 {
		return mean
	}
	sigma := sd * math.Sqrt(float64(n-1)/float64(n))
	ratio := mean / sigma * (mean / sigma)                     // maximum of share ÷ (1 − share)
	above := max(1, min(n/2, int(float64(n)*ratio/(1+ratio)))) // of n
	share := float64(above) / float64(n)
	if i < above {
		return mean + sigma*math.Sqrt((1-share)/share)
	}
	return mean - sigma*math.Sqrt(share/(1-share))
}
