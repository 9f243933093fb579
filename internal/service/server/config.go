package server

import (
	"context"
	"log/slog"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/service/metrics"
	"github.com/corral-pilot/corral/internal/service/outage"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	carrying "github.com/corral-pilot/corral/internal/work/ensembles"
	"github.com/corral-pilot/corral/internal/work/run"
)

// Config says what the server needs beside the store. CondorRefused, Audit and Bounds may be left out.
type Config struct {
	Version string           // of corrald, for /healthz
	User    string           // as whom corrald runs, for /healthz
	Machine corral.SiteQueue // this machine, as the queue that the batch system fork has here
	Folders Folders

	Runs *run.Manager
	Workers
	Catalog *delivery.Catalog // has worker packages, and the HTCondors for pools
	Reach   *siteaccess.Reach // gets to sites, those among them that are about to be created and have no id yet
	Prober  Prober
	Pools   Pools
	Metrics *metrics.Metrics // answers /metrics, and is told of each request

	// Keys have the ssh keys of those who ask a central corrald.
	Keys TokenKeys

	// Audit has a line for each request that may have changed something; nil: the log has it.
	Audit *slog.Logger

	// Bounds are those of requests.
	Bounds Bounds

	// CondorRefused is why this corrald has no clusters of kind condor, nil if it may have them.
	CondorRefused error
}

// Bounds are those of requests.
type Bounds struct {
	Pace   rest.Pace   // of bodies; zero: rest.DefaultPace
	Visits VisitBounds // of a central corrald at its users' sites; zero: it goes nowhere
}

// Workers are what is known of workers now.
type Workers struct {
	Clusters *admission.Clusters // which are registered
	Outages  *outage.Keeper      // which are out of reach
}

// Folders are those on this machine that requests are about.
type Folders struct {
	Sites     string         // for sites on this machine that are created without a root
	Ensembles carrying.Shelf // has the workflows of ensembles
}

// A Prober measures what only a job at a site can see, which takes a minute at a real one; siteaccess.Prober does.
type Prober interface {
	// Survey finds out what a site is like, at a READY one also what its nodes are like, and records it.
	Survey(ctx context.Context, site corral.Site) (corral.SiteFacts, error)

	// ProbeNetwork measures how workers at a READY site would be reached by the pool of a cluster of kind condor. It
	// leaves nothing at the site.
	ProbeNetwork(ctx context.Context, site corral.Site, cluster corral.Cluster) (corral.NetworkProbe, error)
}

// Pools run the HTCondor pools of clusters of kind condor, as their rows say. It takes daemons to have one;
// condorpool.Keepers are those of corrald.
type Pools interface {
	// PutToken keeps the text of the token by which an attached pool lets its user in, in place of an earlier one, for
	// as long as the cluster is not DELETED. It is called before the cluster's row is committed: a token whose
	// cluster does not exist means nothing.
	PutToken(cluster corral.ClusterID, secret string) error

	// Env returns what HTCondor's commands and corral need in their environment to use the cluster, as
	// NAME=value. PATH has only the folders that come before the user's own.
	Env(ctx context.Context, cluster corral.ClusterID) ([]string, error)
}
