package nodecheck

import (
	"slices"
	"testing"
)

func TestGPUsAreThoseOfTheJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what  string
		env   map[string]string
		asked int
		want  []string
	}{
		{"none were asked for, none are named", nil, 0, nil},
		{"named by CUDA", map[string]string{"CUDA_VISIBLE_DEVICES": "2, 3"}, 0, []string{"2", "3"}},
		{"by their own names", map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-8f2a-01,MIG-7"}, 2,
			[]string{"GPU-8f2a-01", "MIG-7"}},
		{"more are visible than were asked for", map[string]string{"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 2,
			[]string{"0", "1"}},
		{"hidden by CUDA's rule", map[string]string{"CUDA_VISIBLE_DEVICES": "-1"}, 0, nil},
		{"Slurm gives none", map[string]string{"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0, nil},
		{"a range of Slurm's", map[string]string{"SLURM_JOB_GPUS": "1-2,7"}, 3, []string{"1", "2", "7"}},
		{"the step has fewer than the job", map[string]string{"SLURM_STEP_GPUS": "1", "SLURM_JOB_GPUS": "0,1"}, 1,
			[]string{"1"}},
		{"asked for, and not named", nil, 2, []string{"0", "1"}},
	} {
		if got := GPUs(func(name string) string { return tt.env[name] }, tt.asked); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

func TestWorkersOfOneNodeShareItsGPUsWithoutOverlap(t *testing.T) {
	t.Parallel()
	names := []string{"0", "1", "2", "3", "4"}
	for n := 1; n <= 7; n++ {
		var all []string
		for i := range n {
			share := Share(names, i, n)
			if low := len(names) / n; len(share) < low || len(share) > low+1 {
				t.Errorf("of %d, number %d gets %d", n, i, len(share))
			}
			all = append(all, share...)
		}
		if !slices.Equal(all, names) {
			t.Errorf("shared by %d: %q", n, all)
		}
	}
}
