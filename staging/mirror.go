package staging

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

const archiveSuffix = ".tar.gz"

// A Mirror is a directory of worker packages, each under the hex digest of its archive. It may be
// used by several processes at once. Dir is made when the first package is added, and holds nothing
// else.
type Mirror struct {
	Dir string // absolute
}

// Add copies an archive into the mirror, after checking every file in it. Adding it again changes
// nothing. The error is Invalid if the archive is not a package.
func (m Mirror) Add(archive string) (packages.Package, error) {
	return m.put(func(w io.Writer) error {
		f, err := os.Open(archive)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

// Build makes a package of files, as packages.Build does, right in the mirror.
func (m Mirror) Build(h packages.Header, files fs.FS) (packages.Package, error) {
	return m.put(func(w io.Writer) error {
		_, err := packages.Build(w, h, files)
		return err
	})
}

// put adds what write writes, under the name that its content gives it.
func (m Mirror) put(write func(io.Writer) error) (packages.Package, error) {
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	tmp, err := os.CreateTemp(m.Dir, ".add-*")
	if err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	defer os.Remove(tmp.Name())
	err = write(tmp)
	if errClose := tmp.Close(); err == nil {
		err = errClose
	}
	if err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	p, err := packages.Inspect(tmp.Name())
	if err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	name, err := m.path(p)
	if err != nil {
		return packages.Package{}, err // unreachable: Inspect made the digest
	}
	if err := os.Chmod(tmp.Name(), 0o644); err != nil {
		return packages.Package{}, fmt.Errorf("add package %s: %w", p.Name, err)
	}
	return p, os.Rename(tmp.Name(), name)
}

// List describes the packages of the mirror in the order of their digests.
func (m Mirror) List() ([]packages.Package, error) {
	names, err := filepath.Glob(filepath.Join(m.Dir, "*"+archiveSuffix))
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []packages.Package
	for _, name := range names {
		p, err := packages.Peek(name, "sha256:"+strings.TrimSuffix(filepath.Base(name), archiveSuffix))
		if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// URL returns the file URL of a package, for sites that share corrald's file system.
func (m Mirror) URL(p packages.Package) (string, error) {
	name, err := m.path(p)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: name}).String(), nil
}

// FileName returns the name of a package's archive in a mirror, which is its path below the URL where
// ServeHTTP is mounted.
func FileName(p packages.Package) (string, error) {
	digits, err := packages.HexOf(p.Digest)
	return digits + archiveSuffix, err
}

func (m Mirror) path(p packages.Package) (string, error) {
	name, err := FileName(p)
	return filepath.Join(m.Dir, name), err
}

// ServeHTTP answers GET and HEAD of FileName, whole or by ranges, and nothing else. The caller strips
// the prefix.
func (m Mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	digits, ok := strings.CutSuffix(path.Base(r.URL.Path), archiveSuffix)
	name, err := m.path(packages.Package{Digest: "sha256:" + digits})
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	f, err := os.Open(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		http.Error(w, "reading the package", http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", `"`+digits+`"`) // the content never changes under its name
	w.Header().Set("Content-Type", "application/gzip")
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// Remove deletes a package from the mirror; removing what is not there is no error.
func (m Mirror) Remove(p packages.Package) error {
	name, err := m.path(p)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return corral.ErrorAt(corral.Failed, "package "+p.Name, "removing: %w", err)
	}
	return nil
}
