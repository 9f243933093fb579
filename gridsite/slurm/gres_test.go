package slurm

import "testing"

// Types of gpus may be numbers, and a node may have several.
func TestSlurmGPUTypes(t *testing.T) {
	t.Parallel()
	for gres, want := range map[string]int{
		"gpu:3090:4":                 4,
		"gpu:3090:4(S:0-1),nvme:1":   4,
		"gpu:a100:4,gpu:v100:2":      6,
		"gpu:4090:1,gpu:a100_3g:2,x": 3,
		"gpu,gpu:2":                  3,
		"gpumem:80,craynetwork:4":    0,
	} {
		if got := gpus(gres); got != want {
			t.Errorf("gpus(%q) = %d, want %d", gres, got, want)
		}
	}
}
