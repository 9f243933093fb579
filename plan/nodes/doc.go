// Package nodes decides whether hosts of pilots can be on the nodes of a site at the same time.
//
// A host is a share of one node: some of its cpus, memory, GPUs and disk. Whether a number of hosts fits is the problem
// of vector bin packing with nodes of several types. [Fit] shows a packing: it places the hosts, the largest first, on
// the nodes that they fill best; if that fails for a few hosts, it tries all packings. [Exceeds] proves that there is
// none: the total of one component is too small, or there are more large hosts than nodes have room for. For many hosts
// of several shapes, neither may be true.
//
// Components of a host that are zero or unknown (corral.Unlimited) need no room.
package nodes
