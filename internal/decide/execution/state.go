package execution

import (
	"fmt"

	"github.com/corral-pilot/corral"
)

// A State says where a unit stands: a task or a subworkflow. It is a function of the records applied: jobs that no
// worker has, and the time that a back-off takes, are not in it.
type State uint8

const (
	// StateWaiting is for what is not done yet: the parents, what an addition names, or, for a final task, the other
	// tasks of its scope.
	StateWaiting State = iota
	// StatePreparing is for the end of the PRE script.
	StatePreparing
	// StateReady is a task that may be in a job, or a subworkflow whose category has a limit and must come to it.
	StateReady
	// StateBehind is a task in the job of a worker, which begins it after another task of the job that it waits for.
	StateBehind
	// StateRunning is a task in the job of a worker, or a subworkflow whose members may run.
	StateRunning
	// StateJudging is for the end of the POST script, which decides whether the unit succeeded.
	StateJudging
	// StateDone, StateFailed and StateSkipped are final, unless the unit is reopened. A failed unit has no retries
	// left; a skipped one waited for what did not succeed, or its scope was aborted.
	StateDone
	StateFailed
	StateSkipped

	states // how many there are
)

// over reports whether the unit is not to run any more, as things stand.
func (s State) over() bool { return s >= StateDone }

// task returns the state as users see it.
func (s State) task() corral.TaskState {
	return [states]corral.TaskState{
		StateWaiting: corral.TaskWaiting, StatePreparing: corral.TaskReady, StateReady: corral.TaskReady,
		StateBehind: corral.TaskRunning, StateRunning: corral.TaskRunning, StateJudging: corral.TaskRunning,
		StateDone: corral.TaskDone, StateFailed: corral.TaskFailed, StateSkipped: corral.TaskSkipped,
	}[s]
}

func (s State) String() string {
	return [states]string{"waiting", "preparing", "ready", "behind", "running", "judging", "done", "failed", "skipped"}[s]
}

// An event moves a unit from one state to another.
type event uint8

const (
	onFree event = iota
	onPrepare
	onHold
	onStart
	onQueue
	onReturn
	onJudge
	onRetry
	onDone
	onFail
	onSkip
	onReopen

	events // how many there are
)

// moves lists every legal move of a unit. The comments say what the move means.
var moves = []struct {
	from []State
	on   event
	to   State
}{
	// The unit waits for nothing any more. A task behind another one in its job runs next.
	{[]State{StateWaiting, StatePreparing}, onFree, StateReady},
	{[]State{StateBehind}, onFree, StateRunning},
	// It waits for nothing any more, or is tried again, and begins with its PRE script.
	{[]State{StateWaiting, StateReady, StateRunning, StateJudging, StatePreparing}, onPrepare, StatePreparing},
	// A unit that it waits for was reopened.
	{[]State{StatePreparing, StateReady}, onHold, StateWaiting},
	// A worker is given the job of the task; the members of the subworkflow may run.
	{[]State{StateReady}, onStart, StateRunning},
	// A worker is given the job of the task, in which a task that this one waits for comes first.
	{[]State{StateWaiting}, onQueue, StateBehind},
	// The task leaves its worker without a result.
	{[]State{StateRunning}, onReturn, StateReady},
	{[]State{StateBehind}, onReturn, StateWaiting},
	// The process, or the last member, is over, and the POST script decides.
	{[]State{StateReady, StateRunning}, onJudge, StateJudging},
	// An attempt failed, and another one follows that has no PRE script.
	{[]State{StatePreparing, StateReady, StateRunning, StateJudging}, onRetry, StateReady},
	// It succeeded; or it was done before the execution began, or its PRE script said so.
	{[]State{StateWaiting, StatePreparing, StateReady, StateRunning, StateJudging}, onDone, StateDone},
	// It failed for good, or was cancelled.
	{[]State{StateWaiting, StatePreparing, StateReady, StateBehind, StateRunning, StateJudging}, onFail, StateFailed},
	// It never can run, or is not to.
	{[]State{StateWaiting, StatePreparing, StateReady, StateBehind, StateRunning, StateJudging}, onSkip, StateSkipped},
	// It may run again, once nothing holds it. A subworkflow with retries gets there without being over.
	{[]State{StateDone, StateFailed, StateSkipped, StatePreparing, StateRunning, StateJudging}, onReopen, StateWaiting},
}

// destination is moves as a table: 1 more than the state that an event leads to, 0 if the move is not legal.
var destination = func() (table [events][states]State) {
	for _, m := range moves {
		for _, from := range m.from {
			table[m.on][from] = m.to + 1
		}
	}
	return table
}()

// next returns the state that an event leads to. An illegal move is a defect of this package.
func (s State) next(on event) State {
	to := destination[on][s]
	if to == 0 {
		panic(fmt.Sprintf("execution: event %d is not possible for a unit that is %s", on, s))
	}
	return to - 1
}
