// Package scaling adapts the workers of clusters to their queues: it requests pilots when jobs are waiting for which no
// worker has room, and withdraws pilots that are no longer needed while they still wait at their site.
//
// Decide is pure: it computes requests and withdrawals, and the limits that applied, from the waiting jobs and the
// present and future workers. Keep runs the loops that call Decide, one for each cluster. As for every glidein, each
// request is stored before a site receives it, and a label marks a scale's own glideins, so nothing is lost when
// corrald ends.
//
// A job counts only while it waits in the queue; jobs whose parents have not ended are not in the queue. Waiting jobs
// are first assigned, on paper, to the free room of present workers, then to future workers, and new workers are
// requested only for the remaining jobs. So no worker is requested for a job that fits a running worker, however often
// Decide runs. If the free resources of a worker are unknown, a job is assumed to fit. The maximum applies to all cpus
// of the cluster, including cpus that other users requested and cpus of draining workers; they are counted in the
// transaction that makes the request.
//
// On paper, a worker is assigned no more jobs than fit on the largest host of a queue, and only at a site that has such
// a host. If no site has a host for a job, the job is reported, and no worker is requested for it. Disk cannot be
// requested: the disk of a site's workers is known when the first of them is present. Resources that a site did not
// provide on request are not requested there again.
//
// A worker above the minimum ends by itself when it has been idle for the scale's idle time. Workers that run a task
// are never removed, so a check of stale data only causes a delay. A site whose pilots fail is not used for a while,
// and this time doubles with each failure.
//
// The package does not plan ahead: planning for the future needs of a workflow is the planner's task
// (internal/work/provision).
package scaling
