package transfer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// tarFolder writes the contents of a folder to an archive: files, folders, and symbolic links as links. It stops when
// ctx ends.
func tarFolder(ctx context.Context, folder, archive string) error {
	out, err := os.OpenFile(archive, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	if folder, err = filepath.EvalSymlinks(folder); err == nil { // WalkDir does not follow the first link
		err = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return tarEntry(ctx, w, folder, at, d)
		})
	}
	return errors.Join(err, w.Close(), out.Close())
}

// tarEntry writes one file, folder or link. It omits the names of users and groups, which are meaningless on the other
// machine.
func tarEntry(ctx context.Context, w *tar.Writer, folder, at string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	switch info.Mode().Type() {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		if target, err = os.Readlink(at); err != nil {
			return err
		}
	default:
		return nil // reading from a named pipe may block indefinitely
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(folder, at); err != nil {
		return err
	}
	h.Uname, h.Gname = "", ""
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	in, err := os.Open(at)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(w, input.Limit(ctx, in, math.MaxInt64-1))
	return err
}

// untarFolder extracts an archive to a folder. The archive may come from a hostile machine: os.Root ensures that
// nothing is written through a link that leads out of root, nor through a link in the archive that leads out of the
// folder.
func untarFolder(archive string, root *os.Root, name string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	return untar(in, root, name)
}

// untar is untarFolder for an archive that is read from a stream.
func untar(in io.Reader, root *os.Root, name string) error {
	if err := root.MkdirAll(name, 0o777); err != nil {
		return err
	}
	folder, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%q leads out of its folder", h.Name)
		}
		if err := untarEntry(r, h, folder, h.Name); err != nil {
			return err
		}
	}
}

// untarEntry creates the archive's next entry.
func untarEntry(r io.Reader, h *tar.Header, root *os.Root, at string) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(at, 0o777)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, at)
	case tar.TypeReg:
		return write(root, at, os.O_TRUNC, h.FileInfo(), r)
	}
	return nil
}

// write copies r to a file with the mode and modification time of info; some tasks compare the ages of files. how is
// the flag that determines how an existing file is opened.
func write(root *os.Root, name string, how int, info fs.FileInfo, r io.Reader) error {
	out, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|how, info.Mode().Perm())
	if err != nil {
		return err
	}
	buffer := copiers.Get().(*[32 << 10]byte)
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, r, buffer[:]) // hides File.ReadFrom
	copiers.Put(buffer)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, info.ModTime(), info.ModTime())
}
