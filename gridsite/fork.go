package gridsite

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// MaxRead is how much of a job's file Fork.Read returns, in bytes: of a larger one its end.
const MaxRead = 8 << 20

// forkGrace is how long what a job leaves running, or a job whose walltime is over, has between
// SIGTERM and SIGKILL.
const forkGrace = 5 * time.Second

// Exit statuses of the scripts that are not failures but answers.
const (
	exitRefused = 3
	exitNoFile  = 4
)

//go:embed fork/*.sh
var forkScripts embed.FS

// script joins scripts of the fork dialect, after the library that each one needs.
func script(names ...string) string {
	var b strings.Builder
	for _, name := range append([]string{"lib"}, names...) {
		text, err := forkScripts.ReadFile("fork/" + name + ".sh")
		if err != nil {
			panic(err) // unreachable: the names are constants of this package
		}
		b.Write(text)
	}
	return b.String()
}

var (
	submitScript = script("build", "submit")
	runScript    = script("run")
	pollScript   = script("poll")
	cancelScript = script("cancel")
	readScript   = script("read")
	forgetScript = script("forget")
)

// Fork is the batch system of a machine that has none: each job is started at once, as a session of
// processes of its own. Its state is all in files below root, kept by POSIX shell scripts at the
// site (see fork/lib.sh), so that any client over any transport may follow a job that another one
// submitted. Hosts, CPUs and MemoryMiB of a JobSpec are not enforced; the job's process runs once.
//
// A process escapes Cancel only by both leaving the job's session and removing CORRAL_JOB_DIR from
// its environment. With a home directory that several machines share, a job can be cancelled only
// through the machine that it runs on; on the others Poll reports it running until its walltime is
// over.
type Fork struct {
	conn  Conn
	root  string
	grace time.Duration
}

// NewFork follows the jobs below root, an absolute path at the site that is ours alone; it need not
// exist. The caller closes conn, after the last use of the Fork.
func NewFork(conn Conn, root string) *Fork {
	return &Fork{conn: conn, root: path.Clean(root), grace: forkGrace}
}

// Submit starts the job, unless one was started under the tag before: at most one ever is. A
// submission that was broken off before its start is completed, from its own script and files.
func (f *Fork) Submit(ctx context.Context, spec JobSpec) (string, error) {
	if err := errors.Join(f.check(spec.Tag), checkSpec(spec)); err != nil {
		return "", err
	}
	dir := ".new," + spec.Tag + "," + rand.Text()
	files, err := jobArchive(jobFiles(spec), dir)
	if err != nil {
		return "", err
	}
	out, err := f.run(ctx, submitScript, files, spec.Tag, dir, seconds(spec.Walltime), seconds(f.grace))
	if err != nil {
		return "", fmt.Errorf("submitting %s: %w", spec.Tag, err)
	}
	id := strings.TrimSuffix(string(out), "\n")
	if !forkID.MatchString(id) {
		return "", corral.Errorf(corral.Unknown, "submitting %s: the site answered %q", spec.Tag, out)
	}
	return id, nil
}

// forkID is the leader's pid and its start time in ticks since boot, so that a pid that the system
// gave away again is not mistaken; "unstarted.0" for a job that was cancelled before it had a leader.
var forkID = regexp.MustCompile(`^([0-9]+\.[0-9]+|unstarted\.0)$`)

// Poll asks for all tags with one command. A job whose leader vanished without leaving a status is
// ended completely before it is reported, as ByDisappeared with an unknown exit status.
func (f *Fork) Poll(ctx context.Context, tags []string) (map[string]JobStatus, error) {
	if err := f.checkAll(tags); err != nil {
		return nil, err
	}
	out, err := f.run(ctx, pollScript, lines(tags))
	if err != nil {
		return nil, fmt.Errorf("polling: %w", err)
	}
	jobs, err := parsePoll(out)
	if err != nil {
		return nil, corral.Errorf(corral.Unknown, "polling: %w", err)
	}
	return jobs, nil
}

// Cancel fails if a process of the job resists SIGKILL for 10 s.
func (f *Fork) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return f.perform(ctx, "cancelling", cancelScript, tag, seconds(grace))
}

// Read returns at most MaxRead bytes, the last ones of a longer file. A name that would leave the
// job's directory is a corral.Invalid error.
func (f *Fork) Read(ctx context.Context, tag, name string) ([]byte, error) {
	if err := errors.Join(f.check(tag), checkName(name)); err != nil {
		return nil, err
	}
	out, err := f.run(ctx, readScript, nil, tag, name, strconv.Itoa(MaxRead))
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", name, tag, err)
	}
	return out, nil
}

// Forget refuses a job that has not ended. With the last job it removes root, if nothing else is in it.
func (f *Fork) Forget(ctx context.Context, tag string) error {
	return f.perform(ctx, "forgetting", forgetScript, tag, rand.Text())
}

// perform runs a script that has nothing to say.
func (f *Fork) perform(ctx context.Context, what, script, tag, arg string) error {
	if err := f.check(tag); err != nil {
		return err
	}
	if _, err := f.run(ctx, script, nil, tag, arg); err != nil {
		return fmt.Errorf("%s %s: %w", what, tag, err)
	}
	return nil
}

// run runs a script at the site, with root as its first argument, and returns what it printed.
func (f *Fork) run(ctx context.Context, script string, stdin io.Reader, args ...string) ([]byte, error) {
	argv := append([]string{"sh", "-c", script, "corral", f.root}, args...)
	res, err := f.conn.Run(ctx, Command{Argv: argv, Stdin: stdin})
	switch {
	case err != nil:
		return nil, err
	case res.Exit == exitRefused:
		return nil, refusal(res.Stderr)
	case res.Exit == exitNoFile:
		return nil, fs.ErrNotExist
	case res.Exit != 0:
		return nil, corral.Errorf(corral.Unknown, "exit status %d: %s", res.Exit, lastLine(res.Stderr))
	}
	return res.Stdout, nil
}

// lastLine is the last line of what a command said on stderr: its own words for what went wrong.
func lastLine(b []byte) string {
	text := strings.TrimSpace(printable(string(b)))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// refusal is the site's no. Space and quota may be there again later; permissions do not mend themselves.
func refusal(stderr []byte) *Refused {
	for _, passing := range []string{"No space left", "quota exceeded", "has not ended", "removed meanwhile"} {
		if line := lineWith(stderr, passing); line != "" {
			return &Refused{Text: line, Transient: true}
		}
	}
	return &Refused{Text: lastLine(stderr)}
}

// lineWith is the first line of what a command said on stderr that has a word in it: others may follow that say less.
func lineWith(stderr []byte, word string) string {
	for line := range strings.Lines(string(stderr)) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(printable(line))
		}
	}
	return ""
}

// tagPattern admits what every batch system takes as a job name and a shell as a plain word.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (f *Fork) check(tag string) error {
	if !path.IsAbs(f.root) || f.root == "/" || strings.ContainsAny(f.root, "\n\x00") {
		return corral.ErrorAt(corral.Invalid, "root", "%q: want an absolute path, other than /, without a newline", f.root)
	}
	if !tagPattern.MatchString(tag) {
		return corral.ErrorAt(corral.Invalid, "tag", "%q: want letters, digits, '.', '_' and '-'", tag)
	}
	return nil
}

func checkSpec(spec JobSpec) error {
	if len(spec.Argv) == 0 || !path.IsAbs(spec.Argv[0]) {
		return corral.ErrorAt(corral.Invalid, "argv", "%q: want an absolute path first", spec.Argv)
	}
	if slices.ContainsFunc(spec.Argv, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		return corral.ErrorAt(corral.Invalid, "argv", "%q: no argument may hold a NUL", spec.Argv)
	}
	if spec.Walltime < 0 {
		return corral.ErrorAt(corral.Invalid, "walltime", "%v is negative", spec.Walltime)
	}
	for name := range spec.Files {
		if err := checkName(name); err != nil {
			return err
		}
		if slices.Contains([]string{"stdout", "stderr", controlDir}, strings.Split(path.Clean(name), "/")[0]) {
			return corral.ErrorAt(corral.Invalid, "files", "%q is a name of ours", name)
		}
	}
	return nil
}

// checkName admits names of files that stay within the job's directory.
func checkName(name string) error {
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return corral.ErrorAt(corral.Invalid, "file", "%q is not a name within the job's directory", name)
	}
	return nil
}

// JobDir returns where a job's directory is below a site's root: for who wants to replace one of its Files before the
// job reads it. Once the job was forgotten nothing is there.
func JobDir(root, tag string) string { return path.Join(root, "jobs", tag) }

// controlDir is the part of a job's directory that is ours; lib.sh says what is in it.
const controlDir = ".corral"

// unknown is a file that the site's scripts overwrite in place: then a full disk cannot swallow what they say.
func unknown(fields string) []byte { return fmt.Appendf(nil, "%-120s\n", fields) }

// jobFiles is what stands in the job's directory before the start.
func jobFiles(spec JobSpec) map[string][]byte {
	files := map[string][]byte{
		"stdout":                   nil,
		"stderr":                   nil,
		controlDir + "/run":        []byte(runScript),
		controlDir + "/script":     []byte("set -- " + QuoteArgv(spec.Argv) + "\n"),
		controlDir + "/log":        nil,
		controlDir + "/job":        unknown("- -"),
		controlDir + "/ended-by":   unknown("-"),
		controlDir + "/ending":     unknown("- -"),
		controlDir + "/status.new": unknown("-"),
	}
	maps.Copy(files, spec.Files)
	return files
}

// jobArchive packs a job's directory with these files under the name dir.
func jobArchive(files map[string][]byte, dir string) (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, content []byte) error {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			return corral.ErrorAt(corral.Invalid, "files", "%q: %w", h.Name, err)
		}
		_, err := w.Write(content)
		return err
	}
	for _, name := range jobDirs(files) {
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: path.Join(dir, name) + "/", Mode: 0o700}, nil); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, name), Mode: 0o600}, files[name]); err != nil {
			return nil, err
		}
	}
	return &b, w.Close()
}

// jobDirs lists all directories that files are in, parents first.
func jobDirs(files map[string][]byte) []string {
	dirs := map[string]bool{}
	for name := range files {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// seconds is d in whole seconds, rounded up, as sleep(1) takes it everywhere.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((max(d, 0)+time.Second-1)/time.Second), 10)
}
