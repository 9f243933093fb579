// Package api is the REST contract of corrald, under /v1, and its Go client.
//
// The nouns of the root package are the wire types of the answers (corral.Site, corral.Glidein, …).
// This package adds what only a request has (NewSite, NewGlidein, …), the page of a list (List), the
// error of RFC 9457 (Problem), and the rule for when a wait is over (Until), which client and server
// share.
//
// One table ties each kind of error to its type URI, HTTP status and exit code. It is the only place
// where these numbers stand, and the inverse goes by type, so that an error has the same kind on both
// sides of the wire.
//
// The one invariant of the Client: whatever it repeats by itself is safe to repeat. Reads are; a
// change carries an Idempotency-Key, its own random one if the caller gives none, so that corrald does
// it once and answers every repetition with the first answer.
package api
