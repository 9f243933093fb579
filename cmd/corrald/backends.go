package main

// The transports and dialects for sites are selected only in this file: a transport by the scheme of a site's contact,
// and a dialect by the name of its batch system. The engine is independent of both; a new batch system requires a
// package, a line here, and a line in corral.BatchSystems, which help and completion use.

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/central"
	"github.com/corral-pilot/corral/staging"
	"github.com/corral-pilot/corral/staging/ftp"
	"github.com/corral-pilot/corral/staging/sftp"
)

// login returns the ssh options for corrald's own user: with that user's files, and the agent that corrald was started
// with.
func login(lg *slog.Logger) ssh.Options {
	return ssh.Options{AgentSocket: os.Getenv("SSH_AUTH_SOCK"), Log: lg}
}

// A wallet contains the ssh keys of the users of a central corrald: each user has a folder, which serves as the user's
// home directory for ssh. No user ever has access to another user's folder, or to the files and the agent of corrald's
// own user.
type wallet string

// home returns an owner's folder. access.CheckName ensures that owners' names are valid names of folders.
func (w wallet) home(owner string) string { return filepath.Join(string(w), owner) }

// login returns the ssh options for an owner. They restrict the destinations unless the owner is corrald's own user.
func (w wallet) login(lg *slog.Logger, owner string, allowed access.Contacts) (ssh.Options, error) {
	if owner == access.LocalName {
		return login(lg), nil
	}
	if err := access.CheckName(owner); err != nil {
		return ssh.Options{}, err
	}
	return ssh.Options{Home: w.home(owner), Log: lg, Dial: central.Dial(allowed)}, nil
}

// PublicKey returns the public half of an owner's key, which is created on the first request.
func (w wallet) PublicKey(owner string) (string, error) {
	if err := access.CheckName(owner); err != nil {
		return "", corral.ErrorAt(corral.Invalid, "owner", "the keys of corrald's own user are in its ~/.ssh: %w", err)
	}
	return ssh.OwnKey(w.home(owner), "corral-"+owner)
}

// Forget deletes an owner's ssh key, and the known hosts of the owner's sites.
func (w wallet) Forget(owner string) error {
	if err := access.CheckName(owner); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(w.home(owner), ".ssh"))
}

// backends returns the transports and dialects of this corrald: a transport for each kind of contact, and a dialect for
// each of corral.BatchSystems.
func backends(lg *slog.Logger, keys wallet, allowed access.Contacts) gridsite.Backends {
	return gridsite.Backends{
		Transports: map[string]gridsite.Dialer{
			"local": func(string, string) (gridsite.Conn, error) { return local.Conn{}, nil },
			"ssh": func(owner, contact string) (gridsite.Conn, error) {
				options, err := keys.login(lg, owner, allowed)
				if err != nil {
					return nil, err
				}
				return ssh.New(contact, options)
			},
		},
		Dialects: map[string]func(conn gridsite.Conn, root string) gridsite.Batch{
			corral.ForkBatch: func(conn gridsite.Conn, root string) gridsite.Batch { return fork.New(conn, root) },
			"slurm":          func(conn gridsite.Conn, root string) gridsite.Batch { return slurm.New(conn, root) },
		},
		Head: func(conn gridsite.Conn, root string) gridsite.Head { return headnode.New(conn, root) },
	}
}

// schemes returns the readers for mirrors that pilots do not read.
func schemes(lg *slog.Logger) map[string]staging.Open {
	return map[string]staging.Open{"ftp": ftp.Open, "sftp": sftp.Opener(login(lg))}
}
