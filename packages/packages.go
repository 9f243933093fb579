// Package packages makes, checks, chooses and unpacks worker packages.
//
// A worker package is what a site needs once before pilots can run there: for the embedded cluster the
// pilot binary, for HTCondor its daemons and libraries. It is one archive (.tar.gz) of regular files,
// and its first entry is a manifest that says what it is, where it runs, and the size and digest of
// each file. Its name is what-version-arch-os-libc: corral-pilot-0.1.0-x86_64-linux-static. Its
// identity is the digest of the archive.
//
// Programs that bring their own libc name their loader by its absolute path, which is not known before
// the package is unpacked: the manifest says where in a program a path is to be written.
//
// Invariant: nothing is taken from an archive before the archive's digest has been checked, and a
// directory that Unpack made has exactly the files of the manifest, relocated to that directory, or
// does not exist.
//
// Where packages come from is the business of package staging.
//
// # Where to look
//
// manifest.go has the format: what a manifest may say. build.go writes archives, this file reads and checks them, and
// unpack.go makes a directory of one, which relocate.go tells where it is. sign.go makes and checks the signatures
// without which no site takes a package, and choose.go finds the package for a platform.
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
)

// A Package describes one archive. Name, Digest and SizeBytes are all that is needed to fetch and
// unpack it; the rest is what it is chosen by.
type Package struct {
	Name      string          `json:"name"` // full name: what-version-arch-os-libc
	What      string          `json:"what"`
	Version   string          `json:"version"`
	Platform  corral.Platform `json:"platform"`   // what it needs
	Digest    string          `json:"digest"`     // sha256:HEX of the archive
	SizeBytes int64           `json:"size_bytes"` // of the archive
}

// describe is the package of which h is the header.
func (h Header) describe(digest string, size int64) Package {
	return Package{Name: h.Name(), What: h.What, Version: h.Version, Platform: h.Platform,
		Digest: digest, SizeBytes: size}
}

// Open opens an archive. The error is Invalid if the file does not exist, may not be read, is not a regular file, or
// has more than MaxBytes.
func Open(archive string) (*os.File, error) {
	f, err := input.Open(archive)
	var there *fs.PathError
	if errors.As(err, &there) {
		err = there.Err // without the path, which is the place
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

// Inspect reads a whole archive, checks every file in it against its manifest, and describes it. The
// error is Invalid and names the archive, or is ctx's, whose end ends the reading.
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
	// Read twice, for the digest and for the content: which bytes were summed does not depend on how gzip reads.
	m, err := readArchive(input.Limit(ctx, f, MaxBytes), func(File, io.Reader) error { return nil })
	switch cause := context.Cause(ctx); {
	case err != nil && cause != nil:
		return Package{}, fmt.Errorf("read package: %w", cause)
	case err != nil:
		return Package{}, corral.ErrorAt(corral.Invalid, archive, "bad package: %w", err)
	}
	return m.Header.describe(digest, size), nil
}

// Peek describes an archive by its manifest alone, in milliseconds where Inspect takes seconds. It reads only the
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

// Verify checks that an archive is p, byte for byte. The error is Failed and names the package, or is ctx's, whose end
// ends the reading.
func Verify(ctx context.Context, archive string, p Package) error {
	f, err := openAs(archive, p)
	if err != nil {
		return err
	}
	defer f.Close()
	return verify(ctx, f, p)
}

// openAs opens an archive that is to be p: what is wrong with it is wrong with the package, not with a request.
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

// sumOf returns the SHA-256, in hex, of what r gives, and how many bytes that is.
func sumOf(r io.Reader) (sum string, size int64, err error) {
	h := sha256.New()
	size, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// openArchive reads as far as the manifest, and returns it decoded and raw, with a reader of the files that follow. A
// gzip stream may unpack to a thousand times its length, so what comes out of it is bounded too.
func openArchive(r io.Reader) (Manifest, []byte, *tar.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return Manifest{}, nil, nil, fmt.Errorf("not a gzip archive: %w", err)
	}
	t := tar.NewReader(input.Limit(context.Background(), z, maxTarBytes))
	h, err := t.Next()
	if err != nil {
		return Manifest{}, nil, nil, fmt.Errorf("not a tar archive: %w", err)
	}
	if h.Name != ManifestName || h.Typeflag != tar.TypeReg || h.Size > maxManifestBytes {
		return Manifest{}, nil, nil, fmt.Errorf("first entry %q is not a %s of at most %d bytes",
			h.Name, ManifestName, maxManifestBytes)
	}
	raw, err := io.ReadAll(t)
	if err != nil {
		return Manifest{}, nil, nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	m, err := parseManifest(raw)
	if err != nil {
		return Manifest{}, nil, nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	return m, raw, t, nil
}

// readArchive reads an archive to its end and checks it against its manifest, whose files must follow
// in its order. keep is given each file, the manifest last, and may leave the content unread; a file
// may turn out to be wrong only after keep has had it.
func readArchive(r io.Reader, keep func(File, io.Reader) error) (Manifest, error) {
	m, raw, t, err := openArchive(r)
	if err != nil {
		return Manifest{}, err
	}
	places := m.places()
	for _, want := range m.Files {
		if err := readEntry(t, want, places[want.Path], keep); err != nil {
			return Manifest{}, fmt.Errorf("file %q: %w", want.Path, err)
		}
	}
	// An archive may go on after the files of the manifest, with one that overwrites a file that was checked.
	if h, err := t.Next(); err == nil {
		return Manifest{}, fmt.Errorf("entry %q is not in the manifest", h.Name)
	} else if !errors.Is(err, io.EOF) {
		return Manifest{}, fmt.Errorf("after the last file: %w", err)
	}
	// The manifest is kept last, so that a directory which has one has all else.
	own := File{Path: ManifestName, Mode: 0o644, Size: int64(len(raw))}
	return m, keep(own, bytes.NewReader(raw))
}

// readEntry reads the entry that must be the file want, with placeholders in its places. keep gets the content as it
// comes, before its digest is known: whoever keeps it must be ready to throw it away.
func readEntry(t *tar.Reader, want File, places []Relocation, keep func(File, io.Reader) error) error {
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

// encode writes the manifest as it stands in archives: the same manifest, the same bytes.
func (m Manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", " ")
	return append(b, '\n'), err
}
