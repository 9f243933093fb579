// Package server answers the REST requests of package api: it contains the routes and their handlers.
//
// Each kind of object has its handlers, which list their routes in one table and contain only their own dependencies
// besides the store. A handler is one call of package rest: a Read of the present state, or a Change of it.
// rest.Resource handles the requests that all kinds have in common: a list, one object, a wait for its state, its
// history. Package request validates requests; package admit decides on requests for new objects, and creates the
// objects' rows.
//
//	sites.go      rows of sites; visit.go has the requests for which corrald connects to the site before it answers
//	glideins.go   rows of glideins, with their registered workers
//	clusters.go   rows of clusters; pools.go starts, upgrades and stops those of kind condor
//	packages.go   the catalog of worker packages; mirrors.go, the sources of their archives
//	runs.go       passes requests to package run
//	logins.go     passes requests to package login
//	ensembles.go  drafts and stores ensembles; package internal/work/ensembles runs them
//	plans.go      creates, stores and releases plans; package planning computes them
//	profiles.go   stores profiles of workflows
//	scales.go     stores how a cluster follows its queue; package scaling acts on it
//	tasks.go      tasks of runs, with their output
//	backlogs.go   a queue as shown by a site's batch system; orphans, jobs of ours there that are not in the store
//	tokens.go     creates and revokes tokens
//	owners.go     suspends owners and starts their removal; package internal/service/owners completes it
//	usages.go     the usage of owners
//	health.go     corrald itself, and its contract, openapi.yaml
//	reference.go  finds the objects named by paths, parameters and fields
//	config.go     the server's dependencies
//
// The server makes no decisions about sites and jobs. It records the request, and the engine, woken by the same
// commit, acts on it. Recognizable mistakes are refused in the answer, while a person is still there to read it. So a
// change has two parts. First, outside any transaction, the handler performs the operations that take a long time or
// contact others: a site, a mirror, a port. Then the transaction checks again the conditions that must still hold,
// writes the row with its history, and stores the answer under the request's key. Each change is harmless to repeat: an
// object that is already on its way to the requested state is returned unchanged.
//
// The one invariant: a change is in the store before its answer is sent. (Cancelling, resuming and removing a run are
// package run's own transactions, just before the one that stores the answer.)
//
// A new route needs a line in a table and a handler, an operation in openapi.yaml and a method of api.Client. Tests
// compare the three. Tests also write docs/api.md from openapi.yaml, and replay the requests of docs/api-examples.md.
package server
