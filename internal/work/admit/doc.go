// Package admit turns a request into a row of the store. Everything that asks for a new object, or enlarges one, goes
// through it: requests of people, and corrald's own acts for plans, their revisions, scales and ensembles.
//
// Each noun has a function that takes the transaction and the request, and returns the row or an error. All of them ask
// the same questions in the same order (claim.ask):
//
//  1. Is the account of the owner active?
//  2. May the owner use the objects that the row names?
//  3. Is the request valid, and can the site and the cluster satisfy it now?
//  4. Do the owner's quotas leave room for it?
//
// Then the row is stored. The error is that of the first question that fails: of kind Forbidden, NotFound, Invalid,
// Unsatisfiable or Conflict, at the field of the request that causes it.
//
// Questions that need no store are asked before the transaction as well, so that a client gets the answer before
// anything slow begins. The functions Read… and Check… do that: first they validate the request (package request), then
// they check that its caller may name the files and addresses of corrald's host in it (package access).
//
// The pilots of a plan share the balance of their site. Pilots checks it before they are created, Reserve charges it in
// the transaction that creates them.
//
// # Requests
//
// A request asks for more than its owner has been granted. Carrying out an admitted request is not a new request:
// everything it leads to was judged with it, and a refusal halfway would leave it neither granted nor refused. So the
// following rows are not judged here:
//
//   - Attempts of a glidein, and the setup and cleanup jobs of a site. A glidein is admitted with its resubmission
//     policy, and so with all its attempts. corral.Site.NewAttempt decides whether the next one is legal,
//     internal/decide/reconcile when it follows.
//   - Revisions of a plan, which record decisions. The pilots that a revision adds are requests.
//   - Tokens of HTCondor pools, and probes. They serve an attempt or a site.
//   - Tasks of an open run. They are in the run's journal, and internal/work/run limits them.
//
// The runs of an ensemble are admitted with it, and therefore count against no quota; the other questions are asked.
//
// internal/archtest enforces this: no other package may call the store's inserting methods, except for the rows above.
package admit
