package fork_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
)

// The benchmarks measure one Submit, one Poll of n running jobs, and one job from Submit to its end.

func BenchmarkForkSubmit(b *testing.B) {
	batch := fork.New(local.Conn{}, b.TempDir())
	for i := range b.N {
		spec := gridsite.JobSpec{Tag: fmt.Sprint("job-", i), Argv: []string{"/bin/true"}, Walltime: time.Hour}
		if _, err := batch.Submit(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		gridsitetest.Await(b, batch, spec.Tag)
		b.StartTimer()
	}
}

func BenchmarkForkPoll(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n, " running"), func(b *testing.B) {
			batch := fork.New(local.Conn{}, b.TempDir())
			var tags []string
			for i := range n {
				tags = append(tags, fmt.Sprint("job-", i))
				spec := gridsite.JobSpec{Tag: tags[i], Argv: []string{"/bin/sleep", "600"}}
				if _, err := batch.Submit(b.Context(), spec); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if jobs, err := batch.Poll(b.Context(), tags); err != nil || len(jobs) != n {
					b.Fatal(jobs, err)
				}
			}
			for _, tag := range tags {
				if err := batch.Cancel(b.Context(), tag, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
