package server

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// Workers knows who is registered in the clusters now; the engine's Clusters is one.
type Workers interface {
	// Workers returns the workers of a cluster, in the order of their ids.
	Workers(cluster corral.ClusterID) []corral.Worker

	// Changed returns a channel that is closed when a worker comes or goes next. Take it before
	// calling Workers.
	Changed() <-chan struct{}
}

// Reach gets to sites, those among them that are about to be created and have no id yet; reach.Reach is one.
type Reach interface {
	// ExpandRoot returns the site's root with the variable in front of it as a login at the site has it.
	ExpandRoot(ctx context.Context, site corral.Site, acceptHostKey bool) (string, error)

	// CheckSite reports why a site cannot be used: it is not reached, its root is not writable or holds what is not
	// Corral's, or its batch system refuses its options. It leaves nothing at the site.
	CheckSite(ctx context.Context, site corral.Site, acceptHostKey bool) error

	// Facts says what the batch system of a site has; facts without a time mean that it tells nothing.
	Facts(ctx context.Context, site corral.Site) (corral.SiteFacts, error)

	// Login logs in at a site, or at a contact if the site has no id yet, with the answers that ask gets, and holds
	// the connection.
	Login(ctx context.Context, site corral.Site, ask gridsite.Asker, acceptHostKey bool) error

	// JobFile returns a file of the job's directory at its site, fs.ErrNotExist if there is none.
	JobFile(ctx context.Context, site corral.Site, job corral.Job, name string) ([]byte, error)
}

// Sites measures for people what a job at a site can see, and records it; reach.Prober is one.
type Sites interface {
	// Survey finds out what a site is like, at a READY one also what its nodes are like, and records it.
	Survey(ctx context.Context, site corral.Site) (corral.SiteFacts, error)

	// ProbeNetwork measures how workers at a READY site would be reached by the pool of a cluster of kind condor. It
	// leaves nothing at the site.
	ProbeNetwork(ctx context.Context, site corral.Site, cluster corral.Cluster) (corral.NetworkProbe, error)
}

// A Catalog has the archives of worker packages; the engine's Catalog is one.
type Catalog interface {
	// Import brings the archive at source into corrald's mirror and returns its description, once it has
	// checked the signature: the content of a signature file, nil for the one beside the archive. With
	// sign corrald vouches for a local archive itself.
	Import(ctx context.Context, source string, signature []byte, sign bool) (corral.Package, error)

	// Verify reports why the package is not what it should be.
	Verify(ctx context.Context, p corral.Package) error

	// Drop removes the archive from corrald's mirror.
	Drop(p corral.Package) error

	// Check returns the packages in a mirror's index that a trusted key signed.
	Check(ctx context.Context, m corral.Mirror) ([]corral.Package, error)
}

// Releases knows which HTCondor there is for pools and for their workers; the engine's Catalog is one.
type Releases interface {
	// Release returns the folder and the version of HTCondor that ref names: a package's full name, an
	// absolute folder, or nothing for the newest there is. An Unsatisfiable error says what to do.
	Release(ctx context.Context, ref string) (dir, version string, err error)

	// CheckGlidein reports why no worker of a cluster of kind condor can run at the site.
	CheckGlidein(ctx context.Context, site corral.Site, cluster corral.Cluster) error
}

// Pools runs the HTCondor pools of clusters of kind condor, as their rows say.
type Pools interface {
	// PutToken keeps the text of the token by which an attached pool lets its user in, in place of an earlier one, for
	// as long as the cluster is not DELETED. It is called before the cluster's row is committed: a token whose
	// cluster does not exist means nothing.
	PutToken(cluster corral.ClusterID, secret string) error

	// Env returns what HTCondor's commands and corral need in their environment to use the cluster, as
	// NAME=value. PATH has only the folders that come before the user's own.
	Env(ctx context.Context, cluster corral.ClusterID) ([]string, error)
}

// Config says what the server needs beside the store, the runs and the workers. All fields but CondorRefused and
// BodyTimeout are required.
type Config struct {
	Version  string           // of corrald, for /healthz
	User     string           // as whom corrald runs, for /healthz
	Machine  corral.SiteQueue // this machine, as the queue that the batch system fork has here
	Roots    string           // the folder for sites on this machine that are created without a root
	Reach    Reach
	Sites    Sites
	Catalog  Catalog
	Releases Releases
	Pools    Pools

	// BodyTimeout is how long a request's body may take, and a second more for each MiB of it; 0: 30 s.
	BodyTimeout time.Duration

	// CondorRefused is why this corrald has no clusters of kind condor, nil if it may have them.
	CondorRefused error
}
