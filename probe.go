package corral

// A NetworkProbe says how the HTCondor pool of a cluster would reach workers at a site, as it was measured there
// before there are any.
type NetworkProbe struct {
	Site     string     `json:"site"`
	Cluster  string     `json:"cluster"`
	Broker   BrokerMode `json:"broker"`   // what --broker auto would choose; empty: no worker would be handed over
	Reason   string     `json:"reason"`   // why that, or why none
	Measured []string   `json:"measured"` // one line for each thing that was measured
}

// String is the probe in one sentence, as histories have it.
func (p NetworkProbe) String() string {
	if p.Broker == "" {
		return "no worker of cluster " + p.Cluster + " could be reached: " + p.Reason
	}
	return "workers of cluster " + p.Cluster + " would be reached by --broker " + string(p.Broker) + ": " + p.Reason
}
