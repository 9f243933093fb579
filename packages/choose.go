package packages

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
)

// Static is the libc of a package that runs with any libc: its binaries contain their own or need none.
const Static = "static"

// Choose returns the best package for a platform: the newest that runs there and, among those of one version, the one
// built for the libc closest to the platform's. If none runs there, the error is Unsatisfiable and gives the reason for
// each.
func Choose(platform corral.Platform, available []Package) (Package, error) {
	var fit []Package
	var why []string
	for _, p := range available {
		if reason := misfit(platform, p.Platform); reason != "" {
			why = append(why, p.Name+" "+reason)
		} else {
			fit = append(fit, p)
		}
	}
	if len(fit) > 0 {
		return slices.MaxFunc(fit, preference), nil
	}
	if len(why) == 0 {
		why = []string{"there are no packages at all"}
	}
	return Package{}, corral.Errorf(corral.Unsatisfiable, "no package for %s/%s with %s: %s",
		platform.OS, platform.Arch, describeLibc(platform.Libc), strings.Join(why, "; "))
}

// misfit explains why a program that needs the platform need does not run on have; "" if it does. A glibc runs all
// programs built for an older one, and another libc runs none of them.
func misfit(have, need corral.Platform) string {
	if have.OS != need.OS || have.Arch != need.Arch {
		return fmt.Sprintf("is for %s/%s", need.OS, need.Arch)
	}
	if need.Libc == Static || need.Libc == have.Libc {
		return ""
	}
	want, wantGlibc := glibcVersion(need.Libc)
	got, gotGlibc := glibcVersion(have.Libc)
	if wantGlibc && gotGlibc && CompareVersions(got, want) >= 0 {
		return ""
	}
	if wantGlibc {
		return "needs glibc " + want + " or newer"
	}
	return "needs " + need.Libc
}

// preference orders suitable packages, the best last: by version, then by closeness to the site's libc. The digest
// makes the order total, so that the same catalog always gives the same package.
func preference(a, b Package) int {
	va, _ := glibcVersion(a.Platform.Libc)
	vb, _ := glibcVersion(b.Platform.Libc)
	return cmp.Or(
		CompareVersions(a.Version, b.Version),
		cmp.Compare(closeness(a.Platform.Libc), closeness(b.Platform.Libc)),
		CompareVersions(va, vb),
		strings.Compare(a.Digest, b.Digest),
	)
}

// closeness prefers programs built for the site's own libc, because static programs cannot resolve host names through
// its name services.
func closeness(libc string) int {
	if libc == Static {
		return 0
	}
	return 1
}

// glibcVersion returns the version of a platform's glibc; false if the platform has another libc.
func glibcVersion(libc string) (string, bool) { return strings.CutPrefix(libc, "glibc") }

// describeLibc names a platform's libc in a message.
func describeLibc(libc string) string {
	if libc == "" || libc == "none" {
		return "no known libc"
	}
	return libc
}

// CompareVersions compares the versions of packages, field by field: numbers by value, anything else as text.
func CompareVersions(a, b string) int {
	as, bs := strings.FieldsFunc(a, separator), strings.FieldsFunc(b, separator)
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.ParseUint(as[i], 10, 64)
		y, errY := strconv.ParseUint(bs[i], 10, 64)
		// 0.10 is newer than 0.9, and rc2 is newer than rc1.
		order := strings.Compare(as[i], bs[i])
		if errX == nil && errY == nil {
			order = cmp.Compare(x, y)
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// separator reports whether r ends a field of a version.
func separator(r rune) bool { return strings.ContainsRune(".+~-", r) }
