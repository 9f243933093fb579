// Package ensembles carries ensembles out: it begins runs of their workflows, and asks for pilots and lets them go, as
// the policy says that was chosen when the ensemble was made. That policy decides here as it does in a simulation
// (plan/sim/cloud): what is seen of glideins, workers and runs becomes an ensemble.View, and orders become glideins.
//
//	make.go      a request becomes a row: workflows are read, and what decides is chosen
//	shelf.go     the files of workflows, until their ensembles have ended
//	sight.go     what is known at an instant, and what of it the policy sees
//	decide.go    Decide, which is pure: what to begin, ask for, let go and cancel, and when the ensemble is over
//	keep.go      a loop for each ensemble
//	carry.go     decisions, carried out
//
// An ensemble does not depend on the client that started it: each decision is in the store before it takes effect, in
// one transaction with the glideins or the run, so that a corrald that was killed continues where it stopped. The cost
// of pilots is computed from the times of their attempts, again at each look, so that no crash can lose a part of it or
// count one twice.
//
// The budget is kept by exposure: a pilot that is told to go is counted until it has gone, and a step reckons with what
// pilots cost until the next one's orders are carried out.
package ensembles
