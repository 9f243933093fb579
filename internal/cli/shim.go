package cli

// A shim is a folder and an open run. The folder is claimed first: its note has the key under which the run is asked
// for, so that the command, repeated after it was killed at any point, finds the same run. Then come the run's id and
// the links. The other way round, closing begins with the run: as long as the folder is there, it can be repeated.

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/shell"
	"github.com/corral-pilot/corral/internal/shim/slurm"
)

// shimVerbs are the verbs on shims.
type shimVerbs struct{ *printer }

// command has the verbs of folders by whose commands programs that were made for Slurm run their jobs here.
func (v shimVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "shim", Category: workflows,
		Subcommands: []*cli.Command{
			{
				Name: "slurm", Flags: []cli.Flag{clusterFlag()},
				Action: func(c *cli.Context) error {
					err := v.make(c)
					if err != nil && v.format == formTable { // a shell gives eval the status of the last line
						_, errPrint := fmt.Fprintln(v.out, "false")
						err = errors.Join(err, errPrint)
					}
					return err
				},
			},
			{Name: "close", Action: v.close},
		},
	}
}

// make makes a folder, or finds it as it was made before: the run is asked for under a key that is noted first.
func (v shimVerbs) make(c *cli.Context) error {
	program, err := shimProgram()
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	cluster, err := cl.Cluster(c.Context, cmp.Or(c.String("cluster"), "default"))
	if err != nil {
		return err
	}
	// All that can be wrong has been looked at by now: there are the program, corrald and the cluster.
	f, made, err := slurm.Claim(c.Args().First(), cl.Server(), cluster.Name)
	if err != nil {
		return err
	}
	if err := sameShim(c, f, cluster.Name); err != nil {
		return err
	}
	run, err := openRunOf(c, cl, f)
	if err != nil {
		// Where it is not known whether there is a run, the folder stays, with the key to ask again.
		if made && !outcomeUnknown(err) {
			_ = f.Remove() // what is left can be made again
		}
		return err
	}
	// The links come last: a folder that has commands has a run.
	f.Run, f.Dir = run.ID, run.Dir
	if err := f.Link(program); err != nil {
		return err
	}
	if v.format != formTable {
		return v.encode(run)
	}
	_, err = fmt.Fprintf(v.out, "export PATH=%s:\"$PATH\"\n", shell.Legible(f.Path))
	return err
}

// outcomeUnknown reports whether a run may have been made although there was an error. After a refusal there is none.
func outcomeUnknown(err error) bool {
	kind := corral.KindOf(err)
	return kind == corral.Unknown || kind == corral.Unavailable || kind == corral.Timeout
}

// sameShim refuses to make another cluster's folder of one that is there.
func sameShim(c *cli.Context, f slurm.Folder, cluster string) error {
	if f.Cluster != cluster {
		const other = "this shim is for cluster %s: end it with `corral shim close %s`, or name another folder"
		return corral.ErrorAt(corral.Conflict, f.Path, other, f.Cluster, c.Args().First())
	}
	return nil
}

// openRunOf finds the run of a folder, or makes it.
func openRunOf(c *cli.Context, cl *api.Client, f slurm.Folder) (corral.Run, error) {
	if f.Run == 0 {
		return cl.CreateRun(c.Context, api.NewRun{
			Open: true, Cluster: f.Cluster, WorkflowName: filepath.Base(f.Path),
			Labels: map[string]string{"shim": "slurm"},
		}, f.Key)
	}
	run, err := cl.Run(c.Context, f.Run)
	if corral.KindOf(err) == corral.NotFound || err == nil && !f.Has(run) { // `corral down` deletes what it knew
		return run, f.Gone()
	}
	// A run that is over takes no jobs any more. Its folder is not turned over to another run in silence: the numbers
	// of its jobs would mean nothing then.
	if err == nil && run.State.Over() {
		const over = "run %d of this shim is over: end the shim with `corral shim close %s`, and make it again"
		err = corral.ErrorAt(corral.Conflict, f.Path, over, f.Run, c.Args().First())
	}
	return run, err
}

// close lets no more jobs be submitted, and removes the folder. Jobs that are there go on.
func (v shimVerbs) close(c *cli.Context) error {
	path, err := filepath.Abs(c.Args().First())
	if err != nil {
		return err
	}
	f, err := slurm.Open(path)
	if err != nil {
		return err
	}
	// Not the corrald of --server: the folder knows whose run it has.
	cl, err := api.New(f.Server)
	if err != nil {
		return err
	}
	if f.Run == 0 { // the command that made it was killed; a run that nothing names may be left, without jobs
		return f.Remove()
	}
	run, err := cl.Run(c.Context, f.Run)
	if err == nil && !f.Has(run) {
		return f.Remove()
	}
	if err == nil {
		run, err = cl.CloseRun(c.Context, f.Run)
	}
	switch corral.KindOf(err) {
	case corral.Conflict, corral.NotFound: // it is over, or gone with its corrald
		run, err = cl.Run(c.Context, f.Run)
		if err != nil {
			return f.Remove()
		}
	case "":
	default:
		return err
	}
	if err := f.Remove(); err != nil {
		return err
	}
	return runTable.one(v.printer)(run)
}

// shimProgram is the program that the links of a folder lead to: it is installed beside this one.
func shimProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	// People link corral into a folder of their PATH, and nothing else of it.
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(self), "corral-slurm")
	if _, err := os.Stat(program); err != nil {
		return "", corral.ErrorAt(corral.Unsatisfiable, program, "the program that belongs beside %s is missing: "+
			"install both from the same build", self)
	}
	return program, nil
}
