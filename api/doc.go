// Package api defines the REST contract of corrald, under /v1, and its Go client.
//
// New returns a Client of the corrald at an address, with a method for each request. A method that creates or changes
// an object returns it as corrald has recorded it; what follows at sites takes longer, and the methods named Wait wait
// for it. The package does not start corrald.
//
// The types of the root package are the wire types of the answers (corral.Site, corral.Glidein, …). This package adds
// the requests (NewSite, NewGlidein, …), the page of a list (List), the error of RFC 9457 (Problem), and the rule for
// the end of a wait (Until), which client and server share.
//
// One table maps each kind of error to its type URI, HTTP status and exit code. These numbers are defined nowhere else.
// The client derives the kind from the type, so that an error has the same kind on both sides of the wire.
//
// The Client has one invariant: every repetition that it sends by itself is safe. Reads are safe. A change contains an
// Idempotency-Key, which is random if the caller specifies none, so that corrald makes the change once and returns the
// first answer to every repetition.
package api
