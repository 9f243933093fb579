package plan

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Present is a pilot that is there when a plan is made, or that was asked for before. A plan uses it first, and asks
// only for what is missing beyond it. What it costs is not the plan's: it is held already, or paid for by another plan.
//
// In a schedule the present pilots are numbered after the plan's own: the first one is number len(Plan.Pilots).
type Present struct {
	Site  string
	Hosts int
	Host  corral.Resources // what each host offers
	Speed Speed            // of its hosts
	Ready time.Duration    // when its workers are expected; 0: they are there
	End   time.Duration    // no task on it may end later
	Idle  time.Duration    // for how long it has had no task
	Keep  time.Duration    // it leaves once it has had no task for longer; Unbounded: it stays until End
	Doubt float64          // tasks begin only where End leaves time for their runtime and this share of it

	Running []Running // what it has; the Runtime of such a task is what is left of it
}

// A Running says which task a host of a present pilot has.
type Running struct{ Task, Host int }
