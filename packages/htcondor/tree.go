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

// placeBytes is the room for the path of the loader. Paths of half a kilobyte are longer than any that sites have
// shown.
const placeBytes = 512

// Libraries that are opened by name while a program runs, so that none names them as needed. HTCondor's are
// those that occur in its library; without the authentication methods that a pool of ours does not use, a
// worker needs none of theirs. A name is that of the library's file up to .so.
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
	// openedByLibc is what libc itself opens; a libc that has it built in brings a stub or nothing.
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
	names       []string        // of what was added and is no library
	have        map[string]bool // :: name of a library → whether it is in the tree
	relocations []packages.Relocation
}

// fill brings the programs and the pieces into the tree, and all libraries that they need. The list of what is needed
// grows while it is gone through. What libc opens by itself comes first and may be missing.
func (t *tree) fill(programs []string, pieces []piece, what string) error {
	needed := slices.Sorted(maps.Keys(openedByLibc))
	optional := len(needed)
	needed = append(needed, t.from.loader)
	for _, p := range append(asPieces(programs), pieces...) {
		if slices.Contains(t.names, p.name) {
			continue // a pool's programs have some of the pieces among them
		}
		t.names = append(t.names, p.name)
		libraries, err := t.addProgram(p.name, p.paths[0])
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		needed = append(needed, libraries...)
	}
	// Not a range: libraries are added at the end while the list is gone through.
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

// asPieces are programs that have the same place in the installation as in the package.
func asPieces(programs []string) []piece {
	pieces := make([]piece, len(programs))
	for k, name := range programs {
		pieces[k] = piece{name, []string{name}}
	}
	return pieces
}

// library returns the file of a library for the installation's machine: a system may have libraries for others too.
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

// addProgram brings the program at a path of the installation into the tree, changed so that it finds the tree's loader
// and libraries, and returns the names of the libraries that it needs. A script needs none; nor does a library that is
// loaded into the programs of a worker's machine, with the libraries of that.
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

// addLibrary brings a library into the tree and returns the names of those that it needs in turn.
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

// libraryName is the name of a library as a text in a program, between the zeros that end texts.
var libraryName = regexp.MustCompile(`\x00(lib[A-Za-z0-9_+-]+)\.so(\.[0-9.]+)?\x00`)

// opened returns which libraries HTCondor's own opens by name, as far as the package is to have them and they
// are there. Distributions name their libraries differently, so the names are read from the library that opens them.
func (t *tree) opened(library []byte, what string) []string {
	var names []string
	// Two names may have one zero between them, and matches do not overlap: so each zero is doubled first.
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

// write adds a file that can be executed.
func (t *tree) write(name string, b []byte) error {
	to := filepath.Join(t.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700)
}
