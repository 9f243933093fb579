// Package baseline implements the policies with which a plan is compared: those of systems that know a queue of tasks,
// but not the workflow behind it. Each policy is a pure function of its observations and parameters, in a file of its
// own that names its source; Control converts it to a sim.Control.
//
//	static.go       a fixed number of pilots for the whole run
//	greedy.go       a pilot for each queued task
//	falkon.go       Falkon: the queue determines the number, idle time the release
//	glideinwms.go   glideinWMS: a frontend's requests
//	cobald.go       COBalD's linear controller: feedback from utilization
//	hyperqueue.go   HyperQueue: a backlog of allocations
//	parsl.go        Parsl: blocks by the ratio of slots to tasks
//	single.go       pilots that run one task each: a batch job for each task (none), and Pinchak's placeholders
//
// All of them request pilots of one shape at one site. Other functions of the systems (validation, data, several users)
// are omitted, so that only decisions are compared; parameters without an equivalent here are also omitted. The rules
// follow the projects' documentation and papers; if these leave something open, the file states the assumption.
package baseline
