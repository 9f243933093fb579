package corral

// A NetworkProbe describes how the HTCondor pool of a cluster would reach workers at a site, as measured before any
// worker starts there.
type NetworkProbe struct {
	Site     string     `json:"site"`
	Cluster  string     `json:"cluster"`
	Broker   BrokerMode `json:"broker"`   // the choice of --broker auto; empty: no worker could be reached
	Reason   string     `json:"reason"`   // why this mode was chosen, or why no mode works
	Measured []string   `json:"measured"` // one line per measurement
}

// String describes the probe in one sentence, for histories.
func (p NetworkProbe) String() string {
	if p.Broker == "" {
		return "no worker of cluster " + p.Cluster + " could be reached: " + p.Reason
	}
	return "workers of cluster " + p.Cluster + " would be reached by --broker " + string(p.Broker) + ": " + p.Reason
}
