package plan

import "github.com/corral-pilot/corral"

// Indices returns a function that returns the index among a work's tasks of the task of a placement. A plan that was
// read names its tasks only by their ids.
func (p *Plan) Indices(work Work) func(at *Placement) int {
	var byID map[string]int
	return func(at *Placement) int {
		if work.Tasks[at.Task].ID == at.ID {
			return at.Task
		}
		if byID == nil {
			byID = make(map[string]int, len(work.Tasks))
			for i := range work.Tasks {
				byID[work.Tasks[i].ID] = i
			}
		}
		return byID[at.ID]
	}
}

// A First lists the tasks that are planned to start first on a pilot, all at the same time.
type First struct {
	Tasks []*Placement
	Start corral.Seconds
}

// Firsts returns the first tasks of each pilot, if the plan has its schedule.
func (p *Plan) Firsts() []First {
	all := make([]First, len(p.Pilots))
	for i := range p.Schedule {
		at := &p.Schedule[i]
		if at.Pilot < 0 || at.Pilot >= len(all) {
			continue // on a present pilot
		}
		f := &all[at.Pilot]
		if len(f.Tasks) == 0 || at.Start < f.Start {
			*f = First{Start: at.Start}
		}
		if at.Start == f.Start {
			f.Tasks = append(f.Tasks, at)
		}
	}
	return all
}
