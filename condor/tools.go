package condor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/kit/fault"
)

// Tools runs the commands of a release on one pool, as one user. HTCondor's libraries are not linked, because its
// commands are the interface that is stable between versions.
type Tools struct {
	Release string  // the folder with bin, sbin, libexec and lib
	Config  string  // the file for CONDOR_CONFIG
	As      Account // user of the commands
}

// Refused means that a command was understood and refused. It changed nothing.
type Refused struct {
	Tool   string
	Status int    // exit status
	Words  string // its output, in HTCondor's own words
}

func (r *Refused) Error() string {
	return fmt.Sprintf("%s refused with status %d: %s", r.Tool, r.Status, strings.Join(strings.Fields(r.Words), " "))
}

// silence matches messages about a missing answer, after which the outcome is unknown. The match stops at a character
// that begins text which may come from a user. A message that a submission was not committed is an answer if a reason
// follows.
var silence = regexp.MustCompile(`(?im)^[^"'/=(\n]*(failed to (connect|make connection)|can.?t connect` +
	`|unable to connect|couldn.?t contact|failed to fetch ads|communication error|can.?t find address|timed? ?out` +
	`|\(null\)|CEDAR:\d+|SECMAN:\d+|failed to commit[^\n]*\z|connection (closed|refused|reset))`)

// denied matches messages of a peer that knows us and refuses: an answer, whatever else the output contains.
var denied = regexp.MustCompile(`(?i)denied|not authorized|authorization failed|AUTHENTICATE:1003|SECMAN:2010`)

// maxWords limits the text kept of an error, in bytes.
const maxWords = 4096

// Run runs a command of the release, such as "condor_q", with stdin, and returns its stdout. The error is a [*Refused]
// if the command refused. Any other error means that the outcome is unknown: there was no answer, the command was
// killed with ctx, or it could not be started.
func (t Tools) Run(ctx context.Context, stdin []byte, tool string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := t.command(ctx, tool, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	stdout, stderr := output{most: maxOutput, overflow: cancel}, output{most: maxOutput, overflow: cancel}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := fault.Do(ctx, point(tool), func(context.Context) error { return cmd.Run() })
	if err == nil {
		return stdout.text.Bytes(), nil
	}
	words := strings.TrimSpace(stderr.text.String() + "\n" + stdout.text.String())
	words = words[:min(len(words), maxWords)]
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("running %s: %w", tool, context.Cause(ctx))
	case !errors.As(err, &exit), !exit.Exited():
		return nil, fmt.Errorf("running %s: %w", tool, err)
	case silence.MatchString(words) && !denied.MatchString(words):
		return nil, fmt.Errorf("running %s: no answer: %s", tool, words)
	}
	return nil, &Refused{Tool: tool, Status: exit.ExitCode(), Words: words}
}

// maxOutput is how many bytes a command may print to each of stdout and stderr: 100,000 ads of jobs with all their
// attributes. A command that prints more is killed.
const maxOutput = 512 << 20

var errOutput = fmt.Errorf("it printed more than %d MiB", maxOutput>>20)

// point returns the fault-injection point of a command.
func point(tool string) fault.Point {
	switch tool {
	case "condor_master":
		return fault.PoolMaster
	case "condor_reconfig":
		return fault.PoolConfigure
	case "condor_submit":
		return fault.PoolSubmit
	case "condor_rm":
		return fault.PoolRemove
	case "condor_qedit":
		return fault.PoolChange
	case "condor_token_create", "condor_token_fetch":
		return fault.PoolToken
	}
	return fault.PoolAsk
}

// output keeps a command's output, up to most bytes.
type output struct {
	most     int
	text     bytes.Buffer
	overflow context.CancelCauseFunc
}

func (o *output) Write(p []byte) (int, error) {
	if o.text.Len()+len(p) > o.most {
		o.overflow(errOutput)
		return 0, errOutput
	}
	return o.text.Write(p)
}

// command returns an unstarted command of the release for the pool. HTCondor reads USER and LOGNAME, so they must name
// the user as whom it runs.
func (t Tools) command(ctx context.Context, tool string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.path(tool), args...)
	cmd.Env = append(ownEnviron(), t.env()...)
	cmd.Env = append(cmd.Env, "HOME="+t.As.Home, "USER="+t.As.Name, "LOGNAME="+t.As.Name)
	cmd.Dir = filepath.Dir(t.Config) // As may be unable to enter our own folder
	cmd.SysProcAttr = t.As.attributes()
	cmd.WaitDelay = time.Second // a daemon started by it may hold the pipe
	return cmd
}

// ownEnviron returns this process's environment without HTCondor's variables, because this process may be a job of
// another pool, or run in the shell of a user of one.
func ownEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "_CONDOR_") || strings.HasPrefix(v, "CONDOR_")
	})
}

// path finds a command, in sbin if it is not in bin.
func (t Tools) path(tool string) string {
	if p := filepath.Join(t.Release, "bin", tool); isFile(p) {
		return p
	}
	return filepath.Join(t.Release, "sbin", tool)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// env returns the variables that a program needs to run HTCondor's commands on the pool, as "NAME=value".
func (t Tools) env() []string {
	path := filepath.Join(t.Release, "bin") + ":" + filepath.Join(t.Release, "sbin")
	if p := os.Getenv("PATH"); p != "" {
		path += ":" + p
	}
	return []string{"CONDOR_CONFIG=" + t.Config, "PATH=" + path}
}

// Query runs condor_q, condor_status or condor_history with -json and returns the ads, with the given attributes or, if
// there are none, with all.
func (t Tools) Query(ctx context.Context, tool string, args, attributes []string) ([]classad.Ad, error) {
	args = append([]string{"-json"}, args...)
	if len(attributes) > 0 {
		args = append(args, "-attributes", strings.Join(attributes, ","))
	}
	out, err := t.Run(ctx, nil, tool, args...)
	if err != nil {
		return nil, err
	}
	return classad.ParseAds(out)
}

// Submit submits the jobs and returns their cluster; its processes are numbered from 0 in the order of s.Procs. After
// an error other than a [*Refused], look in the queue for s.Attributes before submitting again.
func (t Tools) Submit(ctx context.Context, s Submit) (cluster int, err error) {
	var text bytes.Buffer
	if _, err := s.WriteTo(&text); err != nil {
		return 0, err
	}
	out, err := t.Run(ctx, text.Bytes(), "condor_submit", "-terse", "-")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), ".") // "7.0 - 7.99"
	cluster, err = strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("reading what condor_submit printed: %q is not a job", out)
	}
	return cluster, nil
}
