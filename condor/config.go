package condor

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// A PoolConfig describes a pool's owner and location. The configuration consists of a few lines made from it, then
// pool.conf, which all pools share and which explains each setting, then Extra.
type PoolConfig struct {
	Dir     string         // the pool's folder, absolute; created with mode 0700 if missing
	Release string         // HTCondor's folder, absolute
	Address netip.AddrPort // where the pool listens; the port is fixed and not 0
	RunAs   string         // the pool's owner; see AccountFor
	Extra   string         // lines of configuration that are read last and may override any setting
}

const (
	domain      = "corral.pool" // of users, files and trust; no network uses this name
	glideinName = "glidein"     // the user of a glidein's token, with or without a number
)

//go:embed pool.conf
var poolConf string

// Ports of pools: above those of services and below the range that Linux uses for outgoing connections, one of which
// could otherwise occupy a pool's port when the pool is restarted.
const firstPort, lastPort = 20000, 32767

// FreeAddress returns an address of this machine, for a new pool, at which no program listens now. It returns an error
// if host is not an address of this machine.
func FreeAddress(host netip.Addr) (netip.AddrPort, error) {
	var err error
	for range 100 {
		address := netip.AddrPortFrom(host, uint16(firstPort+rand.IntN(lastPort-firstPort+1)))
		var l net.Listener
		if l, err = net.Listen("tcp", address.String()); err == nil {
			return address, l.Close()
		}
	}
	return netip.AddrPort{}, fmt.Errorf("looking for a free port: %w", err)
}

// check rejects values that the daemons could not use.
func (c PoolConfig) check() error {
	if !c.Address.IsValid() || c.Address.Port() == 0 || c.Address.Addr().IsUnspecified() {
		return fmt.Errorf("the pool's address must have a port and be specific, so that glideins find it, not %s", c.Address)
	}
	return checkFolders(c.Dir, c.Release)
}

// checkFolders rejects names that configuration text cannot contain.
func checkFolders(dir, release string) error {
	return errors.Join(CheckFolder(dir), CheckFolder(release))
}

// CheckFolder reports why HTCondor cannot be installed in or below a folder. Daemons in a folder with white space do
// not start, and backslashes and macros are interpreted. Commas, quotes and other dollar signs are harmless.
func CheckFolder(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("HTCondor in %q: the path must be absolute", path)
	}
	if strings.ContainsAny(path, " \t\r\n\\") || strings.Contains(path, "$(") || strings.Contains(path, "$$") {
		return fmt.Errorf("HTCondor in %q: its configuration cannot name a folder with a blank, a backslash, "+
			"$( or $$ in it", path)
	}
	return nil
}

// text returns the pool's configuration. It is complete: pool.conf excludes the machine's configuration in /etc.
func (c PoolConfig) text(owner Account) string {
	var s strings.Builder
	s.WriteString(settings([]line{
		{"RELEASE_DIR", c.Release},
		{"LOCAL_DIR", c.Dir},
		{"DEFAULT_DOMAIN_NAME", domain},
		{"OWNER", owner.Name + "@" + domain},
		{"GLIDEIN", glideinName + "*@" + domain},
		{"CONDOR_HOST", c.Address.Addr().String()},
		{"COLLECTOR_HOST", c.Address.String()},
		{"NETWORK_INTERFACE", c.Address.Addr().String()},
		{"SHARED_PORT_PORT", fmt.Sprint(c.Address.Port())},
	}))
	fmt.Fprintf(&s, "\n%s\ninclude : %s\n", poolConf, filepath.Join(c.Dir, revokedFile))
	if c.Extra != "" {
		fmt.Fprintf(&s, "\n# --- What was added for this pool.\n%s\n", strings.TrimRight(c.Extra, "\n"))
	}
	return s.String()
}

// settings formats lines of configuration.
func settings(lines []line) string {
	var s strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&s, "%s = %s\n", l.key, l.value)
	}
	return s.String()
}
