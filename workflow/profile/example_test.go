package profile_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/workflow/profile"
)

// A published profile estimates a task of CyberShake: most tasks end earlier than the mean, and a few much later.
func Example() {
	p, _ := profile.FromLibrary("cybershake")
	x, _ := profile.NewEstimator(p, nil).Estimate(profile.Task{Transformation: "SeisSynth"}, -1)
	fmt.Println("mean", x.Mean.Round(time.Second), "median", x.Quantile(0.5).Round(time.Second),
		"90 %", x.Quantile(0.9).Round(time.Second), "memory", x.MemoryBytes>>20, "MiB")
	// Output:
	// mean 1m19s median 59s 90 % 2m38s memory 2268 MiB
}
