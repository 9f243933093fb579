package wire

import (
	"errors"
	"io"
	"net"
	"time"
)

const (
	maxChunk       = 256 << 10        // bytes of a raw frame
	MaxDescription = 2 * MaxFrame     // bytes: for a job that fits into a frame, with the list of its files
	bulkTimeout    = 60 * time.Second // a peer that sends nothing for this long in the middle of a transfer has failed
)

// A BulkWriter sends the bytes written to it as raw frames. It blocks while the peer reads too slowly.
type BulkWriter struct{ Conn *Conn }

// Write sends p; it fails once the connection has been closed.
func (b BulkWriter) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		chunk := p[sent:min(len(p), sent+maxChunk)]
		if err := b.Conn.sendBulk(chunk); err != nil {
			return sent, err
		}
		sent += len(chunk)
	}
	return len(p), nil
}

// Close sends the frame that ends the transfer.
func (b BulkWriter) Close() error { return b.Conn.sendBulk(nil) }

// sendBulk queues a raw frame when little data is waiting to be written. A slow peer never blocks messages, but it may
// block files, because the buffers of many couriers share the memory.
func (c *Conn) sendBulk(body []byte) error {
	c.mu.Lock()
	for len(c.out) > maxChunk && !c.closing {
		c.room.Wait()
	}
	closing := c.closing
	c.mu.Unlock()
	if closing {
		return net.ErrClosed
	}
	c.SendFrame(body)
	return nil
}

// A BulkReader reads the bytes of raw frames, up to the frame that ends the transfer.
type BulkReader struct {
	Conn *Conn
	rest []byte
	over bool
}

// Read reads the bytes that the peer writes; if the connection ends before the last frame, it returns an error.
func (b *BulkReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.over {
			return 0, io.EOF
		}
		_ = b.Conn.Net.SetReadDeadline(time.Now().Add(bulkTimeout))
		frame, err := readFrame(b.Conn.br, b.Conn.in, maxChunk)
		if err != nil {
			return 0, NoEOF(err)
		}
		b.Conn.in, b.rest, b.over = frame, frame, len(frame) == 0
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Finish discards the data after an archive's end, so that the next message can be read.
func (b *BulkReader) Finish() error {
	_, err := io.Copy(io.Discard, b)
	_ = b.Conn.Net.SetReadDeadline(time.Time{})
	return err
}

// NoEOF returns err, or io.ErrUnexpectedEOF in place of io.EOF: the connection ended where an answer was expected.
func NoEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
