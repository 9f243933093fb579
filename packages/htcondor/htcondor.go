// Package htcondor makes worker packages of HTCondor, from an installed one or from Debian's packages.
//
// A package has HTCondor's programs, all libraries that they need, libc and its loader among them, and
// nothing else: it runs on any Linux of its architecture, whatever libc that has, and wherever it is unpacked.
// A program finds its libraries relative to itself (DT_RPATH, which unlike LD_LIBRARY_PATH does not reach
// jobs), and its loader by the absolute path that package packages writes into it on unpacking.
//
// Of each HTCondor there are two packages: what a worker runs, small because every site gets it, and what
// a pool and its users run. An unpacked package is a release folder for package condor.
//
// No program is run to make them but apt-get and dpkg-deb; root is not needed.
//
// # How it works
//
// An [Installation] is found by looking (htcondor.go), or a [Debian] is asked for one (debian.go): apt, with a state of
// its own in which nothing is installed, downloads HTCondor with everything that it depends on, and the programs and
// libraries are unpacked into a folder. From there both ways are one. A tree (tree.go) takes the programs, follows the
// names of the libraries that each file needs, and some that HTCondor opens by name. Programs are changed on the way
// (elf.go): they get a DT_RPATH relative to themselves, and a place for the path of their loader.
package htcondor

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/packages"
)

// The packages that are made of an HTCondor.
const (
	Worker = "htcondor"      // what a worker runs
	Pool   = "htcondor-pool" // what a pool and its users run
)

// An Installation is an HTCondor on this machine, of which packages are made.
type Installation struct {
	Dir     string // with bin, sbin and libexec/condor; absolute
	Version string // 23.9.6
	Arch    string // x86_64 or aarch64

	loader    string   // the name of the loader's file
	libraries []string // folders, in the order in which they are searched
}

// Find describes the HTCondor in dir: the unpacked archive of a release, an unpacked package, or /usr. Its
// libraries are those of dir and then of this machine. The error is NotFound if there is none.
func Find(dir string) (Installation, error) {
	i, err := find(dir)
	if err != nil {
		return Installation{}, err
	}
	i.libraries = append(i.libraries, machineLibraries(i.Arch)...)
	return i, nil
}

// find describes the HTCondor in dir with the libraries of dir alone. Releases and distributions have different names
// for the folders of libraries, and all of them are tried.
func find(dir string) (Installation, error) {
	v, err := Version(dir)
	if err != nil {
		return Installation{}, err
	}
	master := filepath.Join(dir, "sbin/condor_master")
	arch, interpreter, err := platform(master)
	if err != nil {
		return Installation{}, corral.ErrorAt(corral.Invalid, master, "%w", err)
	}
	i := Installation{Dir: dir, Version: v, Arch: arch, loader: filepath.Base(interpreter)}
	// A release and an unpacked package have lib, Debian has lib/TRIPLET, and others have lib64.
	for _, lib := range []string{"lib", "lib/" + arch + "-linux-gnu", "lib64"} {
		i.libraries = append(i.libraries, filepath.Join(dir, lib), filepath.Join(dir, lib, "condor"))
	}
	if filepath.IsAbs(interpreter) {
		i.libraries = append(i.libraries, filepath.Dir(interpreter))
	}
	return i, nil
}

// maxProgram is how long a program or a library may be; HTCondor's longest, libcondor_utils, has 20 MB.
const maxProgram = 256 << 20

// versionText is how every program of HTCondor carries its version.
var versionText = regexp.MustCompile(`\$CondorVersion: ([0-9]+\.[0-9]+\.[0-9]+) `)

// Version returns the version of the HTCondor in dir. It is read from its programs, none of which is run. The
// error is NotFound, and names what is missing, if there is no HTCondor in dir.
func Version(dir string) (string, error) {
	for _, name := range []string{"sbin/condor_master", "bin/condor_version"} {
		if !executable(filepath.Join(dir, name)) {
			return "", corral.ErrorAt(corral.NotFound, dir, "no HTCondor is there: no program %s", name)
		}
	}
	b, err := input.ReadFile(filepath.Join(dir, "bin/condor_version"), maxProgram)
	if err != nil {
		return "", corral.ErrorAt(corral.NotFound, dir, "no HTCondor that can be read is there: %w", err)
	}
	found := versionText.FindSubmatch(b)
	if found == nil {
		return "", corral.ErrorAt(corral.Invalid, dir, "bin/condor_version names no version of HTCondor")
	}
	return string(found[1]), nil
}

// platform returns the machine that a program is for, by uname's name, and the path of its loader: what an ELF file
// calls its interpreter.
func platform(program string) (arch, interpreter string, err error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	arch, ok := architectures[f.Machine]
	if !ok || f.Class != elf.ELFCLASS64 || f.ByteOrder.String() != "LittleEndian" {
		return "", "", fmt.Errorf("it is for %s, for which no packages are made", f.Machine)
	}
	// The bound is PATH_MAX: a longer path could not be opened.
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			text, err := io.ReadAll(p.Open())
			return arch, string(bytes.TrimRight(text, "\x00")), err
		}
	}
	return "", "", errors.New("it names no loader")
}

// :: machine of a program → what uname -m calls it
var architectures = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// machineLibraries lists where this machine's programs find libraries, as far as ld.so.conf says it, and the folders
// that loaders know by themselves. The cache that loaders use is in a format of its own and is not read.
func machineLibraries(arch string) []string {
	var dirs []string
	confs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf") // the pattern is well formed
	for _, name := range append(confs, "/etc/ld.so.conf") {
		b, _ := os.ReadFile(name) // if that fails, a library may not be found, and the error names it
		for line := range strings.Lines(string(b)) {
			if dir := strings.TrimSpace(line); filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	gnu := arch + "-linux-gnu"
	return append(dirs, "/lib/"+gnu, "/usr/lib/"+gnu, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

// Arch is what uname -m calls this machine; "" if no packages are made for it.
func Arch() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// Pack writes the package of that kind, Worker or Pool, to w. The same files give the same bytes.
func (i Installation) Pack(w io.Writer, what string) (packages.Package, error) {
	dir, err := os.MkdirTemp("", "corral-package-")
	if err != nil {
		return packages.Package{}, fmt.Errorf("packing HTCondor: %w", err)
	}
	defer os.RemoveAll(dir)
	// The files are put together in a folder first, because the manifest, which has their digests, begins the archive.
	t := tree{from: i, dir: dir, have: map[string]bool{}}
	names, err := i.programs(what)
	if err == nil {
		err = t.fill(names, i.ssh(), what)
	}
	if err != nil {
		return packages.Package{}, corral.ErrorAt(corral.KindOr(err, corral.Failed), "packing "+what, "%w", err)
	}
	// Static: the package brings its own libc, and needs nothing of the site's.
	h := packages.Header{
		What: what, Version: i.Version,
		Platform: corral.Platform{OS: "linux", Arch: i.Arch, Libc: packages.Static},
	}
	return packages.Build(w, h, os.DirFS(dir), t.relocations...)
}

// What a worker runs. condor_version is there because it says what an unpacked package is.
var workerPrograms = []string{
	"bin/condor_version",
	"libexec/condor/condor_chirp",
	"libexec/condor/condor_gpu_discovery",
	"libexec/condor/condor_pid_ns_init",
	"libexec/condor/condor_shared_port",
	"sbin/condor_master",
	"sbin/condor_procd",
	"sbin/condor_startd",
	"sbin/condor_starter",
}

// A piece is a file of a package, and where installations have it.
type piece struct {
	name  string   // in the package
	paths []string // below Dir; the first that is there is taken
}

// What condor_ssh_to_job and interactive jobs need where the job runs: HTCondor starts a sshd of the job's user there,
// for one connection. Since OpenSSH 9.8 that is several programs. The folder is none of those in which users' shells
// look for commands.
var sshPieces = []piece{
	{"libexec/openssh/sshd", []string{"libexec/openssh/sshd", "sbin/sshd"}},
	{"libexec/openssh/ssh-keygen", []string{"libexec/openssh/ssh-keygen", "bin/ssh-keygen"}},
	{"libexec/openssh/sshd-session", []string{"libexec/openssh/sshd-session", "lib/openssh/sshd-session"}},
	{"libexec/openssh/sshd-auth", []string{"libexec/openssh/sshd-auth", "lib/openssh/sshd-auth"}},
	{"libexec/condor/condor_ssh_to_job_sshd_setup", []string{"libexec/condor/condor_ssh_to_job_sshd_setup"}},
	{"libexec/condor/condor_ssh_to_job_shell_setup", []string{"libexec/condor/condor_ssh_to_job_shell_setup"}},
	{"lib/condor_ssh_to_job_sshd_config_template", []string{"lib/condor_ssh_to_job_sshd_config_template",
		"lib/condor/condor_ssh_to_job_sshd_config_template"}},
	{"lib/libgetpwnam.so", []string{"lib/libgetpwnam.so"}}, // for a user whose shell is none
}

// ssh lists those of sshPieces that there are, each with its only path. An installation without a sshd has none of
// them: its workers use what their machines have.
func (i Installation) ssh() (found []piece) {
	for k, p := range sshPieces {
		at := slices.IndexFunc(p.paths, func(file string) bool {
			info, err := os.Stat(filepath.Join(i.Dir, file))
			return err == nil && info.Mode().IsRegular()
		})
		if at >= 0 {
			found = append(found, piece{p.name, p.paths[at : at+1]})
		} else if k == 0 {
			return nil
		}
	}
	return found
}

// programs lists what goes into a package, below Dir: for workers a fixed list, and for pools all that is HTCondor's,
// since users of a pool run any of its commands.
func (i Installation) programs(what string) ([]string, error) {
	if what == Worker {
		return workerPrograms, nil
	}
	if what != Pool {
		return nil, corral.Errorf(corral.Invalid, "no package of HTCondor is called %q", what)
	}
	var names []string
	for _, folder := range []string{"bin", "sbin", "libexec/condor"} {
		entries, err := os.ReadDir(filepath.Join(i.Dir, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if ours(folder, e.Name()) && executable(filepath.Join(i.Dir, folder, e.Name())) {
				names = append(names, path.Join(folder, e.Name()))
			}
		}
	}
	return names, nil
}

// ours reports whether a program is HTCondor's, as /usr has many others, and of use without what a machine's
// administrator sets up: programs for clouds and containers are left out.
func ours(folder, name string) bool {
	others := []string{"condor_annex", "htcondor_docker_test", "classad_functional_tester"}
	if slices.Contains(others, name) || strings.Contains(name, ".so") {
		return false
	}
	return folder == "libexec/condor" || strings.HasPrefix(name, "condor_") || strings.HasPrefix(name, "classad_")
}

// executable reports whether there is a file of this name that can be run.
func executable(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&fs.FileMode(0o111) != 0
}
