package access

// What a request may say of the host that corrald runs on. On a central service that host is not its users': what runs
// there runs as corrald, and what is read there may be anybody's. So a user names no place of it, unless an
// administrator has granted that. Each function returns a Forbidden error at the field.

import (
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Place is a field of a request with a path on corrald's host.
type Place struct{ Field, Path string }

// CheckPaths refuses paths on corrald's host; an empty one names nothing.
func CheckPaths(who Caller, places ...Place) error {
	for _, p := range places {
		if p.Path != "" && !who.Has(corral.GrantHostPaths) {
			return corral.ErrorAt(corral.Forbidden, p.Field,
				"files on corrald's host are not yours to name: leave it out, "+
					"or ask an administrator for the grant %s", corral.GrantHostPaths)
		}
	}
	return nil
}

// CheckRelease refuses an installed HTCondor in a folder of corrald's host; a package is named by its name.
func CheckRelease(who Caller, field, htcondor string) error {
	if !filepath.IsAbs(htcondor) {
		return nil
	}
	return CheckPaths(who, Place{field, htcondor})
}

// CheckContact refuses a site that is corrald's own host, and one at which corrald would have to guess a user: without
// a name it is the one of its own process.
func CheckContact(who Caller, field, transport, user string) error {
	switch {
	case transport == "local" && !who.Has(corral.GrantLocal):
		return corral.ErrorAt(corral.Forbidden, field, "corrald's own host is not a site of yours: name one as "+
			"ssh://USER@HOST, or ask an administrator for the grant %s", corral.GrantLocal)
	case transport == "ssh" && user == "" && who.Name != LocalName:
		return corral.ErrorAt(corral.Invalid, field, "say as whom to log in: ssh://USER@HOST")
	}
	return nil
}

// CheckPool refuses to have a pool listen at an address of corrald's host that a user chooses, and to attach a pool of
// somebody else's: HTCondor's tools bring files of jobs back to where its schedd says.
func CheckPool(who Caller, address, collector string) error {
	switch {
	case who.Has(corral.GrantLocal):
	case address != "":
		return corral.ErrorAt(corral.Forbidden, "address",
			"addresses of corrald's host are not yours to choose: leave it "+
				"out, or ask an administrator for the grant %s", corral.GrantLocal)
	case collector != "":
		return corral.ErrorAt(corral.Forbidden, "collector",
			"corrald would trust that pool with files of its host: have it "+
				"run one of yours, or ask an administrator for the grant %s", corral.GrantLocal)
	}
	return nil
}

// CheckSource refuses to have corrald read a package or a mirror where it would use what is its own: files of its host,
// and, by sftp, the ssh keys of its user, which are never lent.
func CheckSource(who Caller, field, source string) error {
	scheme, _, remote := strings.Cut(source, "://")
	switch {
	case !remote || scheme == "file":
		return CheckPaths(who, Place{field, source})
	case scheme == "sftp" && who.Name != LocalName:
		return corral.ErrorAt(corral.Forbidden, field,
			"corrald would log in there with the keys of its own user, which "+
				"are lent to nobody: ask at corrald's own socket")
	}
	return nil
}
