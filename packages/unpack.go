package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
)

// Unpack checks that archive is p and unpacks it as the directory dir, whose parent must exist, relocated to dir. The
// files are written to a sibling of dir that is then renamed atomically, so that dir is complete or absent; of several
// concurrent processes, one wins and the others use its result. An existing dir must contain the same package. A
// package that differs from its description is an error of kind Failed that names it. If the package requires a program
// that this machine lacks, or a path shorter than dir's, the error has kind Unsatisfiable. In both cases nothing
// remains.
func Unpack(archive string, p Package, dir string) error {
	f, err := openAs(archive, p)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := verify(context.Background(), f, p); err != nil {
		return err
	}
	// A sibling, because a rename is atomic only within a file system.
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".unpack-")
	if err != nil {
		return fmt.Errorf("unpack package %s: %w", p.Name, err)
	}
	defer os.RemoveAll(tmp)
	final, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("unpack package %s: %w", p.Name, err)
	}
	if err := extract(f, p, tmp, final); err != nil {
		return err
	}
	return settle(tmp, p, dir)
}

// extract writes the files of the archive below dir, which is empty and will be renamed to final: programs are
// relocated to final, not to dir.
func extract(archive io.Reader, p Package, dir, final string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack package %s: %w", p.Name, err)
	}
	defer root.Close()
	m, err := readArchive(archive, func(f file, content io.Reader) error { return write(root, f, content) })
	if err != nil {
		return corral.ErrorAt(corral.Failed, "package "+p.Name, "unpacking: %w", err)
	}
	if got := m.Header.Name(); got != p.Name {
		return corral.ErrorAt(corral.Failed, "package "+p.Name, "its manifest calls it %s", got)
	}
	// Reported here, by name, instead of by a failing worker on each node of the site.
	if missing := m.Header.missing(exec.LookPath); len(missing) > 0 {
		return corral.ErrorAt(corral.Unsatisfiable, "package "+p.Name, "it needs %s, which this machine lacks",
			strings.Join(missing, ", "))
	}
	if err := relocate(root, m, final); err != nil {
		return fmt.Errorf("unpack package %s: %w", p.Name, err)
	}
	return root.Chmod(".", 0o755)
}

// write creates one file of the package. The root confines paths, whatever links exist there.
func write(root *os.Root, f file, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return err
	}
	out, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(f.Mode))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	// Chmod, because the umask has cleared bits of the mode at creation.
	return errors.Join(err, out.Chmod(fs.FileMode(f.Mode)), out.Close())
}

// settle gives the unpacked tmp its final name, unless another process was faster. A directory cannot be renamed to one
// that contains files, so at most one process succeeds; the others compare the existing package with their own.
func settle(tmp string, p Package, dir string) error {
	err := os.Rename(tmp, dir)
	if err == nil {
		return nil
	}
	if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("unpack package %s: %w", p.Name, err)
	}
	// Equal manifests have equal digests of all files, so the files need not be compared.
	mine, err1 := os.ReadFile(filepath.Join(tmp, ManifestName))
	theirs, err2 := os.ReadFile(filepath.Join(dir, ManifestName))
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(mine, theirs) {
		return corral.ErrorAt(corral.Conflict, "package "+p.Name, "%s has other content", dir)
	}
	return nil
}

// Check reports whether dir holds a complete package, with every file as in the manifest and relocated to dir, and
// returns its header. Sites purge files that have not been read for long, so an unpacked package may lose files. The
// error is fs.ErrNotExist if dir does not exist.
func Check(dir string) (Header, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Header{}, fmt.Errorf("check package: %w", err)
	}
	defer root.Close()
	raw, err := root.ReadFile(ManifestName)
	if err != nil {
		return Header{}, corral.ErrorAt(corral.Failed, dir, "unpacked package without manifest: %v", err)
	}
	m, err := parseManifest(raw)
	if err != nil {
		return Header{}, corral.ErrorAt(corral.Failed, dir, "bad manifest: %w", err)
	}
	places := m.places()
	for _, f := range m.Files {
		if err := checkFile(root, f, places[f.Path]); err != nil {
			return Header{}, corral.ErrorAt(corral.Failed, dir, "damaged package: file %q: %v", f.Path, err)
		}
	}
	return m.Header, nil
}

// checkFile compares one unpacked file with the manifest.
func checkFile(root *os.Root, want file, places []Relocation) error {
	f, err := root.Open(want.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode() != fs.FileMode(want.Mode) || info.Size() != want.Size {
		return fmt.Errorf("is %s with %d bytes, not %s with %d",
			info.Mode(), info.Size(), fs.FileMode(want.Mode), want.Size)
	}
	got, _, err := sumOf(&blanked{Reader: f, places: places})
	if err != nil {
		return err
	}
	if got != want.SHA256 {
		return fmt.Errorf("sha256 is %s, not %s", got, want.SHA256)
	}
	for _, place := range places {
		if err := checkPlace(root, f, place); err != nil {
			return err
		}
	}
	return nil
}
