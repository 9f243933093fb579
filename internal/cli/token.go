package cli

// Users of a central corrald, except the user who runs it, authenticate with tokens. The client generates the text of a
// new token and writes it to the user's file before it registers the token; corrald receives only a digest. So the text
// never leaves the machine, and an interrupted command can be repeated, because it then finds the text in the file.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

var tokens = noun[corral.TokenID]{name: "token", key: idKey[corral.TokenID]}

// tokenVerbs are the verbs for tokens.
type tokenVerbs struct{ *printer }

func (v tokenVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "token", Category: setUp,
		Subcommands: []*cli.Command{
			{
				Name: "create",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "out",
						Usage: "write the token to `FILE`, mode 0600, instead of printing it; if " +
							"there is one in it, that is used"},
					&cli.StringFlag{Name: "owner",
						Usage: "create it for `USER` (default: you); for administrators only"},
					&cli.BoolFlag{Name: "administrator", Usage: "permit everything, with everyone's objects"},
					&cli.StringSliceFlag{Name: "scope",
						Usage: "permit only `S`: read, or a noun such as runs " +
							"or runs:read; may be repeated"},
					&cli.StringSliceFlag{Name: "grant",
						Usage: "also permit `G` of corrald's host: local, host-paths " +
							"or packages; may be repeated"},
					durationFlag("expires", 0,
						"valid for `D` (default: 90 days, but no longer than your own token)"),
					keyFlag(),
				},
				Action: v.create,
			},
			tokenTable.listVerb(v.printer, (*api.Client).Tokens),
			tokens.verb("show", printing((*api.Client).Token, tokenTable.one(v.printer))),
			tokens.verb("history", printing((*api.Client).TokenHistory, entryTable.many(v.printer))),
			tokens.verb("revoke", printing((*api.Client).RevokeToken, tokenTable.one(v.printer))),
		},
	}
}

// create generates a token and registers it with corrald.
func (v tokenVerbs) create(c *cli.Context) error {
	out := c.String("out")
	if out == "" && v.format != formTable {
		return corral.ErrorAt(corral.Invalid, "--out",
			"is required with --output %s, which does not show the token", v.format)
	}
	n := api.NewToken{Name: c.Args().First(), Owner: c.String("owner"), Scopes: c.StringSlice("scope"),
		ExpiresIn: corral.Seconds(c.Duration("expires"))}
	for _, g := range c.StringSlice("grant") {
		n.Grants = append(n.Grants, corral.Grant(g))
	}
	if c.Bool("administrator") {
		n.Role = corral.RoleAdministrator
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	text, fresh, err := textIn(out)
	if err != nil {
		return err
	}
	n.Digest = api.TokenDigest(text)
	t, err := cl.CreateToken(c.Context, n, c.String("key"))
	if err != nil {
		if fresh && corral.KindOf(err) != corral.Unknown { // the token was never registered
			_ = os.Remove(out)
		}
		return err
	}
	if out != "" {
		return tokenTable.show(v.printer, t)
	}
	v.say("token %d (%s) of %s: this is its text, which cannot be shown again", t.ID, t.Name, t.Owner)
	fmt.Fprintln(v.out, text)
	return nil
}

// textIn returns the token in a file, or writes a new token to the file; fresh reports whether the token is new. If no
// file is given, the token is new.
func textIn(file string) (text string, fresh bool, err error) {
	text = api.NewTokenText()
	if file == "" {
		return text, false, nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		old, err := os.ReadFile(file)
		text = string(bytes.TrimSpace(old))
		if err == nil && !api.IsToken(text) {
			err = corral.ErrorAt(corral.Invalid, "--out", "%s exists and does not contain a token: name another file",
				file)
		}
		return text, false, err
	}
	if err != nil {
		return "", false, corral.ErrorAt(corral.Invalid, "--out", "%w", err)
	}
	_, err = fmt.Fprintln(f, text)
	return text, true, errors.Join(err, f.Close())
}

var tokenTable = listing[corral.Token]{
	id:   func(t corral.Token) string { return fmt.Sprint(t.ID) },
	none: "no tokens; create one with `corral token create NAME --owner USER`",
	columns: []column[corral.Token]{
		{"id", func(t corral.Token) any { return t.ID }},
		{"name", func(t corral.Token) any { return t.Name }},
		{"owner", func(t corral.Token) any { return t.Owner }},
		{"role", func(t corral.Token) any { return t.Role }},
		{"scopes", func(t corral.Token) any { return strings.Join(t.Scopes, " ") }},
		{"grants", func(t corral.Token) any { return strings.Trim(fmt.Sprint(t.Grants), "[]") }},
		{"expires", func(t corral.Token) any { return when(t.ExpiresAt) }},
		{"state", func(t corral.Token) any {
			return choose(t.State == corral.TokenValid && t.Expired(time.Now()), "expired", t.State)
		}},
	},
}

// keyCommand prints the ssh key with which corrald logs in at the user's sites.
func (v siteVerbs) keyCommand() *cli.Command {
	return &cli.Command{Name: "key", Action: func(c *cli.Context) error {
		cl, err := connect(c)
		if err != nil {
			return err
		}
		key, err := cl.SSHKey(c.Context)
		if err != nil {
			return err
		}
		return sshKeyTable.show(v.printer, key)
	}}
}

var sshKeyTable = listing[api.SSHKey]{
	id:      func(k api.SSHKey) string { return k.PublicKey },
	columns: []column[api.SSHKey]{{"public key", func(k api.SSHKey) any { return k.PublicKey }}},
}
