// Package scaling adapts the workers of clusters to their queues: it requests pilots when jobs wait that no worker
// has room for, and withdraws pilots that still wait at their site when they are no longer needed.
//
// Decide is pure: it returns requests and withdrawals, and the limits that applied, from the waiting jobs and the
// present and future workers. Keep runs the loops around it, one for each cluster. Each request is in the store
// before a site receives it, as for every glidein, and a label marks a scale's own glideins, so nothing is lost when
// corrald ends.
//
// A job counts only when it waits in the queue; jobs whose parents have not ended are not in it. Waiting jobs are
// first assigned, on paper, to the room of present workers, then to future workers, and only the rest leads to new
// workers. So no worker is requested for a job that fits a running one, however often Decide runs. If the free
// resources of a worker are unknown, a job is assumed to fit. The maximum counts all cpus of the cluster, including
// those that other people requested and draining ones, in the transaction that makes the request.
//
// A worker gets no more jobs, on paper, than the largest host of a queue has room for, and only at a site that has
// such a host. A job for which no site has a host is reported, and no worker is requested for it. Disk cannot be
// requested: the disk of a site's workers is known when the first of them is present. Resources that a site did not
// provide on request are not requested there again.
//
// A worker above the minimum leaves by itself when it has been idle for the scale's time. Workers that run a task are
// never removed, so a look at stale data costs nothing but patience. A site whose pilots fail is not used for a
// while, twice as long after each failure.
//
// It does not look ahead: planning for the future needs of a workflow is the planner's task
// (internal/work/provision).
package scaling
