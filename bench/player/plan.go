package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A plan is the part of the output of corral plan -o json that the player reads. Every type here restates the document;
// none is shared with Corral.
type plan struct {
	// An infeasible plan is refused: its pilots, if any, do not reach the goal.
	Feasible   bool                 `json:"feasible"`
	Goal       goal                 `json:"goal"`
	Clustering string               `json:"clustering"`
	Pilots     []request            `json:"pilots"`
	Makespan   seconds              `json:"makespan_s"`
	Cost       amount               `json:"cost"`
	Assumed    *assumptions         `json:"assumed"`
	Schedule   []placement          `json:"schedule"`
	Apart      *struct{ Tasks int } `json:"schedule_apart"`
}

// A goal has the bounds by which a play is judged.
type goal struct {
	Deadline seconds `json:"deadline_s"` // 0: none
	Budget   *amount `json:"budget"`     // nil: none
}

// A request is one pilot of the plan: hosts of equal size for a walltime.
type request struct {
	Site  string `json:"site"`
	Queue string `json:"queue"`
	Hosts int    `json:"hosts"`
	resources
	Walltime seconds `json:"walltime_s"`
	Submit   seconds `json:"submit_s"`
	Start    seconds `json:"start_s"`    // Submit and the wait that the plan assumes
	Ready    seconds `json:"ready_s"`    // used only by pilots that are early: the overhead of the site counts
	Early    bool    `json:"early"`      // it may come before there is work for it
	MinStay  seconds `json:"min_stay_s"` // after its start it stays this long, also without work
	Follows  *int    `json:"follows"`    // the pilot that it replaces; its submission moves with the start of that one
	Hedges   *int    `json:"hedges"`     // of the two, the one whose workers come later is withdrawn
}

// assumptions holds the assumptions of a plan about the cluster and its sites.
type assumptions struct {
	Hop       seconds    `json:"hop_s"`       // see rules.hop
	Reuse     seconds    `json:"reuse_s"`     // see rules.reuse
	Leave     seconds    `json:"leave_s"`     // see rules.leave
	Rate      float64    `json:"tasks_per_s"` // 0: not limited
	Queues    []site     `json:"queues"`
	Present   []present  `json:"present"`
	Run       int64      `json:"run_id"` // 0: the plan is for a whole workflow
	Transfers []transfer `json:"transfers"`
}

// A site is one queue of a site. The file of --sites has the same fields, and those below the line.
type site struct {
	Site     string  `json:"site"`
	Queue    string  `json:"queue"`
	Overhead seconds `json:"overhead_s"` // from the start of a pilot's job to its workers
	Speed    float64 `json:"speed"`      // divides runtimes; 0 means 1

	// Limits; 0: not known, but GPUs 0 means none.
	CPUs      int      `json:"cpus"`       // held at once
	Pilots    int      `json:"pilots"`     // waiting or running at once
	Hosts     int      `json:"hosts"`      // per pilot
	HostCPUs  int      `json:"host_cpus"`  // of the largest host
	MemoryMiB int      `json:"memory_mib"` // of the largest host
	GPUs      int      `json:"gpus"`       // of the largest host
	Walltime  seconds  `json:"walltime_s"`
	Margin    seconds  `json:"margin_s"` // the workers leave this long before the walltime ends
	Closed    []period `json:"closed"`

	Price   money        `json:"price"`
	Unit    string       `json:"unit"`
	Per     string       `json:"per"` // cpu-hour or host-hour
	Minimum seconds      `json:"billed_minimum_s"`
	Period  seconds      `json:"billed_period_s"`
	Left    *money       `json:"left"`
	Waits   []shapeWaits `json:"waits"`
	Room    []any        `json:"room"` // not used: the wait of a pilot is that of the plan

	// ---- only in --sites
	Nodes []nodes  `json:"nodes"`
	Wait  *seconds `json:"wait_s"` // replaces the waits of the plan's pilots here
}

// A period is a time in which a queue runs no pilots.
type period struct {
	From seconds `json:"from_s"`
	To   seconds `json:"to_s"`
}

// shapeWaits holds the waits of pilots with at most CPUs cpus and, unless it is 0, for at most Walltime: quantiles at
// equal distances, the shortest first.
type shapeWaits struct {
	CPUs     int       `json:"cpus"`
	Walltime seconds   `json:"walltime_s"`
	Planned  seconds   `json:"planned_s"`
	Waits    []seconds `json:"waits_s"`
}

// A present is a pilot that was there before the plan. It belongs to no request and costs the plan nothing.
type present struct {
	Site  string `json:"site"`
	Hosts int    `json:"hosts"`
	resources
	Ready   seconds `json:"ready_s"`
	End     seconds `json:"end_s"` // 0: not limited
	Idle    seconds `json:"idle_s"`
	Keep    seconds `json:"keep_s"` // how long it stays without a task; 0: until its end
	Speed   float64 `json:"speed"`
	Running []begun `json:"running"`
}

// A begun is a task that runs on a host of a present pilot. The plan's schedule says how long.
type begun struct {
	Task string `json:"task"`
	Host int    `json:"host"`
}

// A transfer is the time that a job's files take to a site and back.
type transfer struct {
	Site      string  `json:"site"`
	Latency   seconds `json:"latency_s"`
	Bandwidth float64 `json:"bytes_per_s"` // 0: the size does not matter
}

// A placement is the place of one task in the plan's schedule. The player takes from it which tasks a pilot was
// requested for, and nothing else unless -estimates plan is given.
type placement struct {
	Task     string  `json:"task"`
	Pilot    int     `json:"pilot"`
	Host     int     `json:"host"`
	Start    seconds `json:"start_s"`
	End      seconds `json:"end_s"`
	Transfer seconds `json:"transfer_s,omitzero"`
}

// readPlan reads a plan, or the REST resource that contains one.
func readPlan(text []byte) (*plan, error) {
	var resource struct{ Plan json.RawMessage }
	if err := json.Unmarshal(text, &resource); err != nil {
		return nil, err
	}
	if resource.Plan != nil {
		text = resource.Plan
	}
	p := new(plan)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, err
	}
	switch {
	case !p.Feasible:
		return nil, errors.New("the plan is infeasible: there is nothing to play")
	case p.Assumed == nil:
		return nil, errors.New("the plan does not contain its assumptions")
	case p.Assumed.Run != 0:
		return nil, errors.New("the plan is for the rest of a run: its document does not say which tasks are done")
	}
	return p, p.check()
}

// check refuses numbers on which a play would fail or would never end.
func (p *plan) check() error {
	for i, q := range p.Pilots {
		switch {
		case q.Hosts < 1 || q.CPUs < 1 || q.MemoryMiB < 0 || q.GPUs < 0:
			return fmt.Errorf("pilot %d has %d hosts of %s", i, q.Hosts, q.resources)
		case q.Walltime <= 0 || q.Submit < 0 || q.Start < q.Submit:
			return fmt.Errorf("pilot %d: a time is negative, or it starts before it is submitted", i)
		}
		for _, other := range []*int{q.Follows, q.Hedges} {
			if other != nil && (*other < 0 || *other >= i) {
				return fmt.Errorf("pilot %d refers to pilot %d, which is not an earlier one", i, *other)
			}
		}
	}
	a := p.Assumed
	if min(a.Hop, a.Reuse, a.Leave) < 0 || a.Rate < 0 {
		return errors.New("an assumption about the cluster is negative")
	}
	return nil
}

// attach reads a schedule that is stored apart from its plan, a line of JSON for each task.
func (p *plan) attach(lines []byte) error {
	in := json.NewDecoder(bytes.NewReader(lines))
	for {
		var at placement
		if err := in.Decode(&at); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		p.Schedule = append(p.Schedule, at)
	}
	if p.Apart != nil && len(p.Schedule) != p.Apart.Tasks {
		return fmt.Errorf("it has %d tasks, but the plan's schedule has %d", len(p.Schedule), p.Apart.Tasks)
	}
	return nil
}

// A place names one queue of a site.
type place struct{ site, queue string }

// sites returns the queues of the plan's pilots: as the plan assumes them, changed by the fields that the file of
// --sites contains. The file may describe other sites, too.
func (p *plan) sites(file []byte) (map[place]*site, error) {
	all := map[place]*site{}
	for i := range p.Assumed.Queues {
		s := p.Assumed.Queues[i]
		all[place{s.Site, s.Queue}] = &s
	}
	if file != nil {
		if err := override(all, file); err != nil {
			return nil, err
		}
	}
	for i, q := range p.Pilots {
		if all[place{q.Site, q.Queue}] == nil {
			return nil, fmt.Errorf("pilot %d is for site %s, queue %q, of which the plan assumes nothing: "+
				"describe it with --sites", i, q.Site, q.Queue)
		}
	}
	for at, s := range all {
		if s.Price < 0 || s.Speed < 0 || min(s.Overhead, s.Margin, s.Minimum, s.Period, s.Walltime) < 0 {
			return nil, fmt.Errorf("site %s: a price, a speed or a time is negative", at.site)
		}
	}
	return all, nil
}

// override decodes each description over what the plan assumes, so that fields it does not have keep their values.
func override(all map[place]*site, file []byte) error {
	var described struct{ Sites []json.RawMessage } // each is decoded twice: for its name, then over the plan's
	if err := json.Unmarshal(file, &described); err != nil {
		return err
	}
	for _, text := range described.Sites {
		var name site
		if err := json.Unmarshal(text, &name); err != nil {
			return err
		}
		at := place{name.Site, name.Queue}
		s := all[at]
		if s == nil {
			s = &site{Unit: "ch", Per: "cpu-hour", Price: micro} // without a price, cpu-hours are counted
			all[at] = s
		}
		in := json.NewDecoder(bytes.NewReader(text))
		in.DisallowUnknownFields() // a mistyped name would leave the plan's own value in force
		if err := in.Decode(s); err != nil {
			return fmt.Errorf("site %s: %w", name.Site, err)
		}
		for _, n := range s.Nodes {
			if n.Count < 1 || n.CPUs < 1 {
				return fmt.Errorf("site %s: a node type needs a count and cpus", name.Site)
			}
		}
	}
	return nil
}
