package execution

import (
	"fmt"

	"github.com/corral-pilot/corral"
)

// A State is the state of a unit: a task or a subworkflow. It is a function of the records applied, so it does not
// reflect back-offs or jobs that no worker has.
type State uint8

const (
	// StateWaiting: a parent is not done, an addition names another task, or a final task waits for the rest of its
	// scope.
	StateWaiting State = iota
	// StatePreparing: the PRE script must end first.
	StatePreparing
	// StateReady: a task may join a job, or a subworkflow may begin, as soon as the limit of its category allows it.
	StateReady
	// StateBehind: a worker has the task's job, and begins the task after other tasks of the job, for which it waits.
	StateBehind
	// StateRunning: a worker has the task's job, or the members of the subworkflow may run.
	StateRunning
	// StateJudging: the POST script decides whether the unit succeeded.
	StateJudging
	// StateDone: the unit succeeded. This state and those that follow are final, unless the unit is reopened.
	StateDone
	// StateFailed: the unit failed, and is not retried.
	StateFailed
	// StateSkipped: the unit waited for a unit that did not succeed, or its scope was aborted.
	StateSkipped

	states // the number of states
)

// over reports whether the state is final, unless the unit is reopened.
func (s State) over() bool { return s >= StateDone }

// task returns the state that users see.
func (s State) task() corral.TaskState {
	return [states]corral.TaskState{
		StateWaiting: corral.TaskWaiting, StatePreparing: corral.TaskReady, StateReady: corral.TaskReady,
		StateBehind: corral.TaskRunning, StateRunning: corral.TaskRunning, StateJudging: corral.TaskRunning,
		StateDone: corral.TaskDone, StateFailed: corral.TaskFailed, StateSkipped: corral.TaskSkipped,
	}[s]
}

func (s State) String() string {
	return [states]string{
		"waiting", "preparing", "ready", "behind", "running", "judging", "done", "failed", "skipped",
	}[s]
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

	events // the number of events
)

func (e event) String() string {
	return [events]string{
		"free", "prepare", "hold", "start", "queue", "return", "judge", "retry", "done", "fail", "skip", "reopen",
	}[e]
}

// moves lists every legal move of a unit: the event leads from any of the states in from to the state to. Comments
// explain the moves.
var moves = []struct {
	from []State
	on   event
	to   State
}{
	// It no longer waits. A task in StateBehind may run next.
	{[]State{StateWaiting, StatePreparing}, onFree, StateReady},
	{[]State{StateBehind}, onFree, StateRunning},
	// It no longer waits, or is retried, and its PRE script comes first.
	{[]State{StateWaiting, StateReady, StateRunning, StateJudging, StatePreparing}, onPrepare, StatePreparing},
	// A unit that it waits for was reopened.
	{[]State{StatePreparing, StateReady}, onHold, StateWaiting},
	// A worker is given its job, or the members of the subworkflow may run.
	{[]State{StateReady}, onStart, StateRunning},
	// A worker is given its job, in which a task that it waits for comes first.
	{[]State{StateWaiting}, onQueue, StateBehind},
	// It leaves its worker without a result that counts.
	{[]State{StateRunning}, onReturn, StateReady},
	{[]State{StateBehind}, onReturn, StateWaiting},
	// The process or the last member has ended, and the POST script decides.
	{[]State{StateReady, StateRunning}, onJudge, StateJudging},
	// Its attempt failed, and another one follows, without a PRE script.
	{[]State{StatePreparing, StateReady, StateRunning, StateJudging}, onRetry, StateReady},
	// It succeeded, or was done before the execution began, or its PRE script declared it done.
	{[]State{StateWaiting, StatePreparing, StateReady, StateRunning, StateJudging}, onDone, StateDone},
	// It failed permanently, or was cancelled.
	{[]State{StateWaiting, StatePreparing, StateReady, StateBehind, StateRunning, StateJudging}, onFail, StateFailed},
	// It can never run, or must not.
	{[]State{StateWaiting, StatePreparing, StateReady, StateBehind, StateRunning, StateJudging}, onSkip, StateSkipped},
	// It may run again. A subworkflow that has retries is reopened before it is over.
	{[]State{StateDone, StateFailed, StateSkipped, StatePreparing, StateRunning, StateJudging}, onReopen, StateWaiting},
}

// destination is moves as a table: the state to which an event leads plus 1, or 0 if the move is illegal.
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
		panic(fmt.Sprintf("execution: %s is not possible for a unit that is %s", on, s))
	}
	return to - 1
}
