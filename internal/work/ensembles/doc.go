// Package ensembles carries out ensembles: it begins the runs of their workflows, and requests and releases pilots,
// according to the policy that was chosen when the ensemble was created. That policy decides here as it does in a
// simulation (plan/sim/cloud): the observed glideins, workers and runs become an ensemble.View, and orders become
// glideins.
//
//	make.go      a request becomes a row: workflows are read, and the policy is chosen
//	shelf.go     the files of workflows, until their ensembles have ended
//	view.go      the known state at an instant, and the policy's view of it
//	decide.go    Decide, which is pure: what to begin, request, release and cancel, and when the ensemble is over
//	keep.go      a loop for each ensemble
//	carrier.go   decisions, carried out
//
// An ensemble does not depend on the client that started it: each decision is in the store before it takes effect, in
// one transaction with the glideins or the run, so that a corrald that was killed continues where it stopped. The
// cost of pilots is computed from the times of their attempts, again at each look, so that no crash can lose a part
// of it or count one twice.
//
// The budget is protected by counting exposure: a pilot that was told to leave counts until it has left, and a step
// takes into account the cost of pilots until the next step's orders are carried out.
package ensembles
