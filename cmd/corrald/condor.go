package main

// A cluster of kind condor is an HTCondor pool. It needs a keeper, which runs the pool's daemons, and a queue for jobs
// of runs. Keeper and queue are in independent packages, which are connected here, because only corrald uses both.

import (
	"log/slog"
	"os"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/condor/condorpool"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
)

// openPools makes the clusters of kind condor available to all other parts.
func openPools(
	lg *slog.Logger, db *store.DB, s settings, clusters *admission.Clusters, releases condorpool.Releases,
) *condorpool.Keepers {
	p := condorpool.New(lg, db, condorpool.Config{
		Dir:      s.layout.Pools(),
		Host:     s.poolAddress,
		Releases: releases,
		NewQueue: func(cluster corral.Cluster, tools condor.Tools, dir string) condorpool.Submitter {
			return schedd.New(lg.With("cluster", cluster.ID), schedd.Config{Tools: tools, Dir: dir,
				Lease: s.lease.job})
		},
		NewStream: func(
			cluster corral.ClusterID, tools condor.Tools, dir string, glideins func() []corral.Worker,
		) (*stream.Stream, error) {
			return stream.Open(lg.With("cluster", cluster), stream.Config{
				Cluster: cluster, Tools: tools, Dir: dir, Glideins: glideins, Dispatch: admission.StreamTerms(clusters),
			})
		},
		OnChange: clusters.Notify,
	})
	clusters.UsePools(p)
	return p
}

// condorRefused returns the reason why this corrald cannot run HTCondor pools.
func condorRefused() error {
	if os.Getuid() != 0 {
		return nil
	}
	return corral.Errorf(corral.Unsatisfiable,
		"corrald runs as root, whose jobs HTCondor refuses: start it with --run-as USER")
}
