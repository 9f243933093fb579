// Package admission decides which workers corrald admits, and keeps track of them.
//
// Pilots and workers connect from every site with the token of the attempt that brought them. A token is derived from
// the attempt's tag and corrald's key (token.go), so no token is ever stored: the database has only digests. Whether
// a token is accepted depends on the attempt's current record and is decided by two pure rules, one for the worker
// port and one for a site's relay (admit.go). So a removed attempt, or a pilot without the lease, is refused without
// a separate list.
//
// Clusters gives the rest of corrald access to admitted workers: the dispatchers of embedded clusters, the links of
// all pilots, and the HTCondor pools, which admit their workers themselves. A cluster's resources, including workers
// that glideins will still bring, form an offer (Clusters.Offer); runs use it to decide whether waiting is worthwhile.
//
// The package requests nothing from sites. All text that a pilot sends is untrusted, and is truncated and sanitized
// before it is recorded (admit.go).
package admission
