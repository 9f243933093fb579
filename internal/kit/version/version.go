// Package version returns the version of this Corral.
package version

import "runtime/debug"

// release is set by the build (-ldflags -X); a build without it uses the module's version.
var release string

// String returns the version of this program.
func String() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
