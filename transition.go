package corral

import "slices"

// A Move is one row of a transition table: Event leads from any state of From to To.
type Move[S, E ~string] struct {
	From  []S
	Event E
	To    S
	Means string // the meaning of the move, for docs/states.md
}

// A Table lists every legal move of one kind of object. All other moves are refused.
type Table[S, E ~string] []Move[S, E]

// Next returns the state to which event leads from state from, or a Conflict error.
func (t Table[S, E]) Next(from S, event E) (S, error) {
	for _, m := range t {
		if m.Event == event && slices.Contains(m.From, from) {
			return m.To, nil
		}
	}
	return from, Errorf(Conflict, "%s is not possible in state %s", event, from)
}

// SiteMoves lists the moves of a site.
var SiteMoves = Table[SiteState, SiteMove]{
	{[]SiteState{SiteNew, SiteReady}, SiteStage, SiteStaging,
		"the setup job was requested: the site is new, or has lost its package"},
	{[]SiteState{SiteStaging}, SiteStaged, SiteReady, "the setup job installed the worker package"},
	{[]SiteState{SiteNew, SiteStaging, SiteReady, SiteExiting, SiteRemoving}, SiteFail, SiteFailed,
		"setup or cleanup failed permanently; the reason is kept"},
	{[]SiteState{SiteNew, SiteStaging, SiteReady, SiteFailed}, SiteRemove, SiteExiting,
		"removal was requested; its glideins are removed first"},
	{[]SiteState{SiteExiting}, SiteEmptied, SiteRemoving, "the last glidein is gone; the cleanup job was requested"},
	{[]SiteState{SiteRemoving}, SiteUnstaged, SiteDeleted, "the cleanup job removed everything"},
	{[]SiteState{SiteNew, SiteStaging, SiteReady, SiteExiting, SiteRemoving, SiteFailed}, SiteForget, SiteDeleted,
		"forced removal: the record is deleted, and everything left at the site is listed"},
}

// ClusterMoves lists the moves of a cluster. An embedded cluster uses only remove and removed, one directly after the
// other.
var ClusterMoves = Table[ClusterState, ClusterMove]{
	{[]ClusterState{ClusterReady, ClusterStopped, ClusterFailed}, ClusterStart, ClusterStarting,
		"a start or restart was requested"},
	{[]ClusterState{ClusterStarting}, ClusterStarted, ClusterReady, "the pool answers"},
	{[]ClusterState{ClusterStarting, ClusterReady, ClusterFailed}, ClusterStop, ClusterStopping,
		"a stop was requested"},
	{[]ClusterState{ClusterStopping}, ClusterStopEnd, ClusterStopped, "no daemon is left; the queue is kept"},
	{[]ClusterState{ClusterStarting, ClusterStopping, ClusterRemoving}, ClusterFail, ClusterFailed,
		"the action failed; the reason is kept"},
	{[]ClusterState{ClusterStarting, ClusterReady, ClusterStopping, ClusterStopped, ClusterFailed},
		ClusterRemove, ClusterRemoving, "removal was requested"},
	{[]ClusterState{ClusterRemoving}, ClusterRemoved, ClusterDeleted, "no daemon and no file is left"},
}

// JobMoves lists the moves of a batch job of Corral; a glidein's attempt is its pilot job.
var JobMoves = Table[JobState, JobMove]{
	{[]JobState{JobNew}, JobSubmit, JobSubmitted, "the site accepted it and gave it an id"},
	{[]JobState{JobNew, JobSubmitted}, JobQueue, JobQueued, "the batch system shows it waiting"},
	{[]JobState{JobNew, JobSubmitted, JobQueued}, JobStart, JobRunning, "the batch system shows it running"},
	{[]JobState{JobNew, JobSubmitted, JobQueued, JobRunning}, JobEnd, JobEnded, "it ended, with an outcome"},
}

// RunMoves lists the moves of a run.
var RunMoves = Table[RunState, RunMove]{
	{[]RunState{RunRunning}, RunSucceed, RunSucceeded, "every task succeeded"},
	{[]RunState{RunRunning}, RunFail, RunFailed, "a task failed permanently and nothing more can run"},
	{[]RunState{RunRunning}, RunStall, RunStalled, "no present or requested worker could ever run the ready tasks"},
	{[]RunState{RunRunning}, RunCancel, RunCancelling, "cancelling was requested; running tasks are killed"},
	{[]RunState{RunCancelling}, RunCancelEnd, RunCancelled, "no task runs any more"},
	{[]RunState{RunFailed, RunStalled, RunCancelled}, RunResume, RunRunning,
		"resuming was requested: finished tasks stay finished"},
	{[]RunState{RunSucceeded, RunFailed, RunStalled, RunCancelled}, RunRemove, RunDeleted,
		"the record is hidden; its directory was deleted if requested"},
}

// PlanMoves lists the moves of a plan.
var PlanMoves = Table[PlanState, PlanMove]{
	{[]PlanState{PlanReady}, PlanProvision, PlanProvisioned, "its glideins were created"},
	{[]PlanState{PlanReady, PlanProvisioned}, PlanRelease, PlanReleased,
		"release was requested, or its run is over, so its glideins are released; or all of them have ended"},
	{[]PlanState{PlanInfeasible, PlanReady, PlanReleased}, PlanRemove, PlanDeleted, "the record is hidden"},
}
