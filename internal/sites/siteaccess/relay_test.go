package siteaccess

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

func TestWhoMayHaveARelay(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const embedded, here, there = corral.ClusterID(1), corral.ClusterID(2), corral.ClusterID(3)
	pools := map[corral.ClusterID]reconcile.Need{
		here: {Cluster: corral.Cluster{Collector: "127.0.0.1:9618"}}, there: {Cluster: corral.Cluster{Collector: "192.0.2.1:9618"}},
	}
	for _, tt := range []struct {
		name     string
		contact  string
		outbound *bool
		mode     corral.BrokerMode
		cluster  corral.ClusterID
		want     bool
		need     bool
	}{
		{"asked for", "ssh://hpc", &yes, corral.BrokerRelay, embedded, true, true},
		{"nothing is known of the nodes", "ssh://hpc", nil, corral.BrokerAuto, embedded, true, false},
		{"no mode is auto", "ssh://hpc", nil, "", embedded, true, false},
		{"nodes have no way", "ssh://hpc", &no, corral.BrokerAuto, there, true, true},
		{"nodes have a way", "ssh://hpc", &yes, corral.BrokerAuto, embedded, false, false},
		{"nodes have a way, and not to this pool", "ssh://hpc", &yes, corral.BrokerAuto, here, true, true},
		{"nodes have a way to this pool", "ssh://hpc", &yes, corral.BrokerAuto, there, false, false},
		{"no broker is wanted", "ssh://hpc", nil, corral.BrokerNone, embedded, false, false},
		{"ccb is wanted", "ssh://hpc", nil, corral.BrokerCCB, here, false, false},
		{"this machine", "local:", nil, corral.BrokerAuto, embedded, false, false},
	} {
		w := reconcile.World{Site: corral.Site{Contact: tt.contact, Facts: &corral.SiteFacts{Outbound: tt.outbound}}, Needs: pools}
		g := corral.Glidein{Broker: tt.mode, Cluster: tt.cluster}
		if got := mayHaveRelay(w, g); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := needsRelay(w, g); got != tt.need {
			t.Errorf("%s: needed is %v, want %v", tt.name, got, tt.need)
		}
	}
}
