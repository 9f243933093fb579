package engine

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/user"
	"path"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// variableScript prints the variable $2 as a login shell has it, after the mark $1: what stands before is the profile's.
const variableScript = `printf %s "$1"; printenv "$2"`

// ExpandRoot returns the root of a site with the variable that it begins with, as $SCRATCH/corral does, expanded by
// a login shell there. A variable that is not set, or no absolute path, is an Invalid error.
func (r *Reach) ExpandRoot(ctx context.Context, site corral.Site, acceptHostKey bool) (string, error) {
	access, err := r.enter(ctx, site, acceptHostKey)
	if err != nil {
		return "", err
	}
	defer access.Conn.Close()
	variable, below, _ := strings.Cut(strings.TrimPrefix(site.Root, "$"), "/")
	mark := rand.Text()
	res, err := access.Conn.Run(ctx, gridsite.Command{Argv: []string{"sh", "-lc", variableScript, "sh", mark, variable}})
	if err != nil {
		return "", corral.ErrorAt(corral.Unavailable, "contact", "asking %s for $%s: %w", site.Contact, variable, err)
	}
	_, value, _ := strings.Cut(string(res.Stdout), mark)
	value = strings.TrimSuffix(value, "\n")
	root := path.Join(value, below)
	if res.Exit != 0 || !path.IsAbs(value) || root == "/" || strings.ContainsFunc(value, unicode.IsControl) {
		return "", corral.ErrorAt(corral.Invalid, "root", "$%s is %.80q at %s, which is no absolute path: name the directory itself",
			variable, value, site.Contact)
	}
	return root, nil
}

// rootMark is the file that says that a directory is a site's root and goes with it, and whose it is.
const rootMark = ".corral-site"

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

// ownerScript has a function that says of a marked directory $1 whose it is, if not $2's.
const ownerScript = `
other() {
	[ -e "$1/` + rootMark + `" ] || return 1
	owner=$(sed -n 's/^owner: //p' "$1/` + rootMark + `")
	case $owner in "" | "$2") return 1 ;; esac
	echo "$1 belongs to a site of another corrald, that of ${owner#* }: choose another root or, if that one is gone for good, remove it by hand" >&2
}
`

// checkRootScript refuses a root $1 that is, or is in, that of another owner than $2, or has something in it and is not
// marked as ours, unless it was ours before ($3), and makes and removes a directory in the nearest of its ancestors that
// exists.
const checkRootScript = ownerScript + `
a=$1
while :; do
	other "$a" "$2" && exit 1
	[ "$a" != / ] || break
	a=$(dirname -- "$a")
done
d=$1
while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done
[ -d "$d" ] || { echo "$d is not a directory" >&2; exit 1; }
if [ "$d" = "$1" ] && [ -z "$3" ] && [ ! -e "$d/` + rootMark + `" ] && [ -n "$(ls -A -- "$d")" ]; then
	echo "it is not empty, and removing the site would remove all that is in it" >&2
	exit 1
fi
mkdir -- "$d/.corral-$$" && rmdir -- "$d/.corral-$$"
`

// checkRoot returns why a site of this owner cannot have its root, empty if it can.
func checkRoot(ctx context.Context, conn gridsite.Conn, site corral.Site, owner string) (string, error) {
	argv := []string{"sh", "-c", checkRootScript, "check", path.Clean(site.Root), owner, site.PackageDigest}
	res, err := conn.Run(ctx, gridsite.Command{Argv: argv})
	if err != nil || res.Exit == 0 {
		return "", err
	}
	return lastLine(append(res.Stdout, res.Stderr...)), nil
}
