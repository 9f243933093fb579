package profile_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/workflow/profile"
)

// A published profile estimates a task of CyberShake: most tasks end earlier than the mean, and a few much later.
func Example() {
	p, _ := profile.FromLibrary("cybershake")
	x, _ := profile.NewEstimator(p, nil).Estimate(profile.Subject{Transformation: "SeisSynth"}, -1)
	fmt.Println("mean", x.Mean.Round(time.Second), "median", x.Quantile(0.5).Round(time.Second),
		"90 %", x.Quantile(0.9).Round(time.Second), "memory", x.MemoryBytes>>20, "MiB")
	// Output:
	// mean 1m19s median 59s 90 % 2m38s memory 2268 MiB
}

// A profile learns from two runs that a task takes 2 s for each MB of input, and reads its input three times.
func ExampleProfile_Add() {
	const mb = 1e6
	p := profile.New()
	for _, run := range []string{"monday", "tuesday"} {
		for i, input := range []float64{5, 10, 20, 40} {
			s := profile.Sample{Subject: profile.Subject{Transformation: "align"}, Run: run, ID: fmt.Sprint(i)}
			s.Values.Set(profile.Runtime, 2*input)
			s.Values.Set(profile.Input, input*mb)
			s.Values.Set(profile.Read, 3*input*mb)
			if err := p.Add(s); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	x, _ := profile.NewEstimator(p, nil).Estimate(profile.Subject{Transformation: "align"}, 30*mb)
	fmt.Println(x.Point, "by the model", x.Model, "from", x.Samples, "tasks")
	for _, f := range p.Findings() {
		fmt.Println(f.Transformation, f.Sentence)
	}
	// Output:
	// 1m0s by the model proportional from 8 tasks
	// align reads 3.0 × its input
}
