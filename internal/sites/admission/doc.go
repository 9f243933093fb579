// Package admission decides which workers come into corrald, and knows which are there.
//
// Pilots and workers dial in, from every site, with the token of the attempt that brought them. A token is derived from
// the attempt's tag and corrald's key (token.go), so that none is ever stored: the database has digests only. Whether a
// token opens the door is decided from what is recorded at that moment, by a pure rule each for the worker port and for
// a site's relay (admit.go). So an attempt that was removed, or a pilot without the lease, is refused without any list
// of its own.
//
// Clusters give the rest of corrald access to admitted workers: the dispatchers of embedded clusters, the links of all
// pilots, and the pools of HTCondor, which admit their workers themselves. The resources of a cluster, with the workers
// that glideins will still bring, are an offer (offer.go); runs read it to tell whether it is worth waiting.
//
// The package asks nothing of sites. Whatever a pilot says of itself is text of a stranger, and is cut and cleaned
// before it is recorded (hosts.go).
package admission
