//go:build sites

package slurm_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// TestPriceOfRealSlurm: the price follows from the billing weights of the partition that the site uses, and from
// PriorityFlags.
func TestPriceOfRealSlurm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of    string
		lines []string
	}{
		{"sum", nil},
		{"max", []string{"PriorityType=priority/multifactor", "PriorityFlags=MAX_TRES"}},
	} {
		cluster, err := gridsitetest.StartSlurm([]string{"NODES=1", "ACCOUNTING=1"}, append(c.lines, "GresTypes=gpu",
			"AccountingStorageTRES=gres/gpu",
			"PartitionName=dear Nodes=ALL TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=2.0")...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cluster.Stop(); err != nil {
				t.Error(err)
			}
		})
		site := slurm.New(cluster.On(local.Conn{}), "/tmp/nowhere/site")
		for queue, want := range map[string]string{"": "", "dear": "1ch/" + c.of + "(cpu=1,mem=0.25,gpu=2)-hour"} {
			facts, err := site.Survey(t.Context(), corral.BatchOptions{Queue: queue})
			if err != nil || facts.Price != want || len(facts.Notes) > 0 {
				t.Errorf("%s, queue %q: price %q, notes %q, %v; want %q", c.of, queue, facts.Price, facts.Notes, err, want)
			}
		}
	}
}
