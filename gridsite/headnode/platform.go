package headnode

import (
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// parsePlatform parses the three lines of platform.sh: kernel, machine, libc.
func parsePlatform(res gridsite.Result) (corral.Platform, error) {
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	if res.Exit != 0 || len(lines) != 3 {
		return corral.Platform{}, corral.Errorf(corral.Failed,
			"the platform of the site is unknown: exit status %d, %q, %q", res.Exit, res.Stdout, res.Stderr)
	}
	p := corral.Platform{OS: strings.ToLower(lines[0]), Arch: lines[1], Libc: lines[2]}
	switch p.Arch {
	case "amd64":
		p.Arch = "x86_64"
	case "arm64":
		p.Arch = "aarch64"
	case "i386", "i486", "i586", "i686":
		p.Arch = "x86"
	}
	return p, nil
}
