package request

import (
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// maxToken is how long the text of a pool's token may be, in bytes.
const maxToken = 16 << 10

var (
	packageRule = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._+~-]{0,126}$`)
	tokenRule   = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	kinds       = []corral.ClusterKind{corral.Embedded, corral.Condor}
)

// Cluster returns the cluster that is asked for. Where the request names an address for a new pool, that is the
// collector, with port 0 if the request leaves the port open. The token is not part of a cluster, and neither the
// cluster nor any message has it.
func Cluster(in api.NewCluster) (corral.Cluster, error) {
	var k checker
	k.name("name", in.Name)
	k.invalid(!slices.Contains(kinds, in.Kind), "kind", "%.80q is none of %s", in.Kind, words(kinds))
	for _, f := range []struct{ place, value string }{{"htcondor", in.HTCondor}, {"address", in.Address},
		{"collector", in.Collector}, {"token", in.Token}, {"schedd", in.Schedd}} {
		k.invalid(f.value != "" && in.Kind == corral.Embedded, f.place,
			"needs kind %s, not %s", corral.Condor, corral.Embedded)
	}
	k.htcondor(in.HTCondor)
	collector := in.Collector
	if in.Collector != "" {
		k.attached(in)
	} else {
		collector = k.owned(in)
	}
	return corral.Cluster{Name: in.Name, Kind: in.Kind, Attached: in.Collector != "",
		Collector: collector, Schedd: in.Schedd, HTCondor: in.HTCondor}, k.err
}

// owned checks what is said of a pool that corrald is to run, and returns where the pool is to listen; nothing:
// anywhere.
func (k *checker) owned(in api.NewCluster) (address string) {
	k.invalid(in.Token != "", "token", "needs collector as well: which pool does it belong to?")
	k.invalid(in.Schedd != "", "schedd", "needs collector as well: which pool does it belong to?")
	if in.Address == "" {
		return ""
	}
	a, err := netip.ParseAddrPort(in.Address)
	ip, errIP := netip.ParseAddr(in.Address)
	if errIP == nil {
		a = netip.AddrPortFrom(ip, 0)
	}
	one := errIP == nil || err == nil && a.Port() != 0
	k.invalid(!one || a.Addr().IsUnspecified(), "address",
		"%.80q is neither IP nor IP:PORT of this machine", in.Address)
	return a.String()
}

// attached checks what is said of a pool that somebody else runs. The schedd's name becomes a word of HTCondor's
// configuration, where a blank or a quote would end it.
func (k *checker) attached(in api.NewCluster) {
	k.invalid(in.Address != "", "address",
		"cannot be given with collector: the pool listens where those who run it have said")
	k.hostPort("collector", in.Collector)
	k.invalid(in.Token == "", "token", "missing: what lets you into the pool at %s?", in.Collector)
	k.invalid(len(in.Token) > maxToken || !tokenRule.MatchString(in.Token), "token",
		"is not the text of an IDTOKEN: three words of base64 with dots between them")
	k.text("schedd", in.Schedd)
	k.invalid(strings.ContainsAny(in.Schedd, " \"'\\"), "schedd", "%.80q has a blank or a quote in it", in.Schedd)
}

// CheckStart checks a request to start a cluster.
func CheckStart(in api.StartCluster) error {
	var k checker
	k.htcondor(in.HTCondor)
	k.invalid(in.Newest && in.HTCondor != "", "newest", "cannot be given with htcondor")
	return k.err
}

// htcondor checks what a pool is to be made of; nothing is the newest there is. A relative folder is refused, because
// corrald's own folder means nothing to the client.
func (k *checker) htcondor(ref string) {
	folder := filepath.IsAbs(ref) && filepath.Clean(ref) != "/" && !strings.ContainsFunc(ref, unicode.IsControl)
	k.invalid(ref != "" && !folder && !packageRule.MatchString(ref), "htcondor",
		"%.80q is neither the name of a package nor an absolute folder", ref)
}
