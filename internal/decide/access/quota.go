package access

import (
	"slices"

	"github.com/corral-pilot/corral"
)

// A Quota is a kind of object of which an owner may have a limited number on a central service.
type Quota struct {
	Name    string // as in --max-NAME
	What    string // description of the objects, in the plural
	Default int
	Room    string // command that makes room for more
}

// Quotas lists all quotas.
var Quotas = []Quota{
	{"sites", "sites", 100, "corral site remove SITE"},
	{"clusters", "clusters", 100, "corral cluster remove CLUSTER"},
	{"glideins", "glideins that are not over", 10_000, "corral glidein remove ID"},
	{"runs", "runs, including those that are over", 20_000, "corral runs remove ID"},
	{"runs-open", "runs that are not over", 2000, "corral runs cancel ID"},
	{"plans", "plans", 20_000, "corral plan remove ID"},
	{"profiles", "profiles", 1000, "corral profile remove NAME"},
	{"ensembles", "ensembles", 1000, "corral ensemble remove ID"},
	{"tokens", "valid tokens", 100, "corral token revoke ID"},
}

// Most maps the names of Quotas to the maximum number that an owner may have. A quota that is absent or 0 has no limit,
// so a nil Most sets no limits.
type Most map[string]int

// Check returns an error if an owner's existing objects, has, and the requested ones, more, exceed a quota. Quotas do
// not apply to corrald's own user or to corrald itself.
func (m Most) Check(name, owner string, has, more int) error {
	most := m[name]
	if most <= 0 || Unlimited(owner) || has+more <= most {
		return nil
	}
	for _, q := range Quotas {
		if q.Name == name {
			return corral.Errorf(corral.Forbidden, "%s has %d %s, and an owner may have %d (--max-%s): `%s` makes room",
				owner, has, q.What, most, name, q.Room)
		}
	}
	return corral.Errorf(corral.Internal, "%q has a limit but is not a quota", name)
}

// Unlimited reports whether the quotas do not apply to an owner.
func Unlimited(owner string) bool { return slices.Contains(reserved, owner) }
