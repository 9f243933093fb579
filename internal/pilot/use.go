package pilot

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/staging"
)

// usePackage keeps the package that this program is part of from being pruned, until the returned
// function is called. A pilot that does not run from the site's package cache has nothing to keep.
func usePackage(lg *slog.Logger, root string) (release func()) {
	nothing := func() {}
	self, err := os.Executable()
	if err != nil {
		return nothing
	}
	dir := filepath.Dir(filepath.Dir(self)) // root/packages/HEX/bin/pilot
	if filepath.Dir(filepath.Dir(dir)) != filepath.Clean(root) {
		return nothing
	}
	return use(lg, dir)
}

// use keeps the package in dir from being pruned, until the returned function is called.
func use(lg *slog.Logger, dir string) (release func()) {
	release, err := staging.Use(dir)
	if err != nil { // the cache is over its limit for a while; nothing else is wrong
		lg.Warn("cannot note the use of the package", "err", err)
		return func() {}
	}
	return release
}
