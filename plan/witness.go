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

// MostWithin is the maximum number of tasks of a schedule inside a plan's document. A longer schedule is stored
// separately, because it would otherwise be part of every list and history of plans, although it is rarely read.
const MostWithin = 10_000

// Apart describes a separately stored schedule: lines of JSON, each with one Placement.
type Apart struct {
	Tasks  int    `json:"tasks"`
	Digest string `json:"digest"` // sha256:HEX of the lines
}

// Whole reports whether the plan includes its schedule.
func (p *Plan) Whole() bool { return p.Apart == nil || len(p.Schedule) > 0 }

// Detach writes a schedule that is too long for the document as lines, and replaces it by its digest.
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

// Attach adds the separately stored schedule to the plan. A schedule of another plan is an Invalid error.
func (p *Plan) Attach(lines io.Reader) error {
	schedule, found, err := ReadSchedule(lines)
	if err == nil && (p.Apart == nil || found != *p.Apart) {
		err = corral.ErrorAt(corral.Invalid, "schedule", "it does not belong to the plan: its digest is %s",
			found.Digest)
	}
	if err == nil {
		p.Schedule = schedule
	}
	return err
}

// WriteSchedule writes a schedule as lines of JSON and returns its size and digest.
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

// ReadSchedule reads the output of WriteSchedule. A malformed line is an Invalid error with the line number.
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

// Runtimes returns the Runtime with which each task was planned, by its ID: its time on the fastest hosts.
func (p *Plan) Runtimes() map[string]time.Duration {
	all := make(map[string]time.Duration, len(p.Schedule))
	for _, at := range p.Schedule {
		all[at.ID] = p.runtime(at)
	}
	return all
}

// Number sets the Task of each placement to the index of its task in the work, or to -1 if the work does not contain
// the task.
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

// Scheduled reconstructs the work of a schedule as far as the schedule shows it: tasks without dependencies that need
// only cpus.
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
