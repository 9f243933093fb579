package htcondor

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// A Debian is a source of Debian's packages: the mirror used by this machine's apt, for any suite.
type Debian struct {
	Suite string // trixie
	Cache string // a folder of this user, absolute, for downloaded files
	// Progress is called with a short description of each step; it may be nil.
	Progress func(step string)
}

const (
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	// A stable suite changes every few months, so once a day is enough.
	lifetime = 24 * time.Hour
	// listName is the file that lists the latest download. Its name has a number because the set of packages has
	// changed: an older list is incomplete.
	listName = "downloaded.2"
)

// asked are the packages to fetch, with all their dependencies: HTCondor, and the OpenSSH that condor_ssh_to_job starts
// beside a job.
var asked = []string{"condor", "openssh-server"}

// suitePattern ensures that a suite's name cannot be anything else in apt's list of sources.
var suitePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// Unpack fetches HTCondor, with all dependencies of its programs, from the suite and unpacks it into dir, which must be
// empty. apt uses a state of its own, with nothing installed, and verifies everything with Debian's key. Later calls
// take packages that are still the newest from Cache, and need no network within a day. The error is Unsatisfiable if
// this machine lacks a tool, and explains the remedy.
func (d Debian) Unpack(ctx context.Context, dir string) (Installation, error) {
	if Arch() == "" {
		return Installation{}, corral.Errorf(corral.Unsatisfiable, "Debian has no HTCondor for %s", runtime.GOARCH)
	}
	if !suitePattern.MatchString(d.Suite) {
		return Installation{}, corral.ErrorAt(corral.Invalid, "suite",
			"%q is not a valid name of a Debian suite, such as trixie", d.Suite)
	}
	if err := tools(); err != nil {
		return Installation{}, err
	}
	debs, err := d.fetch(ctx)
	if err != nil {
		return Installation{}, fmt.Errorf("fetching HTCondor from Debian %s: %w", d.Suite, err)
	}
	d.say("unpacking %d packages", len(debs))
	if err := unpackAll(ctx, debs, dir); err != nil {
		return Installation{}, fmt.Errorf("unpacking HTCondor from Debian %s: %w", d.Suite, err)
	}
	return find(filepath.Join(dir, "usr"))
}

// say reports a step to Progress.
func (d Debian) say(format string, args ...any) {
	if d.Progress != nil {
		d.Progress(fmt.Sprintf(format, args...))
	}
}

// tools reports what this machine lacks, and the remedy.
func tools() error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return corral.Errorf(corral.Unsatisfiable, "this machine has no %s, a tool of Debian and its "+
				"derivatives: build on one of those, or from an installed HTCondor with --from DIR", tool)
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return corral.Errorf(corral.Unsatisfiable,
			"this machine has no %s: install the package debian-archive-keyring", keyring)
	}
	return nil
}

// fetch returns the files of HTCondor's packages and all their dependencies, in the cache. Concurrent builds wait for
// each other, and the later ones use the first one's downloads.
func (d Debian) fetch(ctx context.Context) ([]string, error) {
	arch := runtime.GOARCH // Debian and Go use the same names of architectures
	a := apt{dir: filepath.Join(d.Cache, d.Suite+"-"+arch), arch: arch}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(a.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := atomicfile.Lock(ctx, lock); err != nil { // another build with this cache
		return nil, err
	}
	if debs := a.recent(); debs != nil {
		d.say("all packages were downloaded within a day")
		return debs, nil
	}
	if err := a.configure(ctx, d.Suite); err != nil {
		return nil, err
	}
	d.say("reading the package lists of Debian %s", d.Suite)
	if err := a.run(ctx, io.Discard, "update"); err != nil {
		// apt has no exit status for this case, only a message, which LC_ALL=C keeps in English.
		if strings.Contains(err.Error(), "does not have a Release file") {
			err = corral.Errorf(corral.Unsatisfiable,
				"this machine's mirror of Debian has no suite of that name; try trixie")
		}
		return nil, err
	}
	d.say("downloading HTCondor and its dependencies")
	if err := a.run(ctx, io.Discard, append([]string{"install", "--download-only"}, asked...)...); err != nil {
		if strings.Contains(err.Error(), "Unable to locate package") {
			err = corral.Errorf(corral.Unsatisfiable, "that suite has no HTCondor; try trixie")
		}
		return nil, err
	}
	debs, err := a.downloaded(ctx)
	if err != nil {
		return nil, err
	}
	return debs, a.remember(debs)
}

// remember records the downloaded files by their names in the cache, because the path of the cache may change.
func (a apt) remember(debs []string) error {
	names := make([]string, len(debs))
	for i, deb := range debs {
		names[i] = filepath.Base(deb)
	}
	return os.WriteFile(filepath.Join(a.dir, listName), []byte(strings.Join(names, "\n")), 0o644)
}

// recent returns the last download if it is so recent that nothing newer is expected. If a file is missing, it returns
// nil, and everything is requested again.
func (a apt) recent() []string {
	list := filepath.Join(a.dir, listName)
	info, err := os.Stat(list)
	if err != nil || time.Since(info.ModTime()) > lifetime {
		return nil
	}
	b, err := os.ReadFile(list)
	if err != nil {
		return nil
	}
	// The names are ours, but the folder is the user's, so only their base names are used.
	debs := strings.Split(string(b), "\n")
	for i, name := range debs {
		deb := filepath.Join(a.dir, "debs", filepath.Base(name))
		debs[i] = deb
		if _, err := os.Stat(deb); err != nil {
			return nil
		}
	}
	return debs
}

// aptConf is apt's configuration, with the placeholders DIR, ARCH and USER.
//
//go:embed apt.conf
var aptConf string

// An apt runs apt-get with all of its state below dir.
type apt struct{ dir, arch string }

// configure writes apt's configuration, each time, because the machine's mirror may have changed. All of apt's state is
// below dir, so that the machine's own packages are neither read nor changed, and root is not needed.
func (a apt) configure(ctx context.Context, suite string) error {
	site, err := mirror(ctx)
	if err != nil {
		return err
	}
	for _, dir := range []string{"lists/partial", "debs/partial", "cache", "empty"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
			return err
		}
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	source := fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s main\n", a.arch, keyring, site, suite)
	config := strings.NewReplacer("@DIR@", a.dir, "@ARCH@", a.arch, "@USER@", me.Username).Replace(aptConf)
	for name, text := range map[string]string{"apt.conf": config, "sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// mirror returns the URL from which this machine's apt gets Debian. It reads only apt's settings, because containers
// often have no package lists.
func mirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--no-release-info",
		"--format", "$(SITE)", "Identifier: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("asking apt-get for its mirrors: %w", err)
	}
	for _, site := range slices.Sorted(strings.Lines(string(out))) {
		if site = strings.TrimSpace(site); path.Base(site) == "debian" {
			return site, nil
		}
	}
	return "", corral.Errorf(corral.Unsatisfiable, "this machine's apt has no mirror of Debian: "+
		"add one to its sources, or build from an installed HTCondor with --from DIR")
}

// run runs apt-get. The error has apt's own words.
func (a apt) run(ctx context.Context, stdout io.Writer, args ...string) error {
	var words bytes.Buffer
	args = append([]string{"-q", "-y", "-c", filepath.Join(a.dir, "apt.conf")}, args...)
	c := exec.CommandContext(ctx, "apt-get", args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.Stdout, c.Stderr = stdout, &words
	// On SIGTERM apt ends its children.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return corral.Errorf(corral.Failed, "apt-get %s: %w: %s", args[0], err, strings.TrimSpace(words.String()))
	}
	return nil
}

// archiveURI matches apt-get's line about an archive: its URL, in quotes, and its name in the cache.
var archiveURI = regexp.MustCompile(`^'[^']*' (\S+\.deb) `)

// downloaded returns the packages of HTCondor and its dependencies, which are all in the cache, and removes older
// versions from the cache.
func (a apt) downloaded(ctx context.Context) ([]string, error) {
	var out bytes.Buffer
	// apt lists only files that it would fetch. With an empty folder for archives these are all files.
	elsewhere := "Dir::Cache::Archives=" + filepath.Join(a.dir, "empty")
	err := a.run(ctx, &out, append([]string{"install", "--print-uris", "-o", elsewhere}, asked...)...)
	if err != nil {
		return nil, err
	}
	var debs []string
	for line := range strings.Lines(out.String()) {
		if m := archiveURI.FindStringSubmatch(line); m != nil {
			debs = append(debs, filepath.Join(a.dir, "debs", m[1]))
		}
	}
	// apt itself never removes outdated files.
	old, err := filepath.Glob(filepath.Join(a.dir, "debs", "*.deb"))
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		if !slices.Contains(debs, name) {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return debs, nil
}

// unpackAll unpacks the useful parts of all packages, using all processors, because unpacking is mostly decompression.
func unpackAll(ctx context.Context, debs []string, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var all sync.WaitGroup
	errs := make([]error, len(debs))
	slots := make(chan struct{}, runtime.NumCPU())
	for i, deb := range debs {
		if unneeded.MatchString(filepath.Base(deb)) {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := unpack(ctx, deb, root); err != nil {
				errs[i] = fmt.Errorf("%s: %w", filepath.Base(deb), err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// unneeded matches large dependencies of HTCondor that no program in our packages needs: languages, and parts of a
// bootable system.
var unneeded = regexp.MustCompile(`^(perl|libperl|libdate-manip|python|libpython|libjs-|tzdata|debconf|dpkg_|` +
	`passwd_|login|tar_|openssl_|coreutils|bash_)`)

// unpack extracts HTCondor's programs and all libraries from a package.
func unpack(ctx context.Context, deb string, root *os.Root) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var words bytes.Buffer
	c := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	c.Stderr = &words
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	errTar := extract(out, root)
	_, errRest := io.Copy(io.Discard, out) // padding, or data after an error: dpkg-deb must end
	if err := c.Wait(); err != nil {
		if ctx.Err() == nil {
			_ = os.Remove(deb) // it is damaged: the next call fetches it again
		}
		return fmt.Errorf("dpkg-deb: %w: %s", err, strings.TrimSpace(words.String()))
	}
	return errors.Join(errTar, errRest)
}

// wanted matches HTCondor's programs, those of OpenSSH that condor_ssh_to_job starts, and all libraries.
var wanted = regexp.MustCompile(`^usr/(s?bin/(condor_|classad_)[^/]*|libexec/condor/[^/]*|` +
	`sbin/sshd|bin/ssh-keygen|lib/openssh/sshd-[^/]*|lib/condor/condor_ssh_to_job_sshd_config_template|` +
	`lib/([a-z0-9_]+-linux-gnu/)?(condor/)?[^/]*\.so[^/]*)$`)

// extract writes the wanted files of a tar archive below root, which confines their names.
func extract(tarball io.Reader, root *os.Root) error {
	t := tar.NewReader(tarball)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if !wanted.MatchString(name) {
			continue
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeReg:
			err = extractFile(t, root, name, fs.FileMode(h.Mode))
		}
		if err != nil {
			return err
		}
	}
}

// extractFile writes one file, readable and writable by this user and executable if the package says so.
func extractFile(content io.Reader, root *os.Root, name string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode&0o700|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
