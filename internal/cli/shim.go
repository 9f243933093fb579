package cli

// A shim consists of a folder and an open run. The folder is claimed first, with the key under which the run is
// created, so that the command finds the same run if it is repeated after being killed at any point. The run's id and
// the links are added after that. Closing a shim ends the run first, so that it can be repeated as long as the folder
// exists.

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

// shimVerbs are the verbs for shims.
type shimVerbs struct{ *printer }

// command returns the verbs for shims: folders with commands by which programs written for Slurm run their jobs in
// Corral.
func (v shimVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "shim", Category: workflows,
		Subcommands: []*cli.Command{
			{
				Name: "slurm", Flags: []cli.Flag{clusterFlag()},
				Action: func(c *cli.Context) error {
					err := v.make(c)
					if err != nil && v.format == formTable { // eval returns the status of the last line
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

// make creates a shim's folder, or completes an existing folder; the run's key is stored before the run is created.
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
	// The program, corrald and the cluster exist; everything that could make the creation fail has been checked.
	f, made, err := slurm.Claim(c.Args().First(), cl.Server(), cluster.Name)
	if err != nil {
		return err
	}
	if err := sameShim(c, f, cluster.Name); err != nil {
		return err
	}
	run, err := openRunOf(c, cl, f)
	if err != nil {
		// If the run may exist, the folder is kept, because it contains the key with which to repeat the request.
		if made && !outcomeUnknown(err) {
			_ = f.Remove() // the folder can be created again
		}
		return err
	}
	// The links are created last, so that a folder with commands always has a run.
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

// outcomeUnknown reports whether a run may have been created despite the error. After a refusal the run does not exist.
func outcomeUnknown(err error) bool {
	kind := corral.KindOf(err)
	return kind == corral.Unknown || kind == corral.Unavailable || kind == corral.Timeout
}

// sameShim refuses to use an existing folder for another cluster.
func sameShim(c *cli.Context, f slurm.Folder, cluster string) error {
	if f.Cluster != cluster {
		const other = "this shim is for cluster %s: end it with `corral shim close %s`, or name another folder"
		return corral.ErrorAt(corral.Conflict, f.Path, other, f.Cluster, c.Args().First())
	}
	return nil
}

// openRunOf returns the run of a folder, and creates the run if necessary.
func openRunOf(c *cli.Context, cl *api.Client, f slurm.Folder) (corral.Run, error) {
	if f.Run == 0 {
		return cl.CreateRun(c.Context, api.NewRun{
			Open: true, Cluster: f.Cluster, WorkflowName: filepath.Base(f.Path),
			Labels: map[string]string{"shim": "slurm"},
		}, f.Key)
	}
	run, err := cl.Run(c.Context, f.Run)
	if corral.KindOf(err) == corral.NotFound || err == nil && !f.Has(run) { // `corral down` has deleted the run
		return run, f.Gone()
	}
	// A run that is over accepts no more jobs. Its folder is not silently assigned another run, because the numbers of
	// the old run's jobs would lose their meaning.
	if err == nil && run.State.Over() {
		const over = "run %d of this shim is over: end the shim with `corral shim close %s`, and make it again"
		err = corral.ErrorAt(corral.Conflict, f.Path, over, f.Run, c.Args().First())
	}
	return run, err
}

// close ends submissions to the run and removes the folder. Existing jobs continue.
func (v shimVerbs) close(c *cli.Context) error {
	path, err := filepath.Abs(c.Args().First())
	if err != nil {
		return err
	}
	f, err := slurm.Open(path)
	if err != nil {
		return err
	}
	// The corrald of the run is determined by the folder, not by --server.
	cl, err := api.New(f.Server)
	if err != nil {
		return err
	}
	if f.Run == 0 { // the creation was interrupted; an unused run without jobs may remain
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
	case corral.Conflict, corral.NotFound: // the run is over, or was deleted with its corrald
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

// shimProgram returns the target of the folder's links: a program installed beside this one.
func shimProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	// Users may create a link only to corral in a folder of their PATH.
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(self), "corral-slurm")
	if _, err := os.Stat(program); err != nil {
		return "", corral.ErrorAt(corral.Unsatisfiable, program, "the program is missing beside %s: "+
			"install both from the same build", self)
	}
	return program, nil
}
