// Package scaling keeps the workers of clusters at what their queues can use: it asks for pilots when jobs wait that no
// worker has room for, and takes pilots back that still wait at their site when nothing needs them any more.
//
// Decide is pure: from what waits and what is there or to come follow asks and withdrawals, with what cut them. Keep is
// the loops around it, one for each cluster. Each request is in the store before a site receives it, as for every
// glidein, and a label says which glideins are a scale's own: so nothing is lost when corrald ends.
//
// A job counts only when it waits in the queue: one whose parents have not ended is in none. Waiting jobs are first
// assigned, on paper, to the room of present workers, then to workers that are to come, and only the rest becomes new
// workers. So no worker is requested for a job that fits a running one, however often Decide runs. Where it is not
// known what a worker has free, a job is taken to fit. The maximum counts all cpus of the cluster, those that other
// people asked for and those that drain included, in the transaction that asks.
//
// A worker is given no more jobs, on paper, than the largest host of a queue has room for, and only at a site that has
// such a host. A job for which no site has a host is reported, and no worker is requested for it. Disk cannot be
// requested: the disk of a site's workers is known when the first of them is there. Resources that a site did not give
// on request are not requested there again.
//
// A worker above the minimum leaves by itself when it has been idle for the scale's time. None that runs a task is ever
// taken away, so a look at stale facts costs nothing but patience. A site whose pilots fail is left alone for a while,
// twice as long after each failure.
//
// It does not look ahead: what a workflow will need is the planner's business (internal/work/provision).
package scaling
