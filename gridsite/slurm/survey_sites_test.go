//go:build sites

package slurm_test

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// The answers of the real Slurm are parsed completely, for every version with which the tests run.
func TestSurveyOfRealSlurm(t *testing.T) {
	t.Parallel()
	cluster := startSlurm(t)
	facts, err := slurm.New(cluster.On(local.Conn{}), "/tmp/nowhere/site").Survey(t.Context(), corral.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(facts.Batch, "slurm 2") || facts.FreeMiB == 0 || len(facts.Notes) > 0 {
		t.Errorf("Survey() = %+v", facts)
	}
	// Partitions that other tests create and delete meanwhile are ignored.
	configured := map[string]bool{"normal": true, "short": false, "closed": false, "urgent": false, "held": false}
	for _, q := range facts.Queues {
		byDefault, ours := configured[q.Name]
		if !ours {
			continue
		}
		if q.Nodes == 0 || q.CPUs != 2 || q.MemoryMiB == 0 || q.CPUMemoryMiB == 0 || q.Default != byDefault {
			t.Errorf("queue %+v; want nodes of 2 cpus, default: %t", q, byDefault)
		}
		delete(configured, q.Name)
	}
	if len(configured) > 0 {
		t.Errorf("queues %+v; want also %v", facts.Queues, configured)
	}
}
