package access

import (
	"slices"

	"github.com/corral-pilot/corral"
)

// A Quota is something of which an owner may have a limited number on a central service.
type Quota struct {
	Name    string // as in --max-NAME
	What    string // in the plural
	Default int
	Room    string // the command that makes room for more
}

// Quotas lists all of them.
var Quotas = []Quota{
	{"sites", "sites", 100, "corral site remove SITE"},
	{"clusters", "clusters", 100, "corral cluster remove CLUSTER"},
	{"glideins", "glideins that are not over", 10_000, "corral glidein remove ID"},
	{"runs", "runs, those that are over among them", 20_000, "corral runs remove ID"},
	{"runs-open", "runs that are not over", 2000, "corral runs cancel ID"},
	{"plans", "plans", 20_000, "corral plan remove ID"},
	{"profiles", "profiles", 1000, "corral profile remove NAME"},
	{"ensembles", "ensembles", 1000, "corral ensemble remove ID"},
	{"tokens", "valid tokens", 100, "corral token revoke ID"},
}

// Most is how many an owner may have, by names of Quotas. What is absent or 0 has no limit, and so has everything in a
// nil Most.
type Most map[string]int

// Check refuses more of something to an owner who has some, where they would be more than there may be. corrald's own
// user has no limits, and neither has corrald itself.
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
	return corral.Errorf(corral.Internal, "%q has a limit and no quota", name)
}

// Unlimited reports whether an owner's objects are not counted.
func Unlimited(owner string) bool { return slices.Contains(reserved, owner) }
