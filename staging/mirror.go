package staging

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/packages"
)

// archiveSuffix follows the digest in an archive's name. No other file of a mirror ends with it.
const archiveSuffix = ".tar.gz"

// IndexName is the file of a mirror that lists its packages with their signatures.
const IndexName = "index.json"

// maxIndexBytes is the maximum length of an index.
const maxIndexBytes = 16 << 20

// A Mirror is a directory of worker packages, each named by the hex digest of its archive, with the signature beside
// it, and an index of them. A copy of the directory behind any http, https or ftp server is also a mirror. Several
// processes may read it concurrently. Dir is created when the first package is added, and holds nothing else.
type Mirror struct {
	Dir string // absolute
}

// Add checks every file in an archive and copies the archive into the mirror. Adding it again changes nothing. The
// error is Invalid if the archive is not a package, and that of ctx if ctx ends first. A file that does not begin with
// a manifest is not copied.
func (m Mirror) Add(ctx context.Context, archive string) (packages.Package, error) {
	if _, err := packages.Peek(archive, ""); err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	return m.put(ctx, func(w io.Writer) error {
		f, err := packages.Open(archive)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, input.Limit(ctx, f, packages.MaxBytes))
		return err
	})
}

// Build builds a package from files, like packages.Build, directly in the mirror.
func (m Mirror) Build(h packages.Header, files fs.FS) (packages.Package, error) {
	return m.put(context.Background(), func(w io.Writer) error {
		_, err := packages.Build(w, h, files)
		return err
	})
}

// put adds the output of write, under the name derived from its content. It is written under another name, checked, and
// then renamed, so that a server never sends a partial archive.
func (m Mirror) put(ctx context.Context, write func(io.Writer) error) (packages.Package, error) {
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	tmp, err := os.CreateTemp(m.Dir, adding+"*")
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
	// The copy is inspected, not the source, because the source could change in between.
	p, err := packages.Inspect(ctx, tmp.Name())
	if err != nil {
		return packages.Package{}, fmt.Errorf("add package: %w", err)
	}
	name, err := m.Path(p)
	if err != nil {
		return packages.Package{}, err // unreachable: Inspect computed the digest
	}
	if err := os.Chmod(tmp.Name(), 0o644); err != nil {
		return packages.Package{}, fmt.Errorf("add package %s: %w", p.Name, err)
	}
	return p, os.Rename(tmp.Name(), name)
}

// Prefixes of names that are not part of the mirror yet: an archive that is being copied into it, and a folder for an
// archive that is being fetched. Their creator removes them, unless the process is killed first.
const (
	adding  = ".add-"
	fetched = ".import-"
)

// Room creates a folder in the mirror for an archive that is being fetched. The caller removes it.
func (m Mirror) Room() (dir string, err error) {
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return "", fmt.Errorf("making the mirror: %w", err)
	}
	dir, err = os.MkdirTemp(m.Dir, fetched+"*")
	return dir, wrap.Errorf(err, "making room in the mirror")
}

// Sweep removes the remains of killed processes from the mirror. Nothing may be added to the mirror concurrently.
func (m Mirror) Sweep() error {
	entries, err := os.ReadDir(m.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), adding) || strings.HasPrefix(e.Name(), fetched) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(m.Dir, e.Name())))
		}
	}
	return wrap.Errorf(err, "clearing the mirror")
}

// Vouch stores the signature of an existing archive's package beside it and in the index. The caller has checked the
// signature, and must not call Vouch or Remove concurrently.
func (m Mirror) Vouch(s packages.Signed) error {
	name, err := m.Path(s.Package)
	if err != nil {
		return err
	}
	b, err := s.Encode()
	if err != nil {
		return err // unreachable: every field can be encoded
	}
	if err := atomicfile.Replace(name+packages.SignatureSuffix, b, 0o644); err != nil {
		return fmt.Errorf("signing package %s: %w", s.Name, err)
	}
	return m.writeIndex()
}

// writeIndex updates the index to the existing signatures.
func (m Mirror) writeIndex() error {
	all, err := m.index()
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err // unreachable: as in Vouch
	}
	err = atomicfile.Replace(filepath.Join(m.Dir, IndexName), append(b, '\n'), 0o644)
	return wrap.Errorf(err, "writing the mirror's index")
}

// index returns the signed packages of the mirror, in the order of their digests.
func (m Mirror) index() ([]packages.Signed, error) {
	names, err := filepath.Glob(filepath.Join(m.Dir, "*"+archiveSuffix+packages.SignatureSuffix))
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	all := []packages.Signed{} // [] in JSON, not null
	for _, name := range names {
		s, err := readSignature(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// readSignature reads the signature file of one package.
func readSignature(name string) (packages.Signed, error) {
	f, err := os.Open(name)
	if err != nil {
		return packages.Signed{}, fmt.Errorf("list packages: %w", err)
	}
	defer f.Close()
	return packages.ReadSigned(f)
}

// Index reads the index of the mirror at base. Its content is untrusted until the caller has checked its signatures.
// The error's kind is that of Open.
func (f *Fetcher) Index(ctx context.Context, base string) ([]packages.Signed, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, refusef("not a URL")
	}
	b, err := f.readAll(ctx, u.JoinPath(IndexName), maxIndexBytes)
	if err != nil {
		return nil, err
	}
	var all []packages.Signed
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, refusef("%s is not an index of packages: %v", IndexName, err)
	}
	return all, nil
}

// Signature reads the signature beside the archive at rawURL.
func (f *Fetcher) Signature(ctx context.Context, rawURL string) (packages.Signed, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return packages.Signed{}, refusef("not a URL")
	}
	u.Path, u.RawPath = u.Path+packages.SignatureSuffix, ""
	b, err := f.readAll(ctx, u, 64<<10)
	if err != nil {
		return packages.Signed{}, err
	}
	return packages.ReadSigned(bytes.NewReader(b))
}

// URLBelow returns the URL of a package in a mirror whose directory is at base.
func URLBelow(base string, p packages.Package) (string, error) {
	name, err := FileName(p)
	if err != nil {
		return "", err
	}
	joined, err := url.JoinPath(base, name)
	if err != nil {
		return "", corral.Errorf(corral.Invalid, "%q is not a URL", base)
	}
	return joined, nil
}

// URL returns the file URL of a package, for sites that share corrald's file system.
func (m Mirror) URL(p packages.Package) (string, error) {
	name, err := m.Path(p)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: name}).String(), nil
}

// FileName returns the name of a package's archive in a mirror, which is its path below the URL where ServeHTTP is
// mounted.
func FileName(p packages.Package) (string, error) {
	digits, err := packages.HexOf(p.Digest)
	return digits + archiveSuffix, err
}

// Path returns the path of p's archive in the mirror, whether or not it exists. The error is Invalid if the digest is
// malformed.
func (m Mirror) Path(p packages.Package) (string, error) {
	name, err := FileName(p)
	return filepath.Join(m.Dir, name), err
}

// ServeHTTP answers GET and HEAD of archives (FileName), whole or by ranges, of their signatures and of the index, and
// nothing else. The caller strips the prefix.
func (m Mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	// Only names of a known form are looked up, so that a request cannot name any other file.
	base := path.Base(r.URL.Path)
	digits, isArchive := strings.CutSuffix(strings.TrimSuffix(base, packages.SignatureSuffix), archiveSuffix)
	name, err := m.Path(packages.Package{Digest: "sha256:" + digits})
	known := isArchive && err == nil || base == IndexName
	if !known {
		http.NotFound(w, r)
		return
	}
	f, err := os.Open(filepath.Join(m.Dir, base))
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
	w.Header().Set("Content-Type", "application/json") // for signatures and the index
	if filepath.Join(m.Dir, base) == name {
		w.Header().Set("ETag", `"`+digits+`"`) // the content under a name never changes
		w.Header().Set("Content-Type", "application/gzip")
	}
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// Has reports whether the archive of p is in the mirror, by its name and size. Add has checked its content; corruption
// by a failing disk is detected when a site compares the digest.
func (m Mirror) Has(p packages.Package) bool {
	name, err := m.Path(p)
	if err != nil {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && info.Size() == p.SizeBytes
}

// Remove deletes a package from the mirror. Removing a missing package is not an error.
func (m Mirror) Remove(p packages.Package) error {
	name, err := m.Path(p)
	if err != nil {
		return err
	}
	// The signature first: without it the package is not in the index, even if the rest fails.
	for _, file := range []string{name + packages.SignatureSuffix, name} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return corral.ErrorAt(corral.Failed, "package "+p.Name, "removing: %w", err)
		}
	}
	return m.writeIndex()
}
