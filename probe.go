package corral

// A NetworkProbe says how the HTCondor pool of a cluster would reach workers at a site, measured before any worker
// starts there.
type NetworkProbe struct {
	Site     string     `json:"site"`
	Cluster  string     `json:"cluster"`
	Broker   BrokerMode `json:"broker"`   // the choice of --broker auto; empty: no worker would be handed over
	Reason   string     `json:"reason"`   // why this mode, or why none
	Measured []string   `json:"measured"` // one line per measurement
}

// String describes the probe in one sentence, for histories.
func (p NetworkProbe) String() string {
	if p.Broker == "" {
		return "no worker of cluster " + p.Cluster + " could be reached: " + p.Reason
	}
	return "workers of cluster " + p.Cluster + " would be reached by --broker " + string(p.Broker) + ": " + p.Reason
}
