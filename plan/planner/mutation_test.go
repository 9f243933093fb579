package planner

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
)

const (
	second = corral.Seconds(time.Second)
	tick   = corral.Seconds(time.Millisecond)
)

// A mutation breaks a valid plan, or tightens its problem, in one way. apply returns false if the mutation is not
// applicable.
type mutation struct {
	name  string
	rules []string // rules that may be the first to detect it
	apply func(rng *rand.Rand, problem *plan.Problem, p *plan.Plan) bool
}

func onPilot(change func(s *plan.Site, q *plan.Pilot) bool) func(*rand.Rand, *plan.Problem, *plan.Plan) bool {
	return func(rng *rand.Rand, problem *plan.Problem, p *plan.Plan) bool {
		q := &p.Pilots[rng.IntN(len(p.Pilots))]
		i := slices.IndexFunc(problem.Sites, func(s plan.Site) bool { return s.Name == q.Site })
		return change(&problem.Sites[i], q)
	}
}

func onTask(change func(problem *plan.Problem, p *plan.Plan, at *plan.Placement) bool) func(*rand.Rand, *plan.Problem,
	*plan.Plan) bool {
	return func(rng *rand.Rand, problem *plan.Problem, p *plan.Plan) bool {
		return change(problem, p, &p.Schedule[rng.IntN(len(p.Schedule))])
	}
}

func always(change func(problem *plan.Problem, p *plan.Plan)) func(*rand.Rand, *plan.Problem, *plan.Plan) bool {
	return func(_ *rand.Rand, problem *plan.Problem, p *plan.Plan) bool { change(problem, p); return true }
}

// crowd adds to a task's needs so that its host lacks one unit of a resource at that time.
func crowd(grow func(needs *corral.Resources, host corral.Resources)) func(*rand.Rand, *plan.Problem, *plan.Plan) bool {
	return onTask(func(problem *plan.Problem, p *plan.Plan, at *plan.Placement) bool {
		problem.Work.Tasks = slices.Clone(problem.Work.Tasks)
		q := p.Pilots[at.Pilot]
		i := slices.IndexFunc(problem.Sites, func(s plan.Site) bool { return s.Name == q.Site })
		host := q.Host()
		host.DiskMiB = problem.Sites[i].Host.DiskMiB
		grow(&problem.Work.Tasks[at.Task].Needs, host)
		return at.End > at.Start
	})
}

var mutations = []mutation{
	{"an unknown site", []string{"site"}, onPilot(func(_ *plan.Site,
		q *plan.Pilot) bool {
		q.Site = "elsewhere"
		return true
	})},
	{"an unknown queue", []string{"site"}, onPilot(func(_ *plan.Site,
		q *plan.Pilot) bool {
		q.Queue = "none"
		return true
	})},
	{"no hosts", []string{"shape"}, onPilot(func(_ *plan.Site, q *plan.Pilot) bool { q.Hosts = 0; return true })},
	{"no cpus", []string{"shape"}, onPilot(func(_ *plan.Site, q *plan.Pilot) bool { q.CPUs = 0; return true })},
	{"a host too many", []string{"hosts"}, onPilot(func(s *plan.Site,
		q *plan.Pilot) bool {
		q.Hosts = s.Hosts + 1
		return true
	})},
	{"a cpu more than a host has", []string{"host"}, onPilot(func(s *plan.Site,
		q *plan.Pilot) bool {
		q.CPUs = s.Host.CPUs + 1
		return true
	})},
	{"a MiB more than a host has", []string{"host"}, onPilot(func(s *plan.Site,
		q *plan.Pilot) bool {
		q.MemoryMiB = s.Host.MemoryMiB + 1
		return true
	})},
	{"a gpu more than a host has", []string{"host"}, onPilot(func(s *plan.Site,
		q *plan.Pilot) bool {
		q.GPUs = s.Host.GPUs + 1
		return true
	})},
	{"asked for before the beginning", []string{"submit"}, onPilot(func(_ *plan.Site,
		q *plan.Pilot) bool {
		q.Submit = -tick
		return true
	})},
	{"a wait too short", []string{"wait"}, onPilot(func(_ *plan.Site,
		q *plan.Pilot) bool {
		q.Submit = q.Start + tick
		return true
	})},
	{"ready too soon", []string{"overhead"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		q.Ready = q.Start + corral.Seconds(s.Overhead) - tick
		return true
	})},
	{"gone when its last task ends", []string{"released"}, func(_ *rand.Rand, problem *plan.Problem,
		p *plan.Plan) bool {
		for _, at := range p.Schedule {
			q := &p.Pilots[at.Pilot]
			leave := corral.Seconds(problem.Cluster.Leave)
			if leave > 0 && at.End == q.End-leave {
				q.End = at.End
				return true
			}
		}
		return false
	}},
	{"released before it is ready", []string{"end"}, onPilot(func(_ *plan.Site,
		q *plan.Pilot) bool {
		q.End = q.Ready - tick
		return true
	})},
	{"in the place of a later one", []string{"follows"}, func(rng *rand.Rand, _ *plan.Problem, p *plan.Plan) bool {
		i := rng.IntN(len(p.Pilots))
		p.Pilots[i].Follows = &i
		return true
	}},
	{"in the place of one that is not there then", []string{"follows"}, func(rng *rand.Rand, _ *plan.Problem,
		p *plan.Plan) bool {
		first, i := 0, rng.IntN(len(p.Pilots))
		q, before := &p.Pilots[i], p.Pilots[0]
		fits := q.Submit >= before.Start && q.Start <= before.End
		if i == 0 || q.Follows != nil || fits {
			return false
		}
		q.Follows = &first
		return true
	}},
	{"a second over the site's walltime", []string{"site walltime"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		q.Walltime = corral.Seconds(s.Walltime) + second
		s.Wait = func(plan.Shape) time.Duration { return 0 }
		return true
	})},
	{"held longer than its walltime", []string{"walltime"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		q.Walltime = (q.End - q.Start) / 2
		s.Wait = func(plan.Shape) time.Duration { return 0 }
		return true
	})},
	{"held during a maintenance", []string{"maintenance"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		s.Closed = []plan.Span{{From: time.Duration(q.Start), To: time.Duration(q.Start + tick)}}
		return q.End > q.Start
	})},
	{"a cpu more than a site gives", []string{"site cpus"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		s.CPUs = q.HeldCPUs() - 1
		return q.End > q.Start
	})},
	{"a cpu more than the nodes have", []string{"nodes"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		s.Nodes = []corral.NodeType{{Count: 1, Resources: s.Host}}
		s.Nodes[0].CPUs = q.HeldCPUs() - 1
		return q.End > q.Start
	})},
	{"a MiB more than the nodes have", []string{"nodes"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		s.Nodes = []corral.NodeType{{Count: q.Hosts, Resources: q.Host()}}
		s.Nodes[0].MemoryMiB--
		return q.End > q.Start
	})},
	{"a whole node less than its hosts", []string{"nodes"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		s.Nodes = []corral.NodeType{{Count: q.Hosts - 1, Resources: s.Host, Whole: true}}
		s.Nodes[0].CPUs = q.HeldCPUs()
		return q.End > q.Start
	})},
	{"a pilot more than a site takes", []string{"site pilots"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		s.Pilots = 0
		return q.End > q.Submit
	})},
	{"more than the allocation", []string{"allocation"}, onPilot(func(s *plan.Site, q *plan.Pilot) bool {
		none := cost.Money(-1)
		s.Left = &none
		return true
	})},
	{"a task of another workflow", []string{"task"}, onTask(func(problem *plan.Problem, _ *plan.Plan,
		at *plan.Placement) bool {
		at.Task = len(problem.Work.Tasks)
		return true
	})},
	{"a task twice", []string{"once"}, onTask(func(_ *plan.Problem, p *plan.Plan, at *plan.Placement) bool {
		p.Schedule = append(p.Schedule, *at)
		return true
	})},
	{"the schedule of another plan", []string{"schedule digest"}, always(func(_ *plan.Problem, p *plan.Plan) {
		p.Apart = &plan.Apart{Tasks: len(p.Schedule), Digest: "sha256:0"}
	})},
	{"a task missing", []string{"all"}, always(func(_ *plan.Problem, p *plan.Plan) { p.Schedule = p.Schedule[1:] })},
	{"a pilot that is not there", []string{"pilot"}, onTask(func(_ *plan.Problem, p *plan.Plan,
		at *plan.Placement) bool {
		at.Pilot = len(p.Pilots)
		return true
	})},
	{"a host that is not there", []string{"pilot host"}, onTask(func(_ *plan.Problem, p *plan.Plan,
		at *plan.Placement) bool {
		at.Host = p.Pilots[at.Pilot].Hosts
		return true
	})},
	{"a task cut short", []string{"runtime"}, onTask(func(_ *plan.Problem, _ *plan.Plan,
		at *plan.Placement) bool {
		at.End -= tick
		return true
	})},
	{"files that travel too fast", []string{"transfer"}, onTask(func(_ *plan.Problem, _ *plan.Plan,
		at *plan.Placement) bool {
		at.End, at.Transfer = at.End-tick, at.Transfer-tick
		return at.Transfer >= 0
	})},
	{"files that travel and are computed on", []string{"runtime"}, onTask(func(_ *plan.Problem, _ *plan.Plan,
		at *plan.Placement) bool {
		at.Transfer += tick
		return true
	})},
	{"files larger than planned", []string{"transfer"}, onTask(func(problem *plan.Problem, p *plan.Plan,
		at *plan.Placement) bool {
		problem.Work.Tasks = slices.Clone(problem.Work.Tasks)
		t := &problem.Work.Tasks[at.Task]
		q := p.Pilots[at.Pilot]
		i := slices.IndexFunc(problem.Sites, func(s plan.Site) bool { return s.Name == q.Site })
		t.Bytes += int64(problem.Sites[i].Transfer.Bandwidth)
		return problem.Sites[i].Transfer.Bandwidth >= 1
	})},
	{"a task before its pilot is ready", []string{"ready"}, onTask(func(_ *plan.Problem, p *plan.Plan,
		at *plan.Placement) bool {
		d := at.Start - p.Pilots[at.Pilot].Ready + tick
		at.Start, at.End = at.Start-d, at.End-d
		return true
	})},
	{"a task after its pilot's release", []string{"released"}, onTask(func(_ *plan.Problem, p *plan.Plan,
		at *plan.Placement) bool {
		d := p.Pilots[at.Pilot].End - at.End + tick
		at.Start, at.End = at.Start+d, at.End+d
		return true
	})},
	{"a cpu too many on a host", []string{"cpus"}, crowd(func(n *corral.Resources,
		host corral.Resources) {
		n.CPUs = host.CPUs + 1
	})},
	{"a MiB too many on a host", []string{"memory"}, crowd(func(n *corral.Resources,
		host corral.Resources) {
		n.MemoryMiB = host.MemoryMiB + 1
	})},
	{"a gpu too many on a host", []string{"gpus"}, crowd(func(n *corral.Resources,
		host corral.Resources) {
		n.GPUs = host.GPUs + 1
	})},
	{"a MiB of disk too many on a host", []string{"disk"}, crowd(func(n *corral.Resources,
		host corral.Resources) {
		n.DiskMiB = host.DiskMiB + 1
	})},
	{"a task before its parent", []string{"precedence", "cpus", "memory", "gpus", "disk", "released", "ready"},
		func(rng *rand.Rand, problem *plan.Problem, p *plan.Plan) bool {
			i := rng.IntN(len(p.Schedule))
			parents := problem.Work.Graph.Parents(p.Schedule[i].Task)
			if len(parents) == 0 {
				return false
			}
			d := p.Schedule[i].Start - p.Schedule[parents[0]].End - corral.Seconds(problem.Cluster.Hop) + tick
			p.Schedule[i].Start -= d
			p.Schedule[i].End -= d
			return true
		}},
	{"another makespan", []string{"makespan"}, always(func(_ *plan.Problem, p *plan.Plan) { p.Makespan -= tick })},
	{"a cpu less at its peak", []string{"peak"}, always(func(_ *plan.Problem, p *plan.Plan) { p.PeakCPUs-- })},
	{"fewer core-hours", []string{"core-hours"}, always(func(_ *plan.Problem, p *plan.Plan) { p.CoreHours -= 0.001 })},
	{"fewer billed", []string{"billed"}, always(func(_ *plan.Problem, p *plan.Plan) { p.Billed -= 0.001 })},
	{"a lower cost", []string{"cost"}, always(func(_ *plan.Problem, p *plan.Plan) { p.Cost.Money-- })},
	{"less waste", []string{"waste"}, func(_ *rand.Rand, _ *plan.Problem,
		p *plan.Plan) bool {
		p.Waste -= 0.001
		return p.CoreHours > 0
	}},
	{"past the deadline", []string{"deadline"}, func(_ *rand.Rand, _ *plan.Problem, p *plan.Plan) bool {
		p.Goal.Deadline = p.Makespan - tick
		return p.Goal.Deadline > 0
	}},
	{"over the budget", []string{"budget"}, always(func(_ *plan.Problem, p *plan.Plan) {
		less := p.Cost
		less.Money--
		p.Goal.Budget = &less
	})},
	{"more cpus than asked for", []string{"max cpus"}, func(_ *rand.Rand, _ *plan.Problem, p *plan.Plan) bool {
		p.Goal.MaxCPUs = p.PeakCPUs - 1
		return p.PeakCPUs > 1
	}},
	{"present cpus beside the most", []string{"max cpus"}, always(func(problem *plan.Problem, p *plan.Plan) {
		problem.Present = append(problem.Present, plan.Present{Hosts: 1, Host: corral.Resources{CPUs: 1},
			End: plan.Unbounded})
		p.Goal.MaxCPUs = p.PeakCPUs
	})},
	{"more pilots than asked for", []string{"max pilots"}, func(_ *rand.Rand, _ *plan.Problem, p *plan.Plan) bool {
		p.Goal.MaxPilots = len(p.Pilots) - 1
		return len(p.Pilots) > 1
	}},
	{"a pilot too early", []string{"not before"}, always(func(_ *plan.Problem, p *plan.Plan) {
		p.Goal.NotBefore = p.Pilots[0].Submit + tick
	})},
	{"a pilot that leaves before the end", []string{"static"}, func(_ *rand.Rand, _ *plan.Problem, p *plan.Plan) bool {
		p.Goal.Static = true
		return slices.ContainsFunc(p.Pilots, func(q plan.Pilot) bool { return q.End < p.Makespan })
	}},
}

// TestBrokenPlansAreRefused: each mutation is detected by the rule that it names. The soak test breaks a thousand
// plans.
func TestBrokenPlansAreRefused(t *testing.T) { breakPlans(t, 400) }

// breakPlans breaks the given number of plans in turn, each in one way.
func breakPlans(t *testing.T, plans int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	applied := map[string]int{}
	for n := range plans {
		problem, pl := feasible(t, rng, 40)
		m := mutations[n%len(mutations)]
		text, err := json.Marshal(pl.Pilots)
		if err != nil {
			t.Fatal(err)
		}
		if !m.apply(rng, &problem, pl) {
			continue
		}
		var b *validator.Breach
		if err := validator.Check(problem, pl); !errors.As(err, &b) || !slices.Contains(m.rules, b.Rule) {
			t.Fatalf("%s: %v instead of the rule %v; pilots were %s", m.name, err, m.rules, text)
		}
		applied[m.name]++
	}
	for _, m := range mutations {
		if applied[m.name] == 0 {
			t.Errorf("no plan was broken by %q", m.name)
		}
	}
	t.Logf("%d kinds", len(applied))
}
