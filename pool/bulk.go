package pool

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	maxChunk       = 256 << 10        // bytes of a raw frame
	maxDescription = 2 * maxFrame     // bytes: of a job that fits into a frame, with the list of its files
	bulkTimeout    = 60 * time.Second // a peer that sends nothing of what it began for so long is gone
)

// A bulkWriter sends what is written as raw frames. It waits while the peer is behind.
type bulkWriter struct{ c *conn }

func (b bulkWriter) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		chunk := p[sent:min(len(p), sent+maxChunk)]
		if err := b.c.sendBulk(chunk); err != nil {
			return sent, err
		}
		sent += len(chunk)
	}
	return len(p), nil
}

// Close sends the frame that ends the others.
func (b bulkWriter) Close() error { return b.c.sendBulk(nil) }

// sendBulk queues a raw frame as soon as little waits to be written: memory is for many couriers.
func (c *conn) sendBulk(body []byte) error {
	c.mu.Lock()
	for len(c.out) > maxChunk && !c.closing {
		c.room.Wait()
	}
	closing := c.closing
	c.mu.Unlock()
	if closing {
		return net.ErrClosed
	}
	c.sendFrame(body)
	return nil
}

// A bulkReader reads the bytes of raw frames, up to the one that ends them.
type bulkReader struct {
	c    *conn
	rest []byte
	over bool
}

func (b *bulkReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.over {
			return 0, io.EOF
		}
		_ = b.c.nc.SetReadDeadline(time.Now().Add(bulkTimeout))
		frame, err := readFrame(b.c.br, b.c.in, maxChunk)
		if err != nil {
			return 0, noEOF(err)
		}
		b.c.in, b.rest, b.over = frame, frame, len(frame) == 0
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// finish reads what an archive has behind its end, so that the next message can be read.
func (b *bulkReader) finish() error {
	_, err := io.Copy(io.Discard, b)
	_ = b.c.nc.SetReadDeadline(time.Time{})
	return err
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sendParcel sends a file of the folder of a parcel, and all files of a folder there. What is a link travels as the
// file that it leads to.
func sendParcel(c *conn, dir, file, folder string) error {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		return err
	}
	names := []string{file}
	for _, e := range entries {
		names = append(names, filepath.Join(folder, e.Name()))
	}
	to := bulkWriter{c}
	archive := tar.NewWriter(to)
	for _, name := range names {
		if err := tarFile(archive, filepath.Join(dir, name), name); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), to.Close())
}

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
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(w, in, info.Size())
	return err
}

// receiveParcel puts what sendParcel sends into a folder that is empty: so many files at most, with a description that may
// be read into memory.
func receiveParcel(c *conn, dir string, most int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	from := &bulkReader{c: c}
	for archive := tar.NewReader(from); ; most-- {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return from.finish()
		}
		if err != nil {
			return err
		}
		folder, file := filepath.Split(h.Name)
		switch {
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%w: %q in a parcel is no file", errProtocol, h.Name)
		case most == 0 || folder == "" && h.Size > maxDescription || folder != "" && h.Name != filepath.Base(folder)+"/"+file:
			return fmt.Errorf("%w: a parcel with more than was asked for", errProtocol)
		}
		if err := errors.Join(root.MkdirAll(filepath.Dir(h.Name), 0o700), untarEntry(archive, h, root, h.Name)); err != nil {
			return err
		}
	}
}
