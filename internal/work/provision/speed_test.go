package provision_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/profile"
)

// ranAt returns a profile of tasks called split that each took the given number of seconds at sites: five tasks at the
// first site, three at others.
func ranAt(t *testing.T, seconds map[string]float64, most string) *profile.Profile {
	t.Helper()
	p := profile.New()
	for site, took := range seconds {
		tasks := 3
		if site == most {
			tasks = 5
		}
		for i := range tasks {
			s := profile.Sample{Subject: profile.Subject{Transformation: "split", Level: profile.AllLevels,
				Host: profile.SiteHosts(site)}, Run: "r", ID: fmt.Sprint(site, i)}
			s.Values.Set(profile.Runtime, took)
			if err := p.Add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// TestPace: the runtimes of a problem are for the fastest hosts, and each site specifies how much slower its hosts are.
func TestPace(t *testing.T) {
	t.Parallel()
	const reference = 30 * time.Second // estimate of the tasks at the site where most of them ran
	for _, c := range []struct {
		name    string
		took    map[string]float64
		most    string
		sites   []string
		runtime time.Duration
		speeds  []corral.Speed
		said    []string
	}{
		{"a slower site", map[string]float64{"fast": 10, "slow": 15}, "fast", []string{"fast", "slow"}, reference,
			[]corral.Speed{0, 0.667}, []string{"at site slow tasks are assumed to need 1.50 × their estimates, as learned " +
				"from 1 kind that ran elsewhere, too"}},
		{"a faster site", map[string]float64{"fast": 10, "slow": 15}, "slow", []string{"fast", "slow"}, reference * 2 / 3,
			[]corral.Speed{0, 0.667}, []string{"at site fast tasks are assumed to need 0.67 × their estimates, as learned " +
				"from 1 kind that ran elsewhere, too"}},
		{"the slow one alone", map[string]float64{"fast": 10, "slow": 15}, "fast", []string{"slow"}, reference * 3 / 2,
			[]corral.Speed{0}, []string{"at site slow tasks are assumed to need 1.50 × their estimates, as learned from " +
				"1 kind that ran elsewhere, too"}},
		{"a site of which nothing is known", map[string]float64{"fast": 10, "slow": 20}, "slow", []string{"new", "fast"},
			reference / 2, []corral.Speed{0.5, 0}, []string{"at site fast tasks are assumed to need 0.50 × their estimates, " +
				"as learned from 1 kind that ran elsewhere, too"}},
		{"the fast one alone", map[string]float64{"fast": 10, "slow": 15}, "fast", []string{"fast"}, reference,
			[]corral.Speed{0}, nil},
		{"as fast as chance has it", map[string]float64{"a": 10, "b": 10.5}, "a", []string{"a", "b"}, reference,
			[]corral.Speed{0, 0}, nil},
		{"other sites", map[string]float64{"a": 10, "b": 20}, "a", []string{"c"}, reference, []corral.Speed{0}, nil},
	} {
		x := provision.Experience{Earlier: ranAt(t, c.took, c.most)}
		problem := plan.Problem{Work: plan.Work{Tasks: []plan.Task{{ID: "t", Runtime: reference}}}}
		for _, name := range c.sites {
			problem.Sites = append(problem.Sites, plan.Site{Name: name})
		}
		said := provision.Pace(&problem, provision.Speeds(x, c.sites))
		if diff := cmp.Diff(c.said, said); diff != "" {
			t.Errorf("%s: reasons %s", c.name, diff)
		}
		if got := problem.Work.Tasks[0].Runtime; got != c.runtime {
			t.Errorf("%s: the task takes %s, want %s", c.name, got, c.runtime)
		}
		for i, s := range problem.Sites {
			if diff := float64(s.Speed - c.speeds[i]); diff > 0.001 || diff < -0.001 {
				t.Errorf("%s: site %s has speed %g, want %g", c.name, s.Name, s.Speed, c.speeds[i])
			}
		}
	}
}

// TestPaceOfPresentWorkers: present workers also count with the speed of their sites.
func TestPaceOfPresentWorkers(t *testing.T) {
	t.Parallel()
	x := provision.Experience{Given: ranAt(t, map[string]float64{"fast": 10, "slow": 20}, "slow")}
	problem := plan.Problem{Work: plan.Work{Tasks: []plan.Task{{ID: "t", Runtime: time.Minute}}},
		Sites: []plan.Site{{Name: "slow"}}, Present: []plan.Present{{Site: "fast", Host: corral.Resources{CPUs: 1}}}}
	provision.Pace(&problem, provision.Speeds(x, []string{"slow", "fast"}))
	slow := problem.Sites[0].Speed.Takes(problem.Work.Tasks[0].Runtime)
	if slow != time.Minute || problem.Present[0].Speed != 0 || problem.Work.Tasks[0].Runtime != 30*time.Second {
		t.Errorf("%+v, want the site at half the speed of what is there", problem)
	}
}

// TestEstimatesAtTheReference: measurements on slow hosts do not make the fast hosts slower.
func TestEstimatesAtTheReference(t *testing.T) {
	t.Parallel()
	x := provision.Experience{Given: ranAt(t, map[string]float64{"fast": 10, "slow": 20}, "fast"), Fallback: time.Second}
	x.Speeds = provision.Speeds(x, []string{"fast"})
	work, _, err := provision.Work(diamond(t), x)
	if err != nil || work.Tasks[0].Kind != "split" || work.Tasks[0].Runtime != 10*time.Second {
		t.Errorf("%+v, %v; want split to take 10s", work.Tasks, err)
	}
}
