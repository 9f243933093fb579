// Package request says what a request to corrald may be.
//
// A request has a form: one JSON object with known fields (Decode), or a query with known parameters (Query), in which
// each number keeps to its range. And it has a meaning: a site, a glidein, a cluster that Corral could create
// (Site, Glidein, Cluster, …), within what is known of the place it is for (Place, Fit).
//
// The one invariant: a request is taken as it was meant or not at all. Whatever a client may have mistyped is refused
// at the name of the field or parameter, before anything is done; nothing is guessed, rounded or left out.
//
// The package does no I/O and reads no clock: the request, what is known, and now go in; an object that may be created,
// or the first thing that is wrong, comes out. It does not say who may ask for what.
package request
