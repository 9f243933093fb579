// Package siteaccess connects corrald to its sites.
//
// A Reach holds one connection for each site that needs one: logging in may require a person, so all of corrald's
// work at the site uses that connection as long as corrald runs. All callers get a gridsite.Access from it, and closing
// the Access does not affect other users. Transports without connections are dialled for each use.
//
// A site can be checked before it exists: the person who creates it should learn at once what is wrong with the
// contact, the root or the options (check.go). The connection of that check is kept until the site is created.
//
// A Prober measures properties that are visible only at a site: it submits a small job, reads its output, and leaves
// nothing behind (probe.go). People use it to examine a site's nodes or the network between them and a pool
// (survey.go). A probe's tag is recorded before it is submitted, so that if corrald dies, the next one ends the probe.
//
// A Relay provides a way back for workers whose nodes cannot reach corrald (relay.go).
package siteaccess
