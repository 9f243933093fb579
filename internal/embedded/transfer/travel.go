package transfer

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// Send sends one file from a parcel's folder, and all files of a subfolder, as one tar archive in raw frames. For a
// link, the file that it leads to is sent.
func Send(c *wire.Conn, dir, file, folder string) error {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return err
	}
	names := []string{file}
	for _, e := range entries {
		names = append(names, filepath.Join(folder, e.Name()))
	}
	return sendArchive(c, func(archive *tar.Writer) error {
		for _, name := range names {
			if err := tarFile(archive, filepath.Join(dir, name), name); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendArchive sends the archive that fill writes. The archive is written in pieces of at most 512 bytes, which are
// buffered, so that a small parcel fits into one frame.
func sendArchive(c *wire.Conn, fill func(*tar.Writer) error) error {
	to := collectors.Get().(*bufio.Writer)
	defer collectors.Put(to)
	to.Reset(wire.BulkWriter{Conn: c})
	archive := tar.NewWriter(to)
	if err := fill(archive); err != nil {
		return err
	}
	return errors.Join(archive.Close(), to.Flush(), wire.BulkWriter{Conn: c}.Close())
}

// Buffers are reused, because a buffer is larger than most parcels.
var (
	collectors = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}
	copiers    = sync.Pool{New: func() any { return new([32 << 10]byte) }}
)

// tarFile writes one file in its current state: if the file grows in the meantime, no more bytes are sent than its
// header announces.
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
