package condorpool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

func TestIdleJobsAreCountedByWhatTheyNeed(t *testing.T) {
	t.Parallel()
	big := classad.Ad{"RequestCpus": int64(4), "RequestMemory": int64(2000), "RequestGPUs": int64(1),
		"RequestDisk": int64(3 << 10), "CorralRuntime": 90.0, "JobPrio": int64(7)}
	plain := classad.Ad{"RequestCpus": int64(1), "RequestMemory": classad.Expr("MemoryUsage")}
	got := classes([]classad.Ad{plain, big, plain, big, big})
	want := []matching.Class{
		{Needs: matching.Resources{
			Resources: corral.Resources{CPUs: 4, MemoryMiB: 2000, GPUs: 1, DiskMiB: 3}, Time: 90 * time.Second,
		}, Jobs: 3},
		{Needs: matching.Resources{Resources: corral.Resources{CPUs: 1}}, Jobs: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
