package cli

// Owners are the users with objects at a central corrald. Administrators can see the number of each owner's objects,
// and can suspend and end accounts.

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

var owners = noun[string]{name: "owner", key: nameKey}

// ownerVerbs are the verbs for owners of accounts.
type ownerVerbs struct{ *printer }

func (v ownerVerbs) command() *cli.Command {
	reason := func() cli.Flag {
		return &cli.StringFlag{Name: "reason", Usage: "`WHY`, shown to refused requests"}
	}
	return &cli.Command{
		Name: "owner",
		Subcommands: []*cli.Command{
			ownerTable.listVerb(v.printer, (*api.Client).Owners),
			owners.verb("show", printing((*api.Client).Owner, ownerTable.one(v.printer))),
			owners.verb("history", printing((*api.Client).OwnerHistory, entryTable.many(v.printer))),
			owners.verb("suspend", v.suspend, reason(), &cli.BoolFlag{Name: "off", Usage: "admit the owner again"}),
			owners.verb("end", v.end, reason(), waitFlag("nothing of it is left but records"), timeoutFlag()),
		},
	}
}

// suspend suspends an account or, with --off, resumes it. An account that is already suspended keeps its original
// reason.
func (v ownerVerbs) suspend(c *cli.Context, cl *api.Client, name string) error {
	if c.Bool("off") {
		if c.IsSet("reason") {
			return corral.ErrorAt(corral.Invalid, "--reason", "cannot be used with --off")
		}
		return printing((*api.Client).ResumeOwner, ownerTable.one(v.printer))(c, cl, name)
	}
	suspend := func(cl *api.Client, ctx context.Context, name string) (corral.Owner, error) {
		return cl.SuspendOwner(ctx, name, api.NewOwnerState{Reason: c.String("reason")})
	}
	return printing(suspend, ownerTable.one(v.printer))(c, cl, name)
}

// end ends an account and, with --wait, waits until the account has ended. If the command is repeated, it continues to
// wait, because corrald handles the second request like the first.
func (v ownerVerbs) end(c *cli.Context, cl *api.Client, name string) error {
	if err := checkWait(c); err != nil {
		return err
	}
	o, err := cl.EndOwner(c.Context, name, api.NewOwnerState{Reason: c.String("reason")})
	if err == nil && c.Bool("wait") {
		o, err = cl.WaitOwnerEnded(c.Context, name, c.Duration("timeout"))
	}
	if err != nil {
		return err
	}
	return ownerTable.show(v.printer, o)
}

var ownerTable = listing[corral.Owner]{
	id:   func(o corral.Owner) string { return o.Name },
	none: "no owners",
	columns: []column[corral.Owner]{
		{"name", func(o corral.Owner) any { return o.Name }},
		{"state", func(o corral.Owner) any { return o.State }},
		{"tokens", func(o corral.Owner) any { return o.Has.Tokens }},
		{"sites", func(o corral.Owner) any { return o.Has.Sites }},
		{"clusters", func(o corral.Owner) any { return o.Has.Clusters }},
		{"glideins", func(o corral.Owner) any { return o.Has.Glideins }},
		{"runs", func(o corral.Owner) any { return o.Has.Runs }},
		{"reason", func(o corral.Owner) any { return o.Reason }},
	},
	details: []column[corral.Owner]{
		{"plans", func(o corral.Owner) any { return o.Has.Plans }},
		{"scales", func(o corral.Owner) any { return o.Has.Scales }},
		{"ensembles", func(o corral.Owner) any { return o.Has.Ensembles }},
		{"records of runs", func(o corral.Owner) any { return o.Has.Records }},
		{"by", func(o corral.Owner) any { return o.By }},
		{"since", func(o corral.Owner) any { return when(o.UpdatedAt) }},
		{"waits for", func(o corral.Owner) any { return strings.Join(o.WaitsFor, "\n") }},
	},
}
