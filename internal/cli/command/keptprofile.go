package command

// corrald keeps profiles under names, so that plans on any machine can use them, and so that they can grow run after
// run. What a profile is made of is read here where it is a file.

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/workflow/profile"
)

var profiles = noun[string]{name: "profile", key: named}

func keptProfileVerbs(p *printer) []*cli.Command {
	return []*cli.Command{
		{
			Name: "save", Flags: []cli.Flag{
				&cli.BoolFlag{Name: "merge", Usage: "add to the profile of that name, if there is one"}, keyFlag(),
			},
			Action: creating(func(c *cli.Context) (api.NewProfile, error) { return newProfile(c, p) },
				(*api.Client).SaveProfile, func(_ *cli.Context, _ *api.Client, made corral.Profile) error {
					return show(p, made, keptTable)
				}),
		},
		listVerb(p, (*api.Client).Profiles, keptTable),
		profiles.verb("show", printing((*api.Client).Profile, func(kept corral.Profile) error {
			return showKept(p, kept)
		})),
		profiles.verb("remove", printing((*api.Client).RemoveProfile, one(p, keptTable))),
		profiles.verb("history", printing((*api.Client).ProfileHistory, many(p, entryTable))),
	}
}

func newProfile(c *cli.Context, p *printer) (api.NewProfile, error) {
	sources, err := sourcesOf(c.Context, p, c.Args().Tail())
	return api.NewProfile{Name: c.Args().First(), Sources: sources, Merge: c.Bool("merge")}, err
}

// showKept shows a profile and, to people, what it says of each kind of tasks.
func showKept(p *printer, kept corral.Profile) error {
	if err := show(p, kept, keptTable); err != nil || !p.forPeople() || len(kept.Document) == 0 {
		return err
	}
	read, err := profile.ReadJSON(bytes.NewReader(kept.Document), kept.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out)
	return showClasses(p, read)
}

// keptDocument returns the document of a profile that corrald keeps.
func keptDocument(ctx context.Context, cl *api.Client, name string) ([]byte, error) {
	kept, err := cl.Profile(ctx, name)
	return kept.Document, err
}

var keptTable = listing[corral.Profile]{
	owner: func(p corral.Profile) string { return p.Owner },
	id:    func(p corral.Profile) string { return p.Name },
	none:  "no profiles are kept; `corral profile save NAME run:ID` keeps one, `corral profile library` lists others",
	columns: []column[corral.Profile]{
		{"id", func(p corral.Profile) any { return p.ID }},
		{"name", func(p corral.Profile) any { return p.Name }},
		{"runs", func(p corral.Profile) any { return p.Runs }},
		{"kinds", func(p corral.Profile) any { return p.Kinds }},
		{"tasks", func(p corral.Profile) any { return p.Tasks }},
		{"changed", func(p corral.Profile) any { return when(p.UpdatedAt) }},
		{"state", func(p corral.Profile) any { return p.State }},
		{"sources", func(p corral.Profile) any { return strings.Join(p.Sources, ", ") }},
	},
	details: []column[corral.Profile]{{"digest", func(p corral.Profile) any { return p.Digest }}},
}
