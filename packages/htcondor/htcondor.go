// Package htcondor builds worker packages of HTCondor, from an installation or from Debian's packages.
//
// A package has HTCondor's programs and all libraries that they need, including libc and its loader, and nothing else:
// it runs on any Linux of its architecture, with any libc, wherever it is unpacked. A program finds its libraries
// relative to itself (by DT_RPATH, which unlike LD_LIBRARY_PATH does not affect jobs), and its loader by the absolute
// path that package packages writes into it when unpacking.
//
// There are two packages of each HTCondor: one with the programs of a worker, small because every site gets it, and one
// with those of a pool and its users. An unpacked package is a release folder for package condor.
//
// Find describes an Installation, Debian.Unpack downloads one, and Installation.Pack writes a package of it. Building
// runs no programs except apt-get and dpkg-deb, and does not need root.
//
// # How it works
//
// An [Installation] is located (htcondor.go), or obtained from a [Debian] (debian.go): apt, with a state of its own in
// which nothing is installed, downloads HTCondor with all dependencies, and the programs and libraries are unpacked
// into a folder. The rest is the same for both. A tree (tree.go) collects the programs, the libraries that each file
// names, and some libraries that HTCondor opens by name. Programs are modified (elf.go): they get a DT_RPATH relative
// to themselves, and space for the path of their loader.
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

// The packages that are built from an HTCondor.
const (
	Worker = "htcondor"      // the programs of a worker
	Pool   = "htcondor-pool" // the programs of a pool and its users
)

// An Installation is an HTCondor on this machine from which packages can be built.
type Installation struct {
	Dir     string // contains bin, sbin and libexec/condor; absolute
	Version string // 23.9.6
	Arch    string // x86_64 or aarch64

	loader    string   // base name of the loader
	libraries []string // folders, in search order
}

// Find describes the HTCondor in dir: the unpacked archive of a release, an unpacked package, or /usr. It searches
// libraries in dir and then on this machine. The error is NotFound if there is no HTCondor.
func Find(dir string) (Installation, error) {
	i, err := find(dir)
	if err != nil {
		return Installation{}, err
	}
	i.libraries = append(i.libraries, machineLibraries(i.Arch)...)
	return i, nil
}

// find describes the HTCondor in dir with only the libraries of dir. Releases and distributions use different names for
// the folders of libraries, and find tries all of them.
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

// maxProgram is the maximum length of a program or library; HTCondor's longest, libcondor_utils, has 20 MB.
const maxProgram = 256 << 20

// versionText matches the version text in every program of HTCondor.
var versionText = regexp.MustCompile(`\$CondorVersion: ([0-9]+\.[0-9]+\.[0-9]+) `)

// Version returns the version of the HTCondor in dir. It reads HTCondor's programs without running them. If dir has no
// HTCondor, the error is NotFound and names the missing program.
func Version(dir string) (string, error) {
	for _, name := range []string{"sbin/condor_master", "bin/condor_version"} {
		if !executable(filepath.Join(dir, name)) {
			return "", corral.ErrorAt(corral.NotFound, dir, "it has no HTCondor: there is no program %s", name)
		}
	}
	b, err := input.ReadFile(filepath.Join(dir, "bin/condor_version"), maxProgram)
	if err != nil {
		return "", corral.ErrorAt(corral.NotFound, dir, "its HTCondor cannot be read: %w", err)
	}
	found := versionText.FindSubmatch(b)
	if found == nil {
		return "", corral.ErrorAt(corral.Invalid, dir, "bin/condor_version names no version of HTCondor")
	}
	return string(found[1]), nil
}

// platform returns a program's architecture, by uname's name, and the path of its loader, which ELF calls interpreter.
func platform(program string) (arch, interpreter string, err error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	arch, ok := architectures[f.Machine]
	if !ok || f.Class != elf.ELFCLASS64 || f.ByteOrder.String() != "LittleEndian" {
		return "", "", fmt.Errorf("it is for %s, which packages do not support", f.Machine)
	}
	// The limit is PATH_MAX: a longer path could not be opened.
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			text, err := io.ReadAll(p.Open())
			return arch, string(bytes.TrimRight(text, "\x00")), err
		}
	}
	return "", "", errors.New("it has no loader")
}

// :: machine of a program → name as in uname -m
var architectures = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// machineLibraries lists the folders of this machine's libraries, as far as they are in ld.so.conf or built into
// loaders. The loaders' cache is not read, because it has a special format.
func machineLibraries(arch string) []string {
	var dirs []string
	confs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf") // the pattern is well formed
	for _, name := range append(confs, "/etc/ld.so.conf") {
		b, _ := os.ReadFile(name) // if this fails, a library may not be found, and the error names the library
		for line := range strings.Lines(string(b)) {
			if dir := strings.TrimSpace(line); filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	gnu := arch + "-linux-gnu"
	return append(dirs, "/lib/"+gnu, "/usr/lib/"+gnu, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

// Arch returns this machine's name as in uname -m; "" if no packages are built for it.
func Arch() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// Pack writes the package of the given kind, Worker or Pool, to w. The same files give the same bytes.
func (i Installation) Pack(w io.Writer, what string) (packages.Package, error) {
	dir, err := os.MkdirTemp("", "corral-package-")
	if err != nil {
		return packages.Package{}, fmt.Errorf("packing HTCondor: %w", err)
	}
	defer os.RemoveAll(dir)
	// The files are collected in a folder first, because the archive begins with the manifest, which has their digests.
	t := tree{from: i, dir: dir, have: map[string]bool{}}
	names, err := i.programs(what)
	if err == nil {
		err = t.fill(names, i.ssh(), what)
	}
	if err != nil {
		return packages.Package{}, corral.ErrorAt(corral.KindOr(err, corral.Failed), "packing "+what, "%w", err)
	}
	// Static: the package contains its own libc, and does not use the site's.
	h := packages.Header{
		What: what, Version: i.Version,
		Platform: corral.Platform{OS: "linux", Arch: i.Arch, Libc: packages.Static},
	}
	return packages.Build(w, h, os.DirFS(dir), t.relocations...)
}

// The programs of a worker. condor_version is included because it identifies an unpacked package.
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

// A piece is a file of a package, with its paths in installations.
type piece struct {
	name  string   // in the package
	paths []string // below Dir; the first existing one is used
}

// The files that condor_ssh_to_job and interactive jobs need on the worker: HTCondor starts a sshd as the job's user
// there, for one connection. Since OpenSSH 9.8 that consists of several programs. Their folder is not in the PATH of
// users' shells.
var sshPieces = []piece{
	{"libexec/openssh/sshd", []string{"libexec/openssh/sshd", "sbin/sshd"}},
	{"libexec/openssh/ssh-keygen", []string{"libexec/openssh/ssh-keygen", "bin/ssh-keygen"}},
	{"libexec/openssh/sshd-session", []string{"libexec/openssh/sshd-session", "lib/openssh/sshd-session"}},
	{"libexec/openssh/sshd-auth", []string{"libexec/openssh/sshd-auth", "lib/openssh/sshd-auth"}},
	{"libexec/condor/condor_ssh_to_job_sshd_setup", []string{"libexec/condor/condor_ssh_to_job_sshd_setup"}},
	{"libexec/condor/condor_ssh_to_job_shell_setup", []string{"libexec/condor/condor_ssh_to_job_shell_setup"}},
	{"lib/condor_ssh_to_job_sshd_config_template", []string{"lib/condor_ssh_to_job_sshd_config_template",
		"lib/condor/condor_ssh_to_job_sshd_config_template"}},
	{"lib/libgetpwnam.so", []string{"lib/libgetpwnam.so"}}, // for a user without a shell
}

// ssh lists the existing sshPieces, each with its only path. An installation without a sshd has none of them: its
// workers use their machines' programs.
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

// programs lists the programs of a package, below Dir: for workers a fixed list, and for pools all of HTCondor's,
// because users of a pool may run any of its commands.
func (i Installation) programs(what string) ([]string, error) {
	if what == Worker {
		return workerPrograms, nil
	}
	if what != Pool {
		return nil, corral.Errorf(corral.Invalid, "there is no package of HTCondor called %q", what)
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

// ours reports whether a program belongs to HTCondor, because /usr has many others, and is useful without further setup
// by the machine's administrator: programs for clouds and containers are excluded.
func ours(folder, name string) bool {
	others := []string{"condor_annex", "htcondor_docker_test", "classad_functional_tester"}
	if slices.Contains(others, name) || strings.Contains(name, ".so") {
		return false
	}
	return folder == "libexec/condor" || strings.HasPrefix(name, "condor_") || strings.HasPrefix(name, "classad_")
}

// executable reports whether name is an executable regular file.
func executable(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&fs.FileMode(0o111) != 0
}
