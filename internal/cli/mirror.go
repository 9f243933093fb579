package cli

// A mirror is a server with worker packages that corrald reads. If its index cannot be read when the mirror is added,
// that is not an error, because the server may become reachable later; only check reports an error.

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

var mirrors = noun[string]{name: "mirror", key: nameKey}

// mirrorVerbs are the verbs for mirrors of packages.
type mirrorVerbs struct{ *printer }

func (v mirrorVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "mirror", Category: resources,
		Subcommands: []*cli.Command{
			{
				Name: "add", Flags: []cli.Flag{keyFlag()},
				Action: creating(newMirror, (*api.Client).AddMirror,
					func(_ *cli.Context, _ *api.Client, m corral.Mirror) error { return v.showNew(m) }),
			},
			mirrorTable.listVerb(v.printer, (*api.Client).Mirrors),
			mirrors.verb("check", printing((*api.Client).CheckMirror, func(m corral.Mirror) error {
				if m.Reason != "" { // the mirror's index cannot be read
					return corral.ErrorAt(corral.Failed, "mirror "+m.Name, "%s", m.Reason)
				}
				return mirrorTable.show(v.printer, m)
			})),
			mirrors.verb("remove", printing((*api.Client).RemoveMirror, mirrorTable.one(v.printer))),
		},
	}
}

func newMirror(c *cli.Context) (api.NewMirror, error) {
	return api.NewMirror{Name: c.Args().Get(0), URL: c.Args().Get(1)}, nil
}

// showNew shows a new mirror, even if its index cannot be read, because its server may be down temporarily.
func (v mirrorVerbs) showNew(m corral.Mirror) error {
	if m.Reason != "" {
		v.say("mirror %s is added, but: %s", m.Name, m.Reason)
	}
	return mirrorTable.show(v.printer, m)
}

var mirrorTable = listing[corral.Mirror]{
	owner: func(m corral.Mirror) string { return m.Owner },
	id:    func(m corral.Mirror) string { return m.Name },
	none:  "no mirrors; sites take packages from corrald itself, or add one with `corral mirror add NAME URL`",
	columns: []column[corral.Mirror]{
		{"id", func(m corral.Mirror) any { return m.ID }},
		{"name", func(m corral.Mirror) any { return m.Name }},
		{"url", func(m corral.Mirror) any { return m.URL }},
		{"packages", func(m corral.Mirror) any { return m.Packages }},
		{"worked", func(m corral.Mirror) any {
			return fmt.Sprintf("%.1f of %.1f", m.Health.Successes, m.Health.Successes+m.Health.Failures)
		}},
		{"speed", func(m corral.Mirror) any { return fmt.Sprintf("%.1f MiB/s", m.Health.BytesPerS/(1<<20)) }},
		{"checked", func(m corral.Mirror) any { return when(m.CheckedAt) }},
		{"state", func(m corral.Mirror) any { return m.State }},
		{"reason", func(m corral.Mirror) any { return m.Reason }},
	},
}
