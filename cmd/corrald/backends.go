package main

// What corrald speaks to sites with is chosen here and nowhere else: a transport by the scheme of a site's contact, and
// a dialect by the name of its batch system. The engine knows neither; a new batch system is a package of its own, a
// line here, and a line in corral.BatchSystems, which help and completion read.

import (
	"log/slog"
	"os"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/staging"
	"github.com/corral-pilot/corral/staging/ftp"
	"github.com/corral-pilot/corral/staging/sftp"
)

// login says as whom corrald logs in: with the files of its user, and the agent that it was started with.
func login(lg *slog.Logger) ssh.Options {
	return ssh.Options{AgentSocket: os.Getenv("SSH_AUTH_SOCK"), Log: lg}
}

// backends are what this corrald speaks to sites with: a transport for each kind of contact, and a dialect for each of
// corral.BatchSystems.
func backends(lg *slog.Logger) gridsite.Backends {
	return gridsite.Backends{
		Transports: map[string]func(contact string) (gridsite.Conn, error){
			"local": func(string) (gridsite.Conn, error) { return local.Conn{}, nil },
			"ssh":   func(contact string) (gridsite.Conn, error) { return ssh.New(contact, login(lg)) },
		},
		Dialects: map[string]func(conn gridsite.Conn, root string) gridsite.Batch{
			corral.ForkBatch: func(conn gridsite.Conn, root string) gridsite.Batch { return fork.New(conn, root) },
			"slurm":          func(conn gridsite.Conn, root string) gridsite.Batch { return slurm.New(conn, root) },
		},
		Head: func(conn gridsite.Conn, root string) gridsite.Head { return headnode.New(conn, root) },
	}
}

// schemes are how corrald reads mirrors that pilots do not read.
func schemes(lg *slog.Logger) map[string]staging.Open {
	return map[string]staging.Open{"ftp": ftp.Open, "sftp": sftp.Opener(login(lg))}
}
