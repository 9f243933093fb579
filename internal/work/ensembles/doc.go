// Package ensembles carries out ensembles: it begins the runs of their workflows, and requests and releases pilots,
// according to the policy that was chosen when the ensemble was created. The policy makes its decisions here as it does
// in a simulation (plan/sim/cloud): the observed glideins, workers and runs are converted to an ensemble.View, and the
// policy's orders to glideins.
//
//	make.go      a request becomes a row: workflows are read, and the policy is chosen
//	shelf.go     the files of workflows, until their ensembles have ended
//	view.go      the known state at an instant, and the policy's view of it
//	decide.go    Decide, which is pure: what to begin, request, release and cancel, and when the ensemble is over
//	keep.go      a loop for each ensemble
//	carrier.go   decisions, carried out
//
// An ensemble does not depend on the client that started it: each decision is stored before it takes effect, in one
// transaction with the glideins or the run, so that corrald continues where it stopped if it is killed. The cost of
// pilots is recomputed from the times of their attempts at each check, so that a crash can neither lose part of it nor
// count any part twice.
//
// The budget is protected by counting all costs that can still arise: a pilot that was ordered to end counts until it
// has ended, and a step includes the cost of pilots until the next step's orders are carried out.
package ensembles
