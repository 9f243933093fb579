package cli

// corrald stores profiles under names, so that plans on any machine can use them and every run can add to them. Sources
// of profiles that are files are read by this program.

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

var profiles = noun[string]{name: "profile", key: nameKey}

func (v profileVerbs) keptCommands() []*cli.Command {
	return []*cli.Command{
		{
			Name: "save", Flags: []cli.Flag{
				&cli.BoolFlag{Name: "merge", Usage: "add to the profile of that name, if there is one"}, keyFlag(),
			},
			Action: creating(v.newProfile,
				(*api.Client).SaveProfile, func(_ *cli.Context, _ *api.Client, made corral.Profile) error {
					return profileTable.show(v.printer, made)
				}),
		},
		profileTable.listVerb(v.printer, (*api.Client).Profiles),
		profiles.verb("show", printing((*api.Client).Profile, v.showKept)),
		profiles.verb("remove", printing((*api.Client).RemoveProfile, profileTable.one(v.printer))),
		profiles.verb("history", printing((*api.Client).ProfileHistory, entryTable.many(v.printer))),
	}
}

func (v profileVerbs) newProfile(c *cli.Context) (api.NewProfile, error) {
	sources, err := v.sources(c.Context, c.Args().Tail())
	return api.NewProfile{Name: c.Args().First(), Sources: sources, Merge: c.Bool("merge")}, err
}

// showKept shows a profile and, in a table, its kinds of tasks.
func (v profileVerbs) showKept(kept corral.Profile) error {
	if err := profileTable.show(v.printer, kept); err != nil || !v.forPeople() || len(kept.Document) == 0 {
		return err
	}
	read, err := profile.ReadJSON(bytes.NewReader(kept.Document), kept.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(v.out)
	return v.showClasses(read)
}

// profileDocument returns the document of a profile that corrald stores.
func profileDocument(ctx context.Context, cl *api.Client, name string) ([]byte, error) {
	kept, err := cl.Profile(ctx, name)
	return kept.Document, err
}

var profileTable = listing[corral.Profile]{
	owner: func(p corral.Profile) string { return p.Owner },
	id:    func(p corral.Profile) string { return p.Name },
	none:  "no stored profiles; `corral profile save NAME run:ID` stores one, `corral profile library` lists others",
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
