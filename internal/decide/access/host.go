package access

// These functions limit the paths and addresses of corrald's own host that a request may name. On a central service
// that host does not belong to the users: processes there run as corrald's user, and files there may belong to anyone.
// So users must not name places on it without a grant from an administrator. Each function returns a Forbidden error at
// the field.

import (
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Place is a field of a request that contains a path on corrald's host.
type Place struct{ Field, Path string }

// CheckPaths refuses paths on corrald's host; empty paths are ignored.
func CheckPaths(who Caller, places ...Place) error {
	for _, p := range places {
		if p.Path != "" && !who.Has(corral.GrantHostPaths) {
			return corral.ErrorAt(corral.Forbidden, p.Field,
				"you may not name files on corrald's host: leave it out, "+
					"or ask an administrator for the grant %s", corral.GrantHostPaths)
		}
	}
	return nil
}

// CheckRelease refuses an HTCondor installed in a folder on corrald's host; a package is given by its name.
func CheckRelease(who Caller, field, htcondor string) error {
	if !filepath.IsAbs(htcondor) {
		return nil
	}
	return CheckPaths(who, Place{field, htcondor})
}

// CheckContact refuses a site on corrald's own host, and a contact without a user name, for which ssh would use the
// name of corrald's own user.
func CheckContact(who Caller, field, transport, user string) error {
	switch {
	case transport == "local" && !who.Has(corral.GrantLocal):
		return corral.ErrorAt(corral.Forbidden, field, "corrald's own host cannot be your site: name one as "+
			"ssh://USER@HOST, or ask an administrator for the grant %s", corral.GrantLocal)
	case transport == "ssh" && user == "" && who.Name != LocalName:
		return corral.ErrorAt(corral.Invalid, field, "the user name is missing: ssh://USER@HOST")
	}
	return nil
}

// CheckPool refuses to let a user choose the address of corrald's host at which a pool listens, and to attach an
// external pool: HTCondor's tools transfer files of jobs back to the path that its schedd names.
func CheckPool(who Caller, address, collector string) error {
	switch {
	case who.Has(corral.GrantLocal):
	case address != "":
		return corral.ErrorAt(corral.Forbidden, "address",
			"you may not choose addresses of corrald's host: leave it "+
				"out, or ask an administrator for the grant %s", corral.GrantLocal)
	case collector != "":
		return corral.ErrorAt(corral.Forbidden, "collector",
			"corrald would trust that pool with files of its host: let it "+
				"run a pool for you, or ask an administrator for the grant %s", corral.GrantLocal)
	}
	return nil
}

// CheckSource refuses to read a package or a mirror with corrald's own access: from files of its host, or by sftp with
// the ssh keys of its user, which others may never use.
func CheckSource(who Caller, field, source string) error {
	scheme, _, remote := strings.Cut(source, "://")
	switch {
	case !remote || scheme == "file":
		return CheckPaths(who, Place{field, source})
	case scheme == "sftp" && who.Name != LocalName:
		return corral.ErrorAt(corral.Forbidden, field,
			"corrald would log in there with the keys of its own user, which "+
				"others may not use: use corrald's own socket")
	}
	return nil
}
