// Package metrics exports corrald's metrics to Prometheus. It is the only package that uses Prometheus's client
// library.
//
// Sources of the numbers. Stored facts are read at each scrape and never counted separately: the states of sites,
// glideins, runs and tasks, the queueing times of attempts, and the trouble of sites. So a restart does not make a
// number jump. The clusters provide the registered workers. Times of phases and outcomes of attempts follow the
// store's history from corrald's start on (history.go). The sites' loops and the server report each step and each
// request themselves; those numbers start at 0 with corrald, as Prometheus expects of counters.
//
// Every series exists from the first scrape on, with value 0: for every state, every site, every outcome. A rate over
// a series that appears with its first event would miss that event, and an alert on an absent series never fires.
//
// Labels are states and outcomes, which are few, and names of sites and clusters, each with its owner, because names
// are unique only per owner. There are no labels for single runs or tasks, whose number is unlimited; `corral usage`
// and the REST API report those. Removing a site removes its series.
//
// A metric that cannot be read is omitted and counted; all others are exported nevertheless (faults.go).
package metrics
