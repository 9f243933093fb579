package plan

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// MostWithin is how many tasks a schedule may have that stands in its plan's document. A longer one lies apart: lists
// and histories of plans would carry it about, and nearly nobody reads it.
const MostWithin = 10_000

// Apart is what a plan's document says of a schedule that lies apart from it: lines of JSON, a Placement each.
type Apart struct {
	Tasks  int    `json:"tasks"`
	Digest string `json:"digest"` // sha256:HEX of the lines
}

// Whole reports whether the plan has the schedule that it tells of.
func (p *Plan) Whole() bool { return p.Apart == nil || len(p.Schedule) > 0 }

// Detach writes the schedule as lines if it is too long for the document, which has only its digest from then on.
func (p *Plan) Detach(to io.Writer) error {
	if len(p.Schedule) <= MostWithin {
		return nil
	}
	apart, err := WriteSchedule(to, p.Schedule)
	if err == nil {
		p.Apart, p.Schedule = &apart, nil
	}
	return err
}

// Attach gives the plan the schedule that lies apart from it. One that is not the plan's is an Invalid error.
func (p *Plan) Attach(lines io.Reader) error {
	schedule, found, err := ReadSchedule(lines)
	if err == nil && (p.Apart == nil || found != *p.Apart) {
		err = corral.ErrorAt(corral.Invalid, "schedule", "it is not the plan's: its digest is %s", found.Digest)
	}
	if err == nil {
		p.Schedule = schedule
	}
	return err
}

// WriteSchedule writes a schedule as lines of JSON, and returns what identifies it.
func WriteSchedule(to io.Writer, schedule []Placement) (Apart, error) {
	sum := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(to, sum))
	lines := json.NewEncoder(out)
	for i := range schedule {
		if err := lines.Encode(&schedule[i]); err != nil {
			return Apart{}, fmt.Errorf("writing a schedule: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return Apart{}, fmt.Errorf("writing a schedule: %w", err)
	}
	return Apart{len(schedule), fmt.Sprintf("sha256:%x", sum.Sum(nil))}, nil
}

// ReadSchedule reads what WriteSchedule wrote. What is no schedule is an Invalid error with its line.
func ReadSchedule(lines io.Reader) (schedule []Placement, found Apart, err error) {
	sum := sha256.New()
	in := json.NewDecoder(io.TeeReader(lines, sum))
	in.DisallowUnknownFields()
	for {
		var at Placement
		err := in.Decode(&at)
		if errors.Is(err, io.EOF) {
			return schedule, Apart{len(schedule), fmt.Sprintf("sha256:%x", sum.Sum(nil))}, nil
		}
		if err != nil {
			return nil, Apart{}, corral.ErrorAt(corral.Invalid, fmt.Sprintf("schedule:%d", len(schedule)+1), "%w", err)
		}
		schedule = append(schedule, at)
	}
}

// Durations returns how long the schedule has each task compute where it is placed.
func (p *Plan) Durations() map[string]time.Duration {
	all := make(map[string]time.Duration, len(p.Schedule))
	for _, at := range p.Schedule {
		all[at.ID] = at.Computes()
	}
	return all
}

// Runtimes returns the Runtime that each task of the schedule was planned with: what it takes on the fastest hosts.
func (p *Plan) Runtimes() map[string]time.Duration {
	all := make(map[string]time.Duration, len(p.Schedule))
	for _, at := range p.Schedule {
		all[at.ID] = p.Runtime(at)
	}
	return all
}

// Number sets the index of each task of the schedule in the work; -1 for one that is not there.
func (p *Plan) Number(w Work) {
	number := make(map[string]int, len(w.Tasks))
	for i, t := range w.Tasks {
		number[t.ID] = i
	}
	for i := range p.Schedule {
		at := &p.Schedule[i]
		at.Task = -1
		if n, ok := number[at.ID]; ok {
			at.Task = n
		}
	}
}

// Scheduled is the work of a schedule as far as it tells: tasks that wait for none, and need cpus alone.
func Scheduled(name string, schedule []Placement) Work {
	w := Work{Name: name}
	seen := make(map[string]bool, len(schedule))
	for _, at := range schedule {
		if !seen[at.ID] {
			seen[at.ID] = true
			w.Tasks = append(w.Tasks, Task{ID: at.ID, Kind: at.Kind, Needs: corral.Resources{CPUs: at.UsedCPUs()},
				Runtime: max(0, at.Computes())})
		}
	}
	w.Graph, _ = dag.New(len(w.Tasks), nil) // fails for edges only
	return w
}
