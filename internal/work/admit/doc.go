// Package admit turns a request into a row of the store. Every request for a new object, or for a larger one, passes
// through it: requests from users, and those that corrald makes for plans, their revisions, scales and ensembles.
//
// Each noun has a function that takes the transaction and the request, and returns the row or an error. They all make
// the same checks in the same order (claim.ask):
//
//  1. Is the owner's account active?
//  2. May the owner use the objects that the row names?
//  3. Is the request valid, and can the site and the cluster satisfy it now?
//  4. Do the owner's quotas leave room for the row?
//
// Then the row is stored. If a check fails, its error is returned: of kind Forbidden, NotFound, Invalid, Unsatisfiable
// or Conflict, at the field of the request that causes it.
//
// Checks that do not need the store are also made before the transaction, so that a client is refused before anything
// slow begins. The functions Read… and Check… do this: they validate the request (package request), and then check that
// its caller may use the files and addresses of corrald's host that it names (package access).
//
// A plan's pilots share the balance of their site. Pilots checks the balance before they are created; Reserve charges
// it in the transaction that creates them.
//
// # Requests
//
// A request asks for more than its owner has been granted. Carrying out an admitted request is not a new request:
// everything it leads to was admitted with it, and a refusal halfway would leave it neither granted nor refused. So the
// following rows are not checked here:
//
//   - Attempts of a glidein, and the setup and cleanup jobs of a site. A glidein is admitted with its resubmission
//     policy, and therefore with all its attempts. corral.Site.NewAttempt decides whether the next one is legal, and
//     internal/decide/reconcile decides when it starts.
//   - Revisions of a plan, which record decisions. Pilots that a revision adds are requests.
//   - Tokens of HTCondor pools, and probes, because they serve an attempt or a site.
//   - Tasks of an open run. They are stored in the run's journal, and internal/work/run limits them.
//
// The runs of an ensemble are admitted with it and therefore do not count against a quota; the other checks apply.
//
// internal/archtest enforces this: no other package may call the store's inserting methods, except for the rows above.
package admit
