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

// Tools runs the commands of a release on one pool, as one user. HTCondor's own libraries are not linked: its commands
// are the interface that stays the same from version to version.
type Tools struct {
	Release string  // the folder with bin, sbin, libexec and lib
	Config  string  // the file that CONDOR_CONFIG names
	As      Account // whose commands they are
}

// Refused says that a command was understood and answered no. Nothing was changed by it.
type Refused struct {
	Tool   string
	Status int    // exit status
	Words  string // what it printed, HTCondor's own words
}

func (r *Refused) Error() string {
	return fmt.Sprintf("%s refused with status %d: %s", r.Tool, r.Status, strings.Join(strings.Fields(r.Words), " "))
}

// silence is how commands say that they got no answer, so that we do not know. What a user may have written comes
// only after one of the signs at which it stops looking. That a submission was not committed is an answer if a reason
// follows.
var silence = regexp.MustCompile(`(?im)^[^"'/=(\n]*(failed to (connect|make connection)|can.?t connect` +
	`|unable to connect|couldn.?t contact|failed to fetch ads|communication error|can.?t find address|timed? ?out` +
	`|\(null\)|CEDAR:\d+|SECMAN:\d+|failed to commit[^\n]*\z|connection (closed|refused|reset))`)

// denied is how they say that the other side knows us and will not: an answer, whatever else they print.
var denied = regexp.MustCompile(`(?i)denied|not authorized|authorization failed|AUTHENTICATE:1003|SECMAN:2010`)

// maxWords bounds what is kept of an error's words.
const maxWords = 4096

// Run runs a command of the release, such as "condor_q", with stdin, and returns what it printed on
// stdout. The error is a [*Refused] if it said no; any other error means that we do not know whether it did
// anything: it got no answer, was killed with ctx, or could not be started.
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

// maxOutput is how much a command may print on stdout, and on stderr, in bytes: 100,000 ads of jobs with all their
// attributes. One that prints more is killed.
const maxOutput = 512 << 20

var errOutput = fmt.Errorf("it printed more than %d MiB", maxOutput>>20)

// point is where a command can be made to fail.
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

// output keeps what a command prints, up to most bytes.
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

// command is a command of the release on the pool, that has not been started. HTCondor looks at USER and LOGNAME, so
// they have to name the user as whom it runs.
func (t Tools) command(ctx context.Context, tool string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.path(tool), args...)
	cmd.Env = append(ownEnviron(), t.env()...)
	cmd.Env = append(cmd.Env, "HOME="+t.As.Home, "USER="+t.As.Name, "LOGNAME="+t.As.Name)
	cmd.Dir = filepath.Dir(t.Config) // our own folder may be closed to As
	cmd.SysProcAttr = t.As.attributes()
	cmd.WaitDelay = time.Second // a daemon that it left behind may hold the pipe
	return cmd
}

// ownEnviron is this process's environment without what configures HTCondor: we may be a job of another pool, or run in
// the shell of a user of one.
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

// env returns what a program needs to run HTCondor's commands on the pool, as "NAME=value".
func (t Tools) env() []string {
	path := filepath.Join(t.Release, "bin") + ":" + filepath.Join(t.Release, "sbin")
	if p := os.Getenv("PATH"); p != "" {
		path += ":" + p
	}
	return []string{"CONDOR_CONFIG=" + t.Config, "PATH=" + path}
}

// Query runs condor_q, condor_status or condor_history with -json and returns the ads. Without attributes
// they are whole.
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

// Submit submits the jobs and returns the cluster they are; its processes are numbered from 0 in the order
// of s.Procs. After an error that is not a [*Refused], look in the queue for s.Attributes before submitting again.
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
