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

// maxToken is the maximum length of a pool's token, in bytes.
const maxToken = 16 << 10

var (
	packageRule = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._+~-]{0,126}$`)
	tokenRule   = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	kinds       = []corral.ClusterKind{corral.Embedded, corral.Condor}
)

// Cluster returns the requested cluster. If the request names an address for a new pool, that address becomes the
// collector, with port 0 if the request omits the port. The token is not part of a cluster, and messages do not contain
// it.
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

// owned checks the request for a pool that corrald is to run, and returns the address at which the pool is to listen;
// empty means any.
func (k *checker) owned(in api.NewCluster) (address string) {
	k.invalid(in.Token != "", "token", "requires collector, the address of its pool")
	k.invalid(in.Schedd != "", "schedd", "requires collector, the address of its pool")
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

// attached checks the request to attach an external pool. The schedd's name becomes a word of HTCondor's configuration,
// where a blank or a quote would end it.
func (k *checker) attached(in api.NewCluster) {
	k.invalid(in.Address != "", "address",
		"cannot be used with collector: an attached pool already listens at an address")
	k.hostPort("collector", in.Collector)
	k.invalid(in.Token == "", "token", "missing: the pool at %s requires one", in.Collector)
	k.invalid(len(in.Token) > maxToken || !tokenRule.MatchString(in.Token), "token",
		"is not the text of an IDTOKEN: three words of base64 separated by dots")
	k.text("schedd", in.Schedd)
	k.invalid(strings.ContainsAny(in.Schedd, " \"'\\"), "schedd", "%.80q contains a blank or a quote", in.Schedd)
}

// CheckStart checks a request to start a cluster.
func CheckStart(in api.StartCluster) error {
	var k checker
	k.htcondor(in.HTCondor)
	k.invalid(in.Newest && in.HTCondor != "", "newest", "cannot be used with htcondor")
	return k.err
}

// htcondor checks the HTCondor release of a pool; empty means the newest one. A relative folder is refused, because the
// client does not know corrald's working directory.
func (k *checker) htcondor(ref string) {
	folder := filepath.IsAbs(ref) && filepath.Clean(ref) != "/" && !strings.ContainsFunc(ref, unicode.IsControl)
	k.invalid(ref != "" && !folder && !packageRule.MatchString(ref), "htcondor",
		"%.80q is neither the name of a package nor an absolute folder", ref)
}
