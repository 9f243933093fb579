// Package siterelay keeps a relay on the head node of a site, through which the site's workers reach corrald and its
// pools when their nodes have no way of their own.
//
// The relay is the pilot's program with another verb, which corrald starts over its connection with the site and speaks
// with on stdin and stdout (package broker/relay). It opens no way to anything but the two targets that the gate admits
// an attempt to: the worker port, and the attempt's own pool.
//
// Whether a glidein may, or must, use the relay is a pure rule over what is recorded (rules.go). A Relay is the part of
// a site's loop that starts and ends the program by that rule (relay.go). The program has a goroutine, which keeps it
// running and never touches what the loop owns (process.go): between the two there are only the addresses and the
// trouble, under a lock.
package siterelay

import (
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/reach"
	"github.com/corral-pilot/corral/internal/reconcile"
)

// may reports whether workers of a glidein get the relay's addresses. Where it is left to us they do unless it is
// known that their nodes have a way of their own, and only through ssh: a site without has our own network.
func may(w reconcile.World, g corral.Glidein) bool {
	switch {
	case g.Broker == corral.BrokerRelay:
		return true
	case g.Broker != corral.BrokerAuto && g.Broker != "", !strings.HasPrefix(w.Site.Contact, "ssh:"):
		return false
	}
	outbound := known(w.Site)
	return outbound == nil || !*outbound || poolIsHidden(w, g)
}

// needs reports whether a glidein that may have the relay can do nothing without.
func needs(w reconcile.World, g corral.Glidein) bool {
	if !may(w, g) {
		return false
	}
	outbound := known(w.Site)
	return g.Broker == corral.BrokerRelay || outbound != nil && !*outbound || poolIsHidden(w, g)
}

// known returns whether the site's nodes reach other machines; nil if nobody has found out.
func known(site corral.Site) *bool {
	if site.Facts == nil {
		return nil
	}
	return site.Facts.Outbound
}

// poolIsHidden reports whether the pool of a glidein listens where only its own machine reaches it.
func poolIsHidden(w reconcile.World, g corral.Glidein) bool {
	n, condor := w.Needs[g.Cluster]
	return condor && reach.OnLoopback(n.Cluster.Collector)
}
