// Package packages builds, checks, chooses and unpacks worker packages.
//
// A worker package contains the software that a site needs before pilots can run there: the pilot binary for the
// embedded cluster, or HTCondor's daemons and libraries. It is one archive (.tar.gz) of regular files. Its first entry
// is a manifest with the package's name and platform, and the size and digest of each file. Its name is
// what-version-arch-os-libc: corral-pilot-0.1.0-x86_64-linux-static. Its identity is the digest of the archive.
//
// A program that contains its own libc refers to its loader by absolute path, which is unknown until the package is
// unpacked: the manifest lists the places in programs where paths must be written.
//
// Invariant: nothing is extracted from an archive before the archive's digest has been checked, and a directory created
// by Unpack has exactly the files of the manifest, relocated to that directory, or does not exist.
//
// Build writes a Package, Choose selects the one for a platform, and Unpack installs it in a directory. Sizes are in
// bytes. Package staging finds and transfers packages.
//
// # Where to look
//
// manifest.go defines the format. build.go writes archives, this file reads and checks them, and unpack.go unpacks them
// into a directory, to which relocate.go adapts programs. sign.go creates and checks signatures, without which no site
// accepts a package, and choose.go selects the package for a platform.
package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A Package describes one archive. Name, Digest and SizeBytes suffice to fetch and unpack it; the other fields are for
// choosing it.
type Package struct {
	Name      string          `json:"name"` // full name: what-version-arch-os-libc
	What      string          `json:"what"`
	Version   string          `json:"version"`
	Platform  corral.Platform `json:"platform"`   // its requirements
	Digest    string          `json:"digest"`     // sha256:HEX of the archive
	SizeBytes int64           `json:"size_bytes"` // of the archive
}

// describe returns the package with header h.
func (h Header) describe(digest string, size int64) Package {
	return Package{Name: h.Name(), What: h.What, Version: h.Version, Platform: h.Platform,
		Digest: digest, SizeBytes: size}
}

// Open opens an archive. The error is Invalid if the file does not exist, cannot be read, is not a regular file, or is
// longer than MaxBytes.
func Open(archive string) (*os.File, error) {
	f, err := input.Open(archive)
	if there, ok := errors.AsType[*fs.PathError](err); ok {
		err = there.Err // without the path, which becomes the place
	}
	var special *input.NotRegularError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.As(err, &special):
		return nil, corral.ErrorAt(corral.Invalid, archive, "%w", err)
	case err != nil:
		return nil, fmt.Errorf("open package %s: %w", archive, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > MaxBytes {
		err = corral.ErrorAt(corral.Invalid, archive, "bad package: %w", &input.TooLongError{Limit: MaxBytes})
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Inspect reads a whole archive, checks every file in it against its manifest, and describes the archive. The error is
// Invalid and names the archive; if ctx ends during the reading, it is that of ctx.
func Inspect(ctx context.Context, archive string) (Package, error) {
	f, err := Open(archive)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	digest, size, err := digestOf(ctx, f)
	if err != nil {
		return Package{}, err
	}
	// Read twice, for the digest and for the content, so that the digest does not depend on how gzip reads.
	m, err := readArchive(input.Limit(ctx, f, MaxBytes), func(file, io.Reader) error { return nil })
	switch cause := context.Cause(ctx); {
	case err != nil && cause != nil:
		return Package{}, fmt.Errorf("read package: %w", cause)
	case err != nil:
		return Package{}, corral.ErrorAt(corral.Invalid, archive, "bad package: %w", err)
	}
	return m.Header.describe(digest, size), nil
}

// Peek describes an archive by its manifest alone, in milliseconds instead of seconds for Inspect. It reads only the
// archive's beginning: the caller must know the digest and that the archive matches it.
func Peek(archive, digest string) (Package, error) {
	f, err := Open(archive)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Package{}, fmt.Errorf("read package: %w", err)
	}
	m, _, _, err := openArchive(f)
	if err != nil {
		return Package{}, corral.ErrorAt(corral.Invalid, archive, "bad package: %w", err)
	}
	return m.Header.describe(digest, info.Size()), nil
}

// Verify checks that an archive is p, byte for byte. The error is Failed and names the package; if ctx ends during the
// reading, it is that of ctx.
func Verify(ctx context.Context, archive string, p Package) error {
	f, err := openAs(archive, p)
	if err != nil {
		return err
	}
	defer f.Close()
	return verify(ctx, f, p)
}

// openAs opens an archive that should be p: errors in it are the package's, not the request's.
func openAs(archive string, p Package) (*os.File, error) {
	f, err := Open(archive)
	if corral.KindOf(err) == corral.Invalid {
		err = corral.ErrorAt(corral.Failed, "package "+p.Name, "%w", err)
	}
	return f, err
}

// verify checks that f is p, and leaves f at its beginning.
func verify(ctx context.Context, f *os.File, p Package) error {
	if _, err := HexOf(p.Digest); err != nil {
		return err
	}
	digest, size, err := digestOf(ctx, f)
	if err != nil {
		return err
	}
	if digest != p.Digest {
		return corral.ErrorAt(corral.Failed, "package "+p.Name, "corrupt: its %d bytes have digest %s, not %s",
			size, digest, p.Digest)
	}
	return nil
}

// digestOf hashes an archive, and leaves it at its beginning.
func digestOf(ctx context.Context, f *os.File) (digest string, size int64, err error) {
	sum, size, err := sumOf(input.Limit(ctx, f, MaxBytes))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", 0, fmt.Errorf("read package: %w", err)
	}
	return digestPrefix + sum, size, nil
}

// sumOf returns the SHA-256 of the content of r in hex, and its length in bytes.
func sumOf(r io.Reader) (sum string, size int64, err error) {
	h := sha256.New()
	size, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// openArchive reads up to the manifest, and returns it decoded and raw, with a reader of the following files. A gzip
// stream may expand to a thousand times its length, so its output is limited too.
func openArchive(r io.Reader) (manifest, []byte, *tar.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return manifest{}, nil, nil, fmt.Errorf("not a gzip archive: %w", err)
	}
	t := tar.NewReader(input.Limit(context.Background(), z, maxTarBytes))
	h, err := t.Next()
	if err != nil {
		return manifest{}, nil, nil, fmt.Errorf("not a tar archive: %w", err)
	}
	if h.Name != ManifestName || h.Typeflag != tar.TypeReg || h.Size > maxManifestBytes {
		return manifest{}, nil, nil, fmt.Errorf("first entry %q is not a %s of at most %d bytes",
			h.Name, ManifestName, maxManifestBytes)
	}
	raw, err := io.ReadAll(t)
	if err != nil {
		return manifest{}, nil, nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	m, err := parseManifest(raw)
	return m, raw, t, wrap.Errorf(err, "%s", ManifestName)
}

// readArchive reads an archive to its end and checks it against its manifest, whose files must follow in the same
// order. It calls keep with each file, the manifest last; keep may leave the content unread. An error in a file may be
// detected only after keep has received it.
func readArchive(r io.Reader, keep func(file, io.Reader) error) (manifest, error) {
	m, raw, t, err := openArchive(r)
	if err != nil {
		return manifest{}, err
	}
	places := m.places()
	for _, want := range m.Files {
		if err := readEntry(t, want, places[want.Path], keep); err != nil {
			return manifest{}, fmt.Errorf("file %q: %w", want.Path, err)
		}
	}
	// An archive could continue after the manifest's files, with a file that overwrites a checked one.
	if h, err := t.Next(); err == nil {
		return manifest{}, fmt.Errorf("entry %q is not in the manifest", h.Name)
	} else if !errors.Is(err, io.EOF) {
		return manifest{}, fmt.Errorf("after the last file: %w", err)
	}
	// The manifest is kept last, so that a directory with a manifest has everything else.
	own := file{Path: ManifestName, Mode: 0o644, Size: int64(len(raw))}
	return m, keep(own, bytes.NewReader(raw))
}

// readEntry reads the next entry, which must be the file want with placeholders in its places. keep receives the
// content before its digest is known, so it must be able to discard the content.
func readEntry(t *tar.Reader, want file, places []Relocation, keep func(file, io.Reader) error) error {
	h, err := t.Next()
	if errors.Is(err, io.EOF) {
		return errors.New("missing")
	} else if err != nil {
		return err
	}
	if h.Name != want.Path || h.Typeflag != tar.TypeReg || h.Size != want.Size {
		return fmt.Errorf("the archive has %q (type %q, %d bytes) in its place", h.Name, h.Typeflag, h.Size)
	}
	sum := sha256.New()
	whole := &blanked{Reader: t, places: places}
	content := io.TeeReader(whole, sum)
	if err := keep(want, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
		return fmt.Errorf("sha256 is %s, not %s", got, want.SHA256)
	}
	if whole.differs {
		return errNoPlaceholder
	}
	return nil
}

// encode formats the manifest as in archives: equal manifests give equal bytes.
func (m manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", " ")
	return append(b, '\n'), err
}
