package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// readActual reads what tasks take: workflow → task → seconds. A task that the file omits takes its estimate.
func readActual(file string, all ensemble.Ensemble) (func(workflow, task int) time.Duration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "--actual", "%w", err)
	}
	var given map[string]map[string]float64
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, corral.ErrorAt(corral.Invalid, file, "%w", err)
	}
	for name, tasks := range given {
		k := slices.IndexFunc(all, func(w plan.Work) bool { return w.Name == name })
		if k < 0 {
			return nil, corral.ErrorAt(corral.Invalid, file, "the ensemble has no workflow %.80q", name)
		}
		for id, s := range tasks {
			if !slices.ContainsFunc(all[k].Tasks, func(t plan.Task) bool { return t.ID == id }) {
				return nil, corral.ErrorAt(corral.Invalid, file, "workflow %.80s has no task %.80q", name, id)
			}
			if !(s >= 0 && s < math.MaxInt32) { // also refuses NaN
				return nil, corral.ErrorAt(corral.Invalid, file, "task %.80s of %.80s takes %g seconds", id, name, s)
			}
		}
	}
	return func(workflow, task int) time.Duration {
		t := &all[workflow].Tasks[task]
		if s, ok := given[all[workflow].Name][t.ID]; ok {
			return time.Duration(math.Round(s*1e3)) * time.Millisecond
		}
		return t.Runtime
	}, nil
}

// A turn is a line of a schedule.
type turn struct {
	Workflow string         `json:"workflow"`
	Priority int            `json:"priority"`
	Task     string         `json:"task"`
	VM       int            `json:"vm"` // index in vms
	Start    corral.Seconds `json:"start_s"`
	End      corral.Seconds `json:"end_s"`
}

// writeSchedule writes each task that ended, if a file is given.
func writeSchedule(file string, all ensemble.Ensemble, out *forecast.EnsembleOutcome) error {
	return write(file, func(w io.Writer) error {
		to := json.NewEncoder(w)
		for _, x := range out.Schedule {
			of := &all[x.Workflow]
			err := to.Encode(turn{of.Name, x.Workflow, of.Tasks[x.Task].ID, x.Machine, corral.Seconds(x.Start),
				corral.Seconds(x.End)})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeWorkflows writes a line for each workflow, if a file is given.
func writeWorkflows(file string, out *forecast.EnsembleOutcome) error {
	return write(file, func(w io.Writer) error {
		to := csv.NewWriter(w)
		to.Write([]string{"priority", "workflow", "tasks", "completed", "end_s", "reason"})
		for k, o := range out.Workflows {
			end := ""
			if o.End != nil {
				end = fmt.Sprint(time.Duration(*o.End).Seconds())
			}
			to.Write([]string{fmt.Sprint(k), o.Name, fmt.Sprint(o.Tasks), fmt.Sprint(o.Completed), end, o.Reason})
		}
		to.Flush()
		return to.Error()
	})
}

// write writes a file, if its name is not empty.
func write(file string, content func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := content(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func writeJSON(w io.Writer, v any) error {
	to := json.NewEncoder(w)
	to.SetIndent("", "  ")
	return to.Encode(v)
}
