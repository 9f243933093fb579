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

// A PoolConfig says whose pool it is and where. The configuration made of it is these few lines, then pool.conf, which
// all pools have in common and which says why each setting is there, then Extra.
type PoolConfig struct {
	Dir     string         // the pool's folder, absolute; made with mode 0700 if it is not there
	Release string         // HTCondor's folder, absolute
	Address netip.AddrPort // where the pool listens; the port is not 0 and stays the same over restarts
	RunAs   string         // the user whose pool it is; see AccountFor
	Extra   string         // lines of configuration that are read last, and may change everything
}

const (
	domain      = "corral.pool" // of users, files and trust; a name that no network has
	glideinName = "glidein"     // the user that a glidein's token makes it, with a number or without
)

//go:embed pool.conf
var poolConf string

// Ports of pools: above those of services, below those that Linux gives to outgoing connections, one of
// which could otherwise have a pool's port when it is started again.
const firstPort, lastPort = 20000, 32767

// FreeAddress returns an address of this machine on which nothing listens now, for a new pool. It is an error if host
// is not an address of this machine.
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

// check refuses what the daemons could not use.
func (c PoolConfig) check() error {
	if !c.Address.IsValid() || c.Address.Port() == 0 || c.Address.Addr().IsUnspecified() {
		return fmt.Errorf("the pool needs an address with a port, at which glideins find it, not %s", c.Address)
	}
	return checkFolders(c.Dir, c.Release)
}

// checkFolders refuses what configuration text cannot hold.
func checkFolders(dir, release string) error {
	return errors.Join(CheckFolder(dir), CheckFolder(release))
}

// CheckFolder reports why no HTCondor can be in a folder, or below it. Daemons in a folder with white space do not
// start; a backslash, or a macro, is not taken for what it is. Commas, quotes and other dollar signs do no harm.
func CheckFolder(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("HTCondor in %q: no absolute path", path)
	}
	if strings.ContainsAny(path, " \t\r\n\\") || strings.Contains(path, "$(") || strings.Contains(path, "$$") {
		return fmt.Errorf("HTCondor in %q: its configuration cannot name a folder with a blank, a backslash, "+
			"$( or $$ in it", path)
	}
	return nil
}

// text is the pool's configuration. Nothing outside it counts: pool.conf leaves out what the machine has in /etc.
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

// settings writes lines of configuration.
func settings(lines []line) string {
	var s strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&s, "%s = %s\n", l.key, l.value)
	}
	return s.String()
}
