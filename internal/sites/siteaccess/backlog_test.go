package siteaccess

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// TestShapesThatAreRefusedHaveNoForecast: the waits of the other shapes are known, unless the site is lost.
func TestShapesThatAreRefusedHaveNoForecast(t *testing.T) {
	t.Parallel()
	refused := &gridsite.Refused{Text: "too many nodes"}
	lost := corral.Errorf(corral.Unavailable, "no answer")
	for name, c := range map[string]struct {
		answers map[int]error // by the number of hosts
		known   []int
		err     error
	}{
		"all are known":       {nil, []int{1, 2, 3}, nil},
		"one is refused":      {map[int]error{2: refused}, []int{1, 3}, nil},
		"all are refused":     {map[int]error{1: refused, 2: refused, 3: refused}, nil, refused},
		"the site is lost":    {map[int]error{2: lost}, []int{1}, nil},
		"the site was lost":   {map[int]error{1: lost}, nil, lost},
		"one has no forecast": {map[int]error{1: corral.Errorf(corral.Unsatisfiable, "none")}, []int{2, 3}, nil},
	} {
		shapes := []corral.Shape{{Hosts: 1}, {Hosts: 2}, {Hosts: 3}}
		known, waits, err := foretold(shapes, func(s corral.Shape) (time.Duration, error) {
			return time.Duration(s.Hosts) * time.Minute, c.answers[s.Hosts]
		})
		var hosts []int
		for i, s := range known {
			hosts = append(hosts, s.Hosts)
			if want := corral.Seconds(s.Hosts) * corral.Seconds(time.Minute); waits[i] != want {
				t.Errorf("%s: %d hosts wait %s, want %s", name, s.Hosts, waits[i], want)
			}
		}
		if diff := cmp.Diff(c.known, hosts); diff != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v (-want +got):\n%s", name, err, c.err, diff)
		}
	}
}
