// Package baseline has the policies that a plan is compared with: those of systems that see a queue of tasks and not
// the workflow behind it. Each is a pure function of what it sees and of its parameters, in a file of its own with its
// source; Control makes a sim.Control of it.
//
//	static.go       a fixed number of pilots for the whole run
//	greedy.go       a pilot for each queued task
//	falkon.go       Falkon: the queue decides how many, idle time when they go
//	glideinwms.go   glideinWMS: a frontend's requests
//	cobald.go       COBalD's linear controller: feedback from utilisation
//	hyperqueue.go   HyperQueue: a backlog of allocations
//	parsl.go        Parsl: blocks by the ratio of slots to tasks
//	single.go       pilots that run one task each: a batch job for each task (none), and Pinchak's placeholders
//
// All of them ask for pilots of one shape at one site. Other work of their programs (validation, data, several users)
// is not here, so that only decisions are compared; parameters that nothing here corresponds to are left out. The rules
// are those that the projects' documents and papers describe; where they leave something open, the file says what is
// assumed.
package baseline
