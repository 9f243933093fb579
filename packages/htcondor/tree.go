package htcondor

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/packages"
)

// placeBytes is the space for the path of the loader. Half a kilobyte is more than the paths of known sites need.
const placeBytes = 512

// Libraries that are opened by name while a program runs, so that no file lists them as needed. HTCondor's are those
// named in its own library; a worker does not need those of authentication methods that Corral's pools do not use. A
// name here is that of the library's file up to .so.
var (
	openedByWorkers = map[string]string{
		"libssl":    "tokens, and encrypted sessions",
		"libcrypto": "the same",
	}
	openedByPools = map[string]string{
		"libcom_err":     "Kerberos",
		"libgssapi_krb5": "Kerberos",
		"libk5crypto":    "Kerberos",
		"libkrb5":        "Kerberos",
		"libkrb5support": "Kerberos",
		"libmunge":       "MUNGE",
		"libSciTokens":   "SciTokens",
		"libscitokens":   "SciTokens, as other systems call it",
		"libvomsapi":     "attributes of X.509 proxies",
	}
	// openedByLibc are the libraries opened by libc itself; a libc that includes one provides a stub or nothing.
	openedByLibc = map[string]string{
		"libgcc_s.so.1":     "the end of threads",
		"libnss_dns.so.2":   "names of hosts",
		"libnss_files.so.2": "names of users",
		"libresolv.so.2":    "names of hosts",
	}
)

// A tree is the folder that becomes a package.
type tree struct {
	from        Installation
	dir         string
	names       []string        // names of the added files other than libraries
	have        map[string]bool // :: name of a library → whether it is in the tree
	relocations []packages.Relocation
}

// fill adds the programs and the pieces to the tree, and all libraries that they need. The list of needed libraries
// grows during the loop. The libraries that libc opens come first and may be missing.
func (t *tree) fill(programs []string, pieces []piece, what string) error {
	needed := slices.Sorted(maps.Keys(openedByLibc))
	optional := len(needed)
	needed = append(needed, t.from.loader)
	for _, p := range append(asPieces(programs), pieces...) {
		if slices.Contains(t.names, p.name) {
			continue // some pieces are also among a pool's programs
		}
		t.names = append(t.names, p.name)
		libraries, err := t.addProgram(p.name, p.paths[0])
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		needed = append(needed, libraries...)
	}
	// Not a range loop, because the loop appends libraries to the list.
	for n := 0; n < len(needed); n++ {
		name := needed[n]
		if t.have[name] {
			continue
		}
		file, err := t.from.library(name)
		if err != nil && n < optional {
			continue
		}
		if err != nil {
			return err
		}
		more, err := t.addLibrary(name, file, what)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		needed = append(needed, more...)
	}
	return nil
}

// asPieces returns pieces for programs whose path is the same in the installation and in the package.
func asPieces(programs []string) []piece {
	pieces := make([]piece, len(programs))
	for k, name := range programs {
		pieces[k] = piece{name, []string{name}}
	}
	return pieces
}

// library returns the file of a library for the installation's architecture: a system may also have libraries for
// others.
func (i Installation) library(name string) (string, error) {
	for _, dir := range i.libraries {
		file := filepath.Join(dir, name)
		f, err := elf.Open(file)
		if err != nil {
			continue
		}
		fits := architectures[f.Machine] == i.Arch
		f.Close()
		if fits {
			return file, nil
		}
	}
	return "", corral.Errorf(corral.NotFound, "library %s is in none of %s", name,
		strings.Join(slices.Compact(slices.Clone(i.libraries)), ", "))
}

// addProgram adds the program at a path of the installation to the tree, modified to find the tree's loader and
// libraries, and returns the names of the libraries that it needs. Scripts need none. Neither do libraries that are
// loaded into programs of a worker's machine, because those use the machine's libraries.
func (t *tree) addProgram(name, file string) (needed []string, err error) {
	b, err := input.ReadFile(filepath.Join(t.from.Dir, filepath.FromSlash(file)), maxProgram)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte(elf.ELFMAG)) || strings.HasSuffix(name, ".so") {
		return nil, t.write(name, b)
	}
	if needed, err = neededBy(b); err != nil {
		return nil, err
	}
	up := strings.Repeat("../", strings.Count(name, "/")) // from the program's folder to the package's
	b, at, err := relink(b, packages.Placeholder(placeBytes), "$ORIGIN/"+up+"lib")
	if err != nil {
		return nil, err
	}
	t.relocations = append(t.relocations, packages.Relocation{
		File: name, Offset: at, Length: placeBytes, Text: "lib/" + t.from.loader,
	})
	return needed, t.write(name, b)
}

// addLibrary adds a library to the tree and returns the names of the libraries that it needs.
func (t *tree) addLibrary(name, file, what string) (needed []string, err error) {
	b, err := input.ReadFile(file, maxProgram)
	if err != nil {
		return nil, err
	}
	if needed, err = neededBy(b); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, "libcondor_utils") {
		needed = append(needed, t.opened(b, what)...)
	}
	if b, err = withoutRunPath(b); err != nil {
		return nil, err
	}
	t.have[name] = true
	return needed, t.write("lib/"+name, b)
}

// libraryName matches the name of a library as a text in a program, between the zeros that end texts.
var libraryName = regexp.MustCompile(`\x00(lib[A-Za-z0-9_+-]+)\.so(\.[0-9.]+)?\x00`)

// opened returns the existing libraries that HTCondor's own library opens by name and that belong in the package. The
// names are read from the library that opens them, because they differ between distributions.
func (t *tree) opened(library []byte, what string) []string {
	var names []string
	// Two names may share one zero, and matches do not overlap, so each zero is doubled first.
	for _, m := range libraryName.FindAllSubmatch(bytes.ReplaceAll(library, []byte{0}, []byte{0, 0}), -1) {
		name := strings.Trim(string(m[0]), "\x00")
		_, worker := openedByWorkers[string(m[1])]
		_, pool := openedByPools[string(m[1])]
		if _, err := t.from.library(name); err == nil && (worker || pool && what == Pool) {
			names = append(names, name)
		}
	}
	return names
}

// neededBy returns the names of the libraries that a program or library needs.
func neededBy(b []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return f.ImportedLibraries()
}

// write adds an executable file.
func (t *tree) write(name string, b []byte) error {
	to := filepath.Join(t.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700)
}
