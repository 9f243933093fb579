package corral

import "slices"

// A Move is one row of a transition table: Event leads from any state of From to To.
type Move[S, E ~string] struct {
	From  []S
	Event E
	To    S
	Means string // what the move says happened, for docs/states.md
}

// A Table lists every legal move of one kind of object. All other moves are refused.
type Table[S, E ~string] []Move[S, E]

// Next returns the state that event leads to from state from, or a Conflict error.
func (t Table[S, E]) Next(from S, event E) (S, error) {
	for _, m := range t {
		if m.Event == event && slices.Contains(m.From, from) {
			return m.To, nil
		}
	}
	return from, Errorf(Conflict, "%s is not possible in state %s", event, from)
}

// SiteMoves is the life of a site.
var SiteMoves = Table[SiteState, SiteMove]{
	{[]SiteState{SiteNew, SiteReady}, SiteStage, SiteStaging,
		"the setup job was asked for: the site is new, or has lost its package"},
	{[]SiteState{SiteStaging}, SiteStaged, SiteReady, "the setup job installed the worker package"},
	{[]SiteState{SiteNew, SiteStaging, SiteReady, SiteExiting, SiteRemoving}, SiteFail, SiteFailed,
		"setup or cleanup failed for good; the reason is kept"},
	{[]SiteState{SiteNew, SiteStaging, SiteReady, SiteFailed}, SiteRemove, SiteExiting,
		"removal was asked for; its glideins are removed first"},
	{[]SiteState{SiteExiting}, SiteEmptied, SiteRemoving, "the last glidein is gone; the cleanup job was asked for"},
	{[]SiteState{SiteRemoving}, SiteUnstaged, SiteDeleted, "the cleanup job removed everything"},
	{[]SiteState{SiteNew, SiteStaging, SiteReady, SiteExiting, SiteRemoving, SiteFailed}, SiteForget, SiteDeleted,
		"forced removal: the record is deleted, and what the site still keeps is listed as left behind"},
}

// ClusterMoves is the life of a cluster. An embedded one takes only remove and removed, at once.
var ClusterMoves = Table[ClusterState, ClusterMove]{
	{[]ClusterState{ClusterReady, ClusterStopped, ClusterFailed}, ClusterStart, ClusterStarting,
		"starting, or starting again, was asked for"},
	{[]ClusterState{ClusterStarting}, ClusterStarted, ClusterReady, "the pool answers"},
	{[]ClusterState{ClusterStarting, ClusterReady, ClusterFailed}, ClusterStop, ClusterStopping,
		"stopping was asked for"},
	{[]ClusterState{ClusterStopping}, ClusterStopEnd, ClusterStopped, "no daemon is left; the queue is kept"},
	{[]ClusterState{ClusterStarting, ClusterStopping, ClusterRemoving}, ClusterFail, ClusterFailed,
		"it could not be done; the reason is kept"},
	{[]ClusterState{ClusterStarting, ClusterReady, ClusterStopping, ClusterStopped, ClusterFailed},
		ClusterRemove, ClusterRemoving, "removal was asked for"},
	{[]ClusterState{ClusterRemoving}, ClusterRemoved, ClusterDeleted, "no daemon and no file is left"},
}

// JobMoves is the life of a batch job of ours; a glidein's attempt is its pilot job.
var JobMoves = Table[JobState, JobMove]{
	{[]JobState{JobNew}, JobSubmit, JobSubmitted, "the site accepted it and gave it an id"},
	{[]JobState{JobNew, JobSubmitted}, JobQueue, JobQueued, "the batch system shows it waiting"},
	{[]JobState{JobNew, JobSubmitted, JobQueued}, JobStart, JobRunning, "the batch system shows it running"},
	{[]JobState{JobNew, JobSubmitted, JobQueued, JobRunning}, JobEnd, JobEnded, "it is over, with an outcome"},
}

// RunMoves is the life of a run.
var RunMoves = Table[RunState, RunMove]{
	{[]RunState{RunRunning}, RunSucceed, RunSucceeded, "every task succeeded"},
	{[]RunState{RunRunning}, RunFail, RunFailed, "a task failed for good and nothing more can run"},
	{[]RunState{RunRunning}, RunStall, RunStalled, "no present or requested worker could ever take what is ready"},
	{[]RunState{RunRunning}, RunCancel, RunCancelling, "cancelling was asked for; running tasks are killed"},
	{[]RunState{RunCancelling}, RunCancelEnd, RunCancelled, "no task runs any more"},
	{[]RunState{RunFailed, RunStalled, RunCancelled}, RunResume, RunRunning,
		"resuming was asked for: finished tasks stay finished"},
	{[]RunState{RunSucceeded, RunFailed, RunStalled, RunCancelled}, RunRemove, RunDeleted,
		"the record is hidden; its directory was deleted if that was asked"},
}

// PlanMoves is the life of a plan.
var PlanMoves = Table[PlanState, PlanMove]{
	{[]PlanState{PlanReady}, PlanProvision, PlanProvisioned, "its glideins were created"},
	{[]PlanState{PlanReady, PlanProvisioned}, PlanRelease, PlanReleased,
		"release was asked for, or its run is over: its glideins are let go; or all of them have ended"},
	{[]PlanState{PlanInfeasible, PlanReady, PlanReleased}, PlanRemove, PlanDeleted, "the record is hidden"},
}
