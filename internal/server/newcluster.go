package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// maxToken is how long the text of a pool's token may be, in bytes.
const maxToken = 16 << 10

var (
	hostRule    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]{0,253}[A-Za-z0-9])?$`)
	packageRule = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._+~-]{0,126}$`)
	tokenRule   = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
)

// newCluster checks a request for a cluster. Its token is not in what it returns.
func (s *Server) newCluster(ctx context.Context, in api.NewCluster, owner string) (corral.Cluster, error) {
	if err := checkCluster(in); err != nil {
		return corral.Cluster{}, err
	}
	k := corral.Cluster{Name: in.Name, Owner: owner, Kind: in.Kind, Attached: in.Collector != "",
		Collector: in.Collector, Schedd: in.Schedd, HTCondor: in.HTCondor}
	if k.Kind != corral.Condor {
		return k, nil
	}
	_, err := s.canRun(ctx, k.HTCondor)
	if err != nil || in.Address == "" {
		return k, err
	}
	k.Collector, err = listenable(ctx, in.Address)
	return k, err
}

// canRun returns the version of htcondor, or why this corrald cannot have a pool that is made of it.
func (s *Server) canRun(ctx context.Context, htcondor string) (version string, err error) {
	if s.cfg.CondorRefused != nil {
		return "", s.cfg.CondorRefused
	}
	_, version, err = s.cfg.Releases.Release(ctx, htcondor)
	return version, err
}

// checkCluster checks what a cluster is asked to be. No message has the token in it.
func checkCluster(in api.NewCluster) error {
	var k checker
	k.name("name", in.Name)
	k.invalid(in.Kind != corral.Embedded && in.Kind != corral.Condor, "kind", "%.80q is none of %s, %s", in.Kind, corral.Embedded, corral.Condor)
	for _, f := range []struct{ place, value string }{{"htcondor", in.HTCondor}, {"address", in.Address},
		{"collector", in.Collector}, {"token", in.Token}, {"schedd", in.Schedd}} {
		k.invalid(f.value != "" && in.Kind == corral.Embedded, f.place, "goes with kind %s, not %s", corral.Condor, corral.Embedded)
	}
	k.htcondor("htcondor", in.HTCondor)
	if in.Collector != "" {
		k.attached(in)
		return k.err
	}
	k.invalid(in.Token != "", "token", "goes with collector: of which pool is it?")
	k.invalid(in.Schedd != "", "schedd", "goes with collector: of which pool is it?")
	_, ok := parseAddress(in.Address)
	k.invalid(in.Address != "" && !ok, "address", "%.80q is neither IP nor IP:PORT of this machine", in.Address)
	return k.err
}

// attached checks what is said of a pool that somebody else runs.
func (k *checker) attached(in api.NewCluster) {
	k.invalid(in.Address != "", "address", "goes without collector: who runs that pool has said where it listens")
	k.hostPort("collector", in.Collector)
	k.invalid(in.Token == "", "token", "missing: what lets you into the pool at %s?", in.Collector)
	k.invalid(len(in.Token) > maxToken || !tokenRule.MatchString(in.Token), "token",
		"is not the text of an IDTOKEN: three words of base64 with dots between them")
	k.text("schedd", in.Schedd)
	k.invalid(strings.ContainsAny(in.Schedd, " \"'\\"), "schedd", "%.80q has a blank or a quote in it", in.Schedd)
}

// htcondor checks what a pool is to be made of; nothing is the newest there is.
func (k *checker) htcondor(place, ref string) {
	folder := filepath.IsAbs(ref) && filepath.Clean(ref) != "/" && !strings.ContainsFunc(ref, unicode.IsControl)
	k.invalid(ref != "" && !folder && !packageRule.MatchString(ref), place,
		"%.80q is neither the name of a package nor an absolute folder", ref)
}

// hostPort checks an address that somebody dials.
func (k *checker) hostPort(place, address string) {
	host, port, err := net.SplitHostPort(address)
	n, _ := strconv.ParseUint(port, 10, 16)
	k.invalid(err != nil || n == 0 || !hostRule.MatchString(host), place, "%.80q is not HOST:PORT", address)
}

// parseAddress reads IP or IP:PORT of one interface; the port is 0 if there is none.
func parseAddress(s string) (netip.AddrPort, bool) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(ip, 0), !ip.IsUnspecified()
	}
	a, err := netip.ParseAddrPort(s)
	return a, err == nil && a.Port() != 0 && !a.Addr().IsUnspecified()
}

// listenable returns address, with a free port if it has none, if a pool can listen there.
func listenable(ctx context.Context, address string) (string, error) {
	a, _ := parseAddress(address)
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", a.String())
	if err != nil {
		kind := corral.Unsatisfiable
		if errors.Is(err, syscall.EADDRINUSE) { // which may end
			kind = corral.Conflict
		}
		return "", corral.ErrorAt(kind, "address", "no pool can listen there: %w", err)
	}
	return l.Addr().String(), l.Close()
}
