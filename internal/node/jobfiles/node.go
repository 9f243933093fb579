package jobfiles

import "time"

// A NodeProbe requests a test of the conditions that pilots would find on a site's node.
type NodeProbe struct {
	Addresses  []string `json:"addresses"` // of corrald's worker port, as in the pilot's order
	CertDigest string   `json:"cert_digest,omitempty"`
}

// A Node is the reply, one line of JSON on standard output.
type Node struct {
	Host    string    `json:"node"`
	Libc    string    `json:"libc"`
	Reached string    `json:"reached,omitempty"` // the first of the addresses that answered
	Trouble string    `json:"trouble,omitempty"` // why none answered
	Now     time.Time `json:"now"`               // the node's clock when it wrote this
}
