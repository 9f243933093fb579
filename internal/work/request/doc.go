// Package request defines which requests to corrald are valid.
//
// A request has a form: one JSON object with known fields (Decode), or a query with known parameters (Query), in which
// each number is in its range. It also has a meaning: a site, a glidein or a cluster that Corral could create (Site,
// Glidein, Cluster, …), subject to the known limits of its place (Place, Fit).
//
// The one invariant: a request is accepted as intended or refused. Any likely mistake is refused with the name of the
// field or parameter, before anything is done; nothing is guessed, rounded or ignored.
//
// The package does not do I/O or read the clock. Its functions map the request, the known facts and the current time to
// an object that may be created, or to the first error. It does not decide who may make a request.
package request
