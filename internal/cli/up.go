package cli

// up and down start and end a personal corrald. up starts corrald unless it already responds, and then creates the
// first site and cluster; both steps may be repeated. down removes everything in the order of dependency: runs and
// pilots, then sites and clusters, which only corrald can clean up, then corrald itself, and finally its files. If
// corrald has died, down therefore restarts it before taking it down.

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// personalVerbs start and end the corrald of a user.
type personalVerbs struct{ *printer }

func (v personalVerbs) upCommand() *cli.Command {
	return &cli.Command{
		Name: "up", Category: start,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "run-as", EnvVars: []string{"CORRAL_RUN_AS"},
				Usage: "root's new corrald runs as `USER`; later starts use the same"},
		},
		Action: v.up,
	}
}

// up starts corrald unless it is running, creates its first site and cluster unless they exist, and prints which of
// these are new.
func (v personalVerbs) up(c *cli.Context) error {
	layout, err := xdg.Find()
	if err != nil {
		return err
	}
	corrald := personal.Corrald{Layout: layout, RunAs: c.String("run-as")}
	started, err := corrald.Start(c.Context)
	if err != nil {
		return err
	}
	cl, err := corrald.Client()
	if err != nil {
		return err
	}
	if _, err := personal.SetUp(c.Context, cl); err != nil {
		return err
	}
	user, err := corrald.User(c.Context)
	if err != nil {
		return err
	}
	here, err := corrald.Located()
	if err != nil {
		return err
	}
	if started {
		v.say("corrald %d runs as %s, listening on %s", corrald.PID(), user, layout.Socket)
		v.say("site %s is READY, cluster %s takes workers; `corral down` ends it all", personal.Site, personal.Cluster)
	} else {
		v.say("corrald %d runs already, as %s", corrald.PID(), user)
		if why := here.Elsewhere(layout); why != "" {
			v.say("it listens on %s: %s", here.Layout.Socket, why)
		}
	}
	return nil
}

func (v personalVerbs) downCommand() *cli.Command {
	return &cli.Command{
		Name: "down", Category: start,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "cancel unfinished runs, and forget queued jobs"},
			&cli.BoolFlag{Name: "purge", Usage: "delete run directories too, also those of --dir"},
		},
		Action: v.down,
	}
}

// down removes everything. If an object at a site could not be removed, down removes the rest and fails with exit code
// 6, naming the objects that remain.
func (v personalVerbs) down(c *cli.Context) error {
	layout, err := xdg.Find()
	if err != nil {
		return err
	}
	corrald := personal.Corrald{Layout: layout}
	if !corrald.Exists() {
		v.say("there is no corrald here: nothing to do")
		return nil
	}
	if _, err := corrald.Start(c.Context); err != nil {
		return err
	}
	if corrald, err = corrald.Located(); err != nil { // also determines the sockets to erase later
		return err
	}
	done, err := v.takeDown(c, corrald)
	if err != nil {
		return err
	}
	if err := stopAndErase(c.Context, corrald, c.Bool("purge")); err != nil {
		return err
	}
	v.say("removed %d glidein(s); corrald, its state and its cache are gone", done.Glideins)
	if len(done.Left) > 0 {
		return corral.Errorf(corral.Unknown, "not everything was removed: %s", strings.Join(done.Left, "; "))
	}
	return nil
}

// takeDown removes the objects of corrald at sites and in clusters, and with --purge the directories of runs. It needs
// a running corrald. Objects that could not be removed are listed, and do not stop the removal of others.
func (v personalVerbs) takeDown(c *cli.Context, corrald personal.Corrald) (done personal.TakenDown, err error) {
	cl, err := corrald.Client()
	if err != nil {
		return done, err
	}
	defer cl.Close()
	done, err = personal.TakeDown(c.Context, cl, personal.Down{Force: c.Bool("force"), Queued: corrald.Queued})
	if err != nil || !c.Bool("purge") {
		return done, err
	}
	kept, left, err := personal.Purge(c.Context, cl, corrald.Layout.Data)
	for _, k := range kept {
		v.say("%s", k)
	}
	done.Left = append(done.Left, left...)
	return done, err
}

// stopAndErase ends corrald and deletes its files. Half a minute is ample, because all slow steps have been completed
// before.
func stopAndErase(ctx context.Context, corrald personal.Corrald, purge bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := corrald.Stop(ctx); err != nil {
		return err
	}
	return corrald.Erase(purge)
}
