package main

import (
	"encoding/json"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/backup"
)

// adminCommand returns the command that `corral admin` starts: it prints JSON, which is a problem document if it fails.
// It operates on the files of a corrald that another process may be running.
func adminCommand(l xdg.Layout) *cli.Command {
	state := func() cli.Flag {
		return &cli.StringFlag{Name: "state", Value: l.State, EnvVars: variables("state"),
			Usage: "`DIR` of the database and keys"}
	}
	layout := func(c *cli.Context) (xdg.Layout, error) {
		l := l
		if l.State = c.String("state"); !filepath.IsAbs(l.State) {
			return l, corral.ErrorAt(corral.Invalid, "--state", "%q is not an absolute path", l.State)
		}
		if c.NArg() != 1 || c.Args().First() == "" {
			return l, corral.Errorf(corral.Invalid, "want the name of a single FILE")
		}
		return l, nil
	}
	return &cli.Command{
		Name: "admin", Hidden: true, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			{Name: "backup", Flags: []cli.Flag{state()}, Action: answering(func(c *cli.Context) (any, error) {
				l, err := layout(c)
				if err != nil {
					return nil, err
				}
				return backup.Save(c.Context, l, c.Args().First())
			})},
			{Name: "restore", Flags: []cli.Flag{state(), &cli.BoolFlag{Name: "force"}},
				Action: answering(func(c *cli.Context) (any, error) {
					l, err := layout(c)
					if err != nil {
						return nil, err
					}
					return backup.Restore(c.Context, l, c.Args().First(), c.Bool("force"))
				})},
		},
	}
}

// answering returns an action that writes the result of do, or a problem document, as JSON. The error is also returned,
// for the exit code.
func answering(do func(*cli.Context) (any, error)) cli.ActionFunc {
	return func(c *cli.Context) error {
		answer, err := do(c)
		if err != nil {
			if corral.KindOf(err) == corral.Internal { // for example a file system's error: no log contains it
				err = corral.Errorf(corral.Failed, "%w", err)
			}
			answer, err = api.ProblemOf(err), told{err}
		}
		if failed := json.NewEncoder(c.App.Writer).Encode(answer); failed != nil {
			return failed
		}
		return err
	}
}

// told is an error that has already been written to stdout.
type told struct{ error }

func (t told) Unwrap() error { return t.error }
