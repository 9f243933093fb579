// Package admit is where a request becomes a row. Whatever asks for a new object, or for more of one, asks here, be it
// a person's request or an act of corrald's own: the pilots of a plan, of its revision, of a scale or an ensemble.
//
// Each noun has a function, which takes the transaction and what is asked for, and returns the row or the reason why
// there is none. The questions are the same for all, in one order (claim.ask):
//
//  1. who: does corrald serve the owner of the row?
//  2. uses: may that owner use the objects that the row names?
//  3. gives: is it in order, and can the site and the cluster give it now?
//  4. room: may the owner have one more, beside those there are?
//
// Then the row is stored. The first refusal is the answer: Forbidden, NotFound, Invalid, Unsatisfiable or Conflict, at
// the field of the request that it is about. A refused transaction must not be committed.
//
// What a request says by itself is judged before there is a transaction, by the function of the noun that begins with
// Read: first whether the request is in order (package request), then whether the caller may name what is in it of
// corrald's own host (access). So a person is told before anything slow is done.
//
// What the plans of a site may spend there is asked for all pilots together, since they are worth their price only
// together: Pilots asks before they are created, Reserve when they are.
//
// # What is a request
//
// A request asks for more than the owner was granted before. What carries out a request that was admitted is none: it
// was judged with the request, and a refusal halfway would leave the request neither granted nor refused. So these rows
// are not judged here:
//
//   - another attempt of a glidein, and the setup and cleanup jobs of a site: the glidein was admitted with its policy of
//     resubmission, so all of its attempts were. Whether one may follow now is corral.Site.NewAttempt's to say, and
//     internal/decide/reconcile's when;
//   - a revision of a plan, which records a decision: its pilots are requests, and pass one by one;
//   - the run of a workflow of an ensemble, as far as its number goes: the ensemble was admitted with its workflows;
//   - tokens of an HTCondor pool, and probes, which belong to a site or an attempt;
//   - tasks of an open run, which are not rows of the store: internal/work/run bounds them.
//
// internal/archtest refuses calls of the store's inserting methods from elsewhere, and names these exceptions.
package admit
