package parcel

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/embedded/wire"
)

// Send sends a file of the folder of a parcel, and all files of a folder there, as one tar archive in raw frames. What
// is a link travels as the file that it leads to.
func Send(c *wire.Conn, dir, file, folder string) error {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return err
	}
	names := []string{file}
	for _, e := range entries {
		names = append(names, filepath.Join(folder, e.Name()))
	}
	to := wire.BulkWriter{Conn: c}
	archive := tar.NewWriter(to)
	for _, name := range names {
		if err := tarFile(archive, filepath.Join(dir, name), name); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), to.Close())
}

// Bytes is how many bytes Send sends, without the archive's headers.
func Bytes(dir, file, folder string) (sum int64) {
	names := []string{file}
	entries, _ := os.ReadDir(filepath.Join(dir, folder)) // what cannot be read is not sent
	for _, e := range entries {
		names = append(names, filepath.Join(folder, e.Name()))
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// tarFile writes one file as it is now: should it grow meanwhile, no more of it is sent than its header says.
func tarFile(w *tar.Writer, path, name string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{
		Name: name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime(),
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(w, in, info.Size())
	return err
}

// Receive puts what Send sends into a folder that is empty: so many files at most, with a description that may
// be read into memory.
func Receive(c *wire.Conn, dir string, most int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	from := &wire.BulkReader{Conn: c}
	for archive := tar.NewReader(from); ; most-- {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return from.Finish()
		}
		if err != nil {
			return err
		}
		folder, file := filepath.Split(h.Name)
		switch {
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%w: %q in a parcel is no file", wire.ErrProtocol, h.Name)
		case most == 0 || folder == "" && h.Size > wire.MaxDescription ||
			folder != "" && h.Name != filepath.Base(folder)+"/"+file:
			return fmt.Errorf("%w: a parcel with more than was asked for", wire.ErrProtocol)
		}
		err = errors.Join(root.MkdirAll(filepath.Dir(h.Name), 0o700), untarEntry(archive, h, root, h.Name))
		if err != nil {
			return err
		}
	}
}
