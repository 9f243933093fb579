package request

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// scaleIdle is the default time after which workers without work leave.
const scaleIdle = corral.Seconds(time.Minute)

// Scale returns the requested scale, without checks that depend on its sites and its cluster.
func Scale(in api.NewScale) (corral.Scale, error) {
	s := corral.Scale{
		Sites: in.Sites, Min: in.Min, Max: in.Max, CPUs: in.CPUs,
		Walltime: in.Walltime, Idle: cmp.Or(in.Idle, scaleIdle),
	}
	var k checker
	k.invalid(len(s.Sites) == 0, "sites", "missing")
	k.sites(s.Sites)
	k.invalid(s.Min > s.Max, "min_cpus", "%d is not between 0 and the maximum, %d", s.Min, s.Max)
	k.invalid(s.CPUs > s.Max, "cpus", "%d is not between 1 and the maximum, %d", s.CPUs, s.Max)
	return s, k.err
}
