// Package metrics exports corrald's metrics to Prometheus, and is the home of its client library.
//
// Where numbers come from. Stored facts are read at each scrape, and never counted beside the store: the states of
// sites, glideins, runs and tasks, how long queues have kept attempts, and what is wrong with a site. So a restart does
// not make a number jump. Who is registered is asked of the clusters. Times of phases and outcomes of attempts follow
// the store's history from corrald's start on (history.go). The loops of sites and the server report each step and each
// request themselves; those numbers begin at 0 with corrald, as Prometheus expects of counters.
//
// Every series exists from the first scrape on, with 0: of every state, of every site, of every outcome. A rate over a
// series that appears with its first event would miss that event, and an alert on one that is absent never fires.
//
// Labels are states and outcomes, which are few, and names of sites and clusters, each beside its owner, within whom
// alone it is unique. None is of single runs or tasks, of which there may be any number; `corral usage` and the REST
// API report those. Removing a site removes its series.
//
// A metric that cannot be read is missing, and counted; the others are exported all the same (faults.go).
package metrics
