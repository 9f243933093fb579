package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/user"
	"path"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// ExpandRoot returns the root of a site with the variable that it begins with, as $SCRATCH/corral does, expanded by
// a login shell there. A variable that is not set, or no absolute path, is an Invalid error.
func (r *Reach) ExpandRoot(ctx context.Context, site corral.Site, acceptHostKey bool) (string, error) {
	access, err := r.enter(ctx, site, acceptHostKey)
	if err != nil {
		return "", err
	}
	defer access.Head.Close()
	variable, below, _ := strings.Cut(strings.TrimPrefix(site.Root, "$"), "/")
	var value string
	if login, ok := access.Head.(gridsite.Expander); ok {
		if value, err = login.Expand(ctx, variable); err != nil {
			return "", corral.ErrorAt(corral.Unavailable, "contact", "asking %s for $%s: %w", site.Contact, variable, err)
		}
	}
	root := path.Join(value, below)
	if !path.IsAbs(value) || root == "/" || strings.ContainsFunc(value, unicode.IsControl) {
		return "", corral.ErrorAt(corral.Invalid, "root", "$%s is %.80q at %s, which is no absolute path: name the directory itself",
			variable, value, site.Contact)
	}
	return root, nil
}

// owner is what the roots of this corrald's sites are marked with: something that no other corrald has, and words for
// people.
func (k Key) owner() string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte("root"))
	name := "somebody"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	host, _ := os.Hostname() // for people
	return hex.EncodeToString(mac.Sum(nil)[:8]) + " " + name + "@" + host
}

// claim is how this corrald claims the root of a site.
func (r *Reach) claim(site corral.Site) gridsite.Claim {
	return gridsite.Claim{Owner: r.owner, Before: site.PackageDigest != ""}
}

// checkRoot returns why a site cannot have its root, empty if it can.
func (r *Reach) checkRoot(ctx context.Context, head gridsite.Head, site corral.Site) (string, error) {
	err := head.Check(ctx, r.claim(site))
	var no *gridsite.Refused
	if errors.As(err, &no) {
		return no.Text, nil
	}
	return "", err
}
