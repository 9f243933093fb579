package cli

// The verbs for the administrator of a corrald. They operate on corrald's files, as its user and on its machine, and do
// not use its REST interface: a backup contains keys, and nothing is restored while corrald is running. The program
// corrald handles these files; the verbs start that program and read its answer as JSON.

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// adminVerbs are the verbs for administrators of a corrald.
type adminVerbs struct{ *printer }

func (v adminVerbs) command() *cli.Command {
	state := func() cli.Flag {
		return &cli.StringFlag{Name: "state", EnvVars: []string{"CORRALD_STATE"},
			Usage: "`DIR` of corrald's database and keys (default: that of your own)"}
	}
	return &cli.Command{
		Name: "admin", Category: setUp,
		Subcommands: []*cli.Command{
			{Name: "backup", Flags: []cli.Flag{state()}, Action: func(c *cli.Context) error {
				b, err := administer[api.Backup](c)
				if err != nil {
					return err
				}
				return backupTable.show(v.printer, b)
			}},
			{Name: "restore", Flags: []cli.Flag{state(),
				&cli.BoolFlag{Name: "force", Usage: "move an existing database aside"}},
				Action: v.restore},
			ownerVerbs(v).command(),
		},
	}
}

// administer starts the program corrald with the words of this command, and returns the program's answer.
func administer[T any](c *cli.Context) (answer T, err error) {
	program, err := personal.FindCorrald()
	if err != nil {
		return answer, err
	}
	args := []string{"admin", c.Command.Name}
	if dir := c.String("state"); dir != "" {
		args = append(args, "--state", dir)
	}
	if c.Bool("force") {
		args = append(args, "--force")
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(c.Context, program, append(args, "--", c.Args().First())...)
	cmd.Stdout, cmd.Stderr = &said, c.App.ErrWriter
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // corrald cleans up before it exits
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	var problem api.Problem
	switch exit := new(exec.ExitError); {
	case errors.As(err, &exit) && json.Unmarshal(said.Bytes(), &problem) == nil && problem.Type != "":
		return answer, &problem
	case err != nil:
		return answer, corral.Errorf(corral.Failed, "%s: %w", program, err)
	}
	return answer, json.Unmarshal(said.Bytes(), &answer)
}

// restore restores a backup while corrald is not running.
func (v adminVerbs) restore(c *cli.Context) error {
	r, err := administer[api.Restored](c)
	if err != nil {
		return err
	}
	if r.Aside != "" {
		v.say("the previous files are in %s", r.Aside)
	}
	v.say("start corrald again; then `corral site orphans` lists pilots created after the backup")
	return restoredTable.show(v.printer, r)
}

var backupTable = listing[api.Backup]{
	id: func(m api.Backup) string { return m.MadeAt.Format(time.RFC3339) },
	columns: []column[api.Backup]{
		{"made", func(m api.Backup) any { return m.MadeAt.Format(time.RFC3339) }},
		{"corral", func(m api.Backup) any { return m.Corral }},
		{"schema", func(m api.Backup) any { return m.Schema }},
		{"files", func(m api.Backup) any { return len(m.Files) }},
		{"runs that go on", func(m api.Backup) any { return len(m.Runs) }},
	},
}

var restoredTable = listing[api.Restored]{
	id: func(r api.Restored) string { return r.MadeAt.Format(time.RFC3339) },
	columns: []column[api.Restored]{
		{"made", func(r api.Restored) any { return r.MadeAt.Format(time.RFC3339) }},
		{"files", func(r api.Restored) any { return len(r.Files) }},
		{"journals put back", func(r api.Restored) any { return len(r.RunsPut) }},
		{"journals kept", func(r api.Restored) any { return len(r.RunsKept) }},
	},
}
