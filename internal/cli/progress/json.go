package progress

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/corral-pilot/corral"
)

// A Step is the progress of a run as a line of JSON.
type Step struct {
	Time        time.Time       `json:"time"`
	Run         corral.RunID    `json:"run"`
	State       corral.RunState `json:"state"`
	Reason      string          `json:"reason,omitempty"`      // why the run failed or makes no progress
	Tasks       corral.RunTasks `json:"tasks"`                 // counts by state
	ExpectedEnd time.Time       `json:"expected_end,omitzero"` // of an unfinished run, if known
}

// NewJSON returns a view that writes a Step to w, on one line, whenever any of its values except the times changes.
func NewJSON(w io.Writer) View { return &steps{enc: json.NewEncoder(w)} }

type steps struct {
	enc  *json.Encoder
	last Step
}

func (s *steps) Show(_ context.Context, r corral.Run, now time.Time) {
	next := Step{Run: r.ID, State: r.State, Reason: r.Reason, Tasks: r.Tasks}
	if next == s.last {
		return
	}
	s.last = next
	next.Time = now.UTC().Truncate(time.Millisecond)
	if !r.State.Over() {
		next.ExpectedEnd = r.ExpectedEnd
	}
	_ = s.enc.Encode(next)
}

func (s *steps) Close() {}
