//go:build sites

package selection_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/bench/selection"
	"github.com/corral-pilot/corral/internal/kit/programs"
)

// drawn generates capabilities and requirements with few types, attributes and values, so that many pairs match and
// many do not.
type drawn struct{ *rand.Rand }

func (d drawn) consumable(kind string) selection.Consumable {
	values := []selection.Value{selection.Text("a"), selection.Text("A"), selection.Text("1"), selection.Text(`q"\x`),
		selection.Number(1), selection.Number(2.5)}
	c := selection.Consumable{Type: kind, Form: map[string][]selection.Value{}}
	for _, attribute := range []string{"isa", "simd"} {
		if d.IntN(2) == 0 {
			for range d.IntN(4) {
				c.Form[attribute] = append(c.Form[attribute], values[d.IntN(len(values))])
			}
			if c.Form[attribute] == nil {
				c.Form[attribute] = []selection.Value{}
			}
		}
	}
	return c
}

// HTCondor's evaluation of the generated expressions agrees with package selection for ten thousand pairs: the same
// pairs are viable, and the rank is the negative cost.
func TestHTCondorAgrees(t *testing.T) {
	t.Parallel()
	d := drawn{rand.New(rand.NewPCG(1, 15))}
	const pairs = 10_000
	kinds := []string{"compute", "bytes"}
	var file bytes.Buffer
	var viable [pairs]bool
	var cost [pairs]float64
	for i := range pairs {
		var machine []selection.Capability
		var job []selection.Requirement
		for _, kind := range kinds {
			if d.IntN(4) > 0 {
				machine = append(machine, selection.Capability{Consumable: d.consumable(kind), Rate: math.Exp(20 * d.Float64())})
			}
			if d.IntN(3) > 0 {
				job = append(job, selection.Requirement{Consumable: d.consumable(kind), Amount: math.Exp(20 * d.Float64())})
			}
		}
		items, err := selection.Bill(machine, job)
		viable[i], cost[i] = err == nil, selection.Cost(items)
		lines, err := selection.Machine(machine)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&file, "MyType = \"Machine\"\nName = \"m%d\"\n", i)
		for _, l := range lines {
			fmt.Fprintf(&file, "%s = %s\n", l.Name, l.Value)
		}
		requirements, rank, err := selection.Job(job)
		if err != nil {
			t.Fatal(err)
		}
		own := strings.NewReplacer("TARGET.", "MY.") // the job's expressions are evaluated in the machine's ad
		fmt.Fprintf(&file, "Wanted = %s\nAffinity = %s\n\n", own.Replace(requirements), own.Replace(rank))
	}
	name := filepath.Join(t.TempDir(), "ads")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := programs.HTCondor()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(release, "bin", "condor_status"), "-ads", name, "-af", "Name", "Wanted", "Affinity")
	cmd.Env = append(os.Environ(), "CONDOR_CONFIG=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("condor_status: %v", err)
	}
	seen, matched := 0, 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		i, err := strconv.Atoi(strings.TrimPrefix(f[0], "m"))
		if err != nil || len(f) != 3 {
			t.Fatalf("condor_status said %q", line)
		}
		seen++
		if (f[1] == "true") != viable[i] {
			t.Errorf("pair %d: HTCondor says %s, and it is viable: %t", i, f[1], viable[i])
		}
		if !viable[i] {
			continue
		}
		matched++
		if rank, err := strconv.ParseFloat(f[2], 64); err != nil || math.Abs(rank+cost[i]) > 1e-5*cost[i] {
			t.Errorf("pair %d: a rank of %s, and it costs %v", i, f[2], cost[i])
		}
	}
	if seen != pairs || matched < pairs/10 {
		t.Errorf("%d pairs were seen, of which %d match", seen, matched)
	}
}
