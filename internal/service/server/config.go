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

// Config holds the server's dependencies other than the store. CondorRefused, Audit and Bounds are optional.
type Config struct {
	Version string           // corrald's version, shown by /healthz
	User    string           // the user that corrald runs as, shown by /healthz
	Machine corral.SiteQueue // this machine, described as a queue of the batch system fork
	Folders Folders

	Runs *run.Manager
	Workers
	Catalog *delivery.Catalog // lists worker packages and HTCondor releases for pools
	Reach   *siteaccess.Reach // connects to sites, including ones that are still to be created and have no id
	Prober  Prober
	Pools   Pools
	Metrics *metrics.Metrics // answers /metrics and records each request

	// Keys manages the ssh keys of a central corrald's users.
	Keys TokenKeys

	// Audit gets a line for each request that may have changed something; nil: the log gets it.
	Audit *slog.Logger

	// Bounds limits requests.
	Bounds Bounds

	// CondorRefused is the reason why this corrald has no condor clusters, or nil if it may have them.
	CondorRefused error
}

// Bounds limits requests.
type Bounds struct {
	Pace   rest.Pace   // minimum pace of bodies; zero: rest.DefaultPace
	Visits VisitBounds // limits a central corrald's connections to its users' sites; zero: none are allowed
}

// Workers provides the present state of workers.
type Workers struct {
	Clusters *admission.Clusters // the registered workers
	Outages  *outage.Keeper      // the unreachable workers
}

// Folders holds the folders on this machine that requests use.
type Folders struct {
	Sites     string         // for local sites that are created without a root
	Ensembles carrying.Shelf // contains the workflows of ensembles
}

// A Prober measures properties that are visible only at a site, which takes a minute at a real one. It is implemented
// by siteaccess.Prober.
type Prober interface {
	// Survey determines the properties of a site, including those of the nodes of a READY site, and records them.
	Survey(ctx context.Context, site corral.Site) (corral.SiteFacts, error)

	// ProbeNetwork measures how a condor cluster's pool would reach workers at a READY site. It leaves nothing at the
	// site.
	ProbeNetwork(ctx context.Context, site corral.Site, cluster corral.Cluster) (corral.NetworkProbe, error)
}

// Pools runs the HTCondor pools of condor clusters according to their rows. A pool consists of daemons; corrald's
// pools are condorpool.Keepers.
type Pools interface {
	// PutToken stores the token by which an attached pool admits its user, replacing any earlier one, until the
	// cluster is DELETED. It is called before the cluster's row is committed: a token without a cluster has no
	// effect.
	PutToken(cluster corral.ClusterID, secret string) error

	// Env returns the environment variables that HTCondor's commands and corral need to use the cluster, as
	// NAME=value. PATH contains only the folders to be put before the user's own.
	Env(ctx context.Context, cluster corral.ClusterID) ([]string, error)
}
