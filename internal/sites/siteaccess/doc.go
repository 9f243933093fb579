// Package siteaccess is corrald's way to its sites.
//
// A Reach holds one connection for each site that is behind one: logging in may need a person, so all that corrald
// does at the site goes over it, for as long as corrald runs. Everybody gets a gridsite.Access from it, and to close
// that closes nothing that others use. Transports without a connection are dialled for each use.
//
// Somebody may ask about a site before there is any: a person who creates it wants to hear at once what is wrong with
// the contact, the root or the options (check.go). The connection of that visit waits for the site to be created.
//
// A Prober measures what only a job at a site can see: it submits a small one, reads what that writes, and leaves
// nothing (probe.go). It is asked by people, about the nodes of a site or about the network between them and a pool
// (survey.go). A probe's tag is recorded before it is submitted, so that the next corrald ends what this one leaves
// when it dies.
//
// A Relay is the way back, for workers whose nodes cannot reach corrald (relay.go).
package siteaccess
