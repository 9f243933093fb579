// Package jobdir manages the directories of jobs at a site with a shell and a file system, for every dialect of such a
// site, including fork and slurm.
//
// Each job has a directory of its own, ROOT/jobs/TAG. Its files, and the scripts that monitor the job (listed in
// lib.sh), are sent as one tar archive. The directory is built under another name and published by a rename, so that a
// directory named by a tag is always complete. The job writes its status to this directory. Therefore the end of a job
// is known even if the batch system has forgotten the job, and every client, over every transport, can continue the
// work of another client.
//
// A dialect embeds Dirs, which At returns, and adds the commands of its batch system in scripts of its own. A script is
// sent after its library (Script), and receives the site's root as its first argument. Its exit status is its answer;
// Dirs.Run documents the meanings.
package jobdir

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
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/fault"
	"github.com/corral-pilot/corral/internal/kit/shell"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Control is the part of a job's directory that belongs to Corral; lib.sh lists its content.
const Control = ".corral"

// MaxRead is the maximum number of bytes of a job's file that Read returns.
const MaxRead = 8 << 20

// Exit statuses of scripts that are answers, not failures.
const (
	ExitRefused = 3 // the site refused; nothing was done
	exitNoFile  = 4 // the file does not exist
)

//go:embed *.sh
var scripts embed.FS

// Script concatenates the library that every script needs with the named scripts of this package and of a dialect. The
// whole text is sent with each command, so that no file has to be installed at a site or match a version there.
func Script(shared []string, own embed.FS, names ...string) string {
	var b strings.Builder
	add := func(from embed.FS, names ...string) {
		for _, name := range names {
			text, err := from.ReadFile(name + ".sh")
			if err != nil {
				panic(err) // unreachable: the names are constants of our packages
			}
			b.Write(text)
		}
	}
	add(scripts, append([]string{"lib"}, shared...)...)
	add(own, names...)
	return b.String()
}

var readScript = Script([]string{"read"}, scripts)

// Forget is the script that removes the directory of an ended job and, together with the last job, the root, if it
// contains nothing else. Its arguments are the root, the tag and a nonce.
var Forget = Script([]string{"forget"}, scripts)

// Path returns the path of a job's directory below a site's root. The directory exists until the job is forgotten.
func Path(root, tag string) string { return path.Join(root, "jobs", tag) }

// Dirs are the directories of the jobs below one root. A dialect embeds Dirs to get Read, ReadMany and the checks that
// do not depend on its batch system.
type Dirs struct {
	conn   gridsite.Conn
	root   string
	answer Answer
}

// An Answer maps an exit status of a dialect's scripts to an error, or to nil if the status has no special meaning.
type Answer func(status int, stderr []byte) error

// At returns the directories below root, an absolute path at the site for Corral alone, which need not exist. The
// caller closes conn after the last use.
func At(conn gridsite.Conn, root string, answer Answer) Dirs {
	return Dirs{conn: conn, root: path.Clean(root), answer: answer}
}

// Root returns the root directory, below which the jobs' directories are.
func (d Dirs) Root() string { return d.root }

// tagPattern matches words that every batch system accepts as a job name and a shell as a plain word.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// IsTag reports whether a word may be a tag.
func IsTag(word string) bool { return tagPattern.MatchString(word) }

// Admits returns a corral.Invalid error unless the root and all tags are valid.
func (d Dirs) Admits(tags ...string) error {
	if !path.IsAbs(d.root) || d.root == "/" || strings.ContainsAny(d.root, "\n\x00") {
		return corral.ErrorAt(corral.Invalid, "root", "%q: want an absolute path, other than /, without a newline",
			d.root)
	}
	for _, tag := range tags {
		if !IsTag(tag) {
			return corral.ErrorAt(corral.Invalid, "tag", "%q: want letters, digits, '.', '_' and '-'", tag)
		}
	}
	return nil
}

// Run runs a script at the site, with root as its first argument, and returns its output. Exit status 3 is a refusal by
// the site, with the reason on stderr; 4 means that the file does not exist. After any other nonzero status for which
// the dialect's Answer returns nil, the outcome is unknown.
func (d Dirs) Run(ctx context.Context, at fault.Point, script string, stdin io.Reader, args ...string) ([]byte, error) {
	argv := append([]string{"sh", "-c", script, "corral", d.root}, args...)
	res, err := gridsite.Run(ctx, d.conn, at, gridsite.Command{Argv: argv, Stdin: stdin})
	if err == nil && res.Exit != 0 && d.answer != nil {
		err = d.answer(res.Exit, res.Stderr)
	}
	switch {
	case err != nil:
		return nil, err
	case res.Exit == ExitRefused:
		return nil, refusal(res.Stderr)
	case res.Exit == exitNoFile:
		return nil, fs.ErrNotExist
	case res.Exit != 0:
		return nil, corral.Errorf(corral.Unknown, "exit status %d: %s", res.Exit, gridsite.LastLine(res.Stderr))
	}
	return res.Stdout, nil
}

// refusal returns the site's refusal. A lack of space or quota is transient; a lack of permissions is not.
func refusal(stderr []byte) *gridsite.Refused {
	for _, full := range []string{"No space left", "quota exceeded"} {
		if line := LineWith(stderr, full); line != "" {
			return &gridsite.Refused{Text: line, Transient: true, Class: corral.FailureQuota}
		}
	}
	for _, passing := range []string{"has not ended", "removed meanwhile"} {
		if line := LineWith(stderr, passing); line != "" {
			return &gridsite.Refused{Text: line, Transient: true}
		}
	}
	return &gridsite.Refused{Text: gridsite.LastLine(stderr)}
}

// LineWith returns the first line of a command's stderr that contains a word, because later lines may be less specific.
func LineWith(stderr []byte, word string) string {
	for line := range strings.Lines(string(stderr)) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(gridsite.Printable(line))
		}
	}
	return ""
}

// Read returns at most 8 MiB; of a longer file it returns the end. If the name leads out of the job's directory, the
// error is corral.Invalid.
func (d Dirs) Read(ctx context.Context, tag, name string) ([]byte, error) {
	if err := errors.Join(d.Admits(tag), checkName(name)); err != nil {
		return nil, err
	}
	out, err := d.Run(ctx, fault.SiteRead, readScript, nil, tag, name, strconv.Itoa(MaxRead))
	return out, wrap.Errorf(err, "reading %s of %s", name, tag)
}

// wholeArgv returns the argument vector of a job, with the path of its program below the root: only this package knows
// the location of programs at the site.
func wholeArgv(root string, spec gridsite.JobSpec) []string {
	if spec.Program == "" {
		return spec.Argv
	}
	return append([]string{path.Join(root, spec.Program)}, spec.Argv...)
}

// CheckSpec returns a corral.Invalid error for a job whose directory or command is not valid here.
func (d Dirs) CheckSpec(spec gridsite.JobSpec) error {
	if err := d.Admits(spec.Tag); err != nil {
		return err
	}
	argv := wholeArgv(d.root, spec)
	if len(argv) == 0 || !path.IsAbs(argv[0]) {
		return corral.ErrorAt(corral.Invalid, "argv", "%q: want an absolute path first", argv)
	}
	if slices.ContainsFunc(argv, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		return corral.ErrorAt(corral.Invalid, "argv", "%q: an argument must not contain NUL", argv)
	}
	if spec.Walltime < 0 {
		return corral.ErrorAt(corral.Invalid, "walltime", "%v is negative", spec.Walltime)
	}
	for name := range spec.Files {
		if err := checkName(name); err != nil {
			return err
		}
		if slices.Contains([]string{"stdout", "stderr", Control}, strings.Split(path.Clean(name), "/")[0]) {
			return corral.ErrorAt(corral.Invalid, "files", "%q is a reserved name", name)
		}
	}
	return nil
}

// checkName accepts names of files that stay within the job's directory.
func checkName(name string) error {
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return corral.ErrorAt(corral.Invalid, "file", "%q is not a name within the job's directory", name)
	}
	return nil
}

// Unknown returns a file that the site's scripts overwrite in place, so that a full disk cannot prevent their report.
func Unknown(fields string) []byte { return fmt.Appendf(nil, "%-120s\n", fields) }

// Files returns the content of a job's directory before the start. run is the script that monitors the job.
func (d Dirs) Files(spec gridsite.JobSpec, run string) map[string][]byte {
	files := map[string][]byte{
		"stdout":                nil,
		"stderr":                nil,
		Control + "/run":        []byte(run),
		Control + "/script":     []byte("set -- " + shell.Line(wholeArgv(d.root, spec)) + "\n"),
		Control + "/log":        nil,
		Control + "/job":        Unknown("- -"),
		Control + "/ended-by":   Unknown("-"),
		Control + "/ending":     Unknown("- -"),
		Control + "/status.new": Unknown("-"),
	}
	maps.Copy(files, spec.Files)
	return files
}

// Archive packs a job's directory with these files for build.sh. dir is its name in the archive, which is its first
// name at the site.
func Archive(tag string, files map[string][]byte) (archive io.Reader, dir string, err error) {
	dir = ".new," + tag + "," + rand.Text()
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
	for _, name := range parents(files) {
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: path.Join(dir, name) + "/", Mode: 0o700},
			nil); err != nil {
			return nil, "", err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, name), Mode: 0o600},
			files[name]); err != nil {
			return nil, "", err
		}
	}
	return &b, dir, w.Close()
}

// parents lists all directories that contain files, each after its own parent, as tar requires.
func parents(files map[string][]byte) []string {
	dirs := map[string]bool{}
	for name := range files {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// Seconds formats d in whole seconds, rounded up, as every sleep(1) accepts it.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(int64((max(d, 0)+time.Second-1)/time.Second), 10)
}
