package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

const (
	writeTimeout  = 30 * time.Second // a peer that does not read a writePiece within this time has failed
	writePiece    = 64 << 10         // bytes: even at 2 KiB/s, a link shared by many connections works
	finishTimeout = 2 * time.Second  // time to read the peer's last message
	maxUnsent     = 64 << 20         // bytes; a connection with more unsent data is closed
)

// A Conn carries messages over one connection. Sending never blocks: messages are encoded into a buffer that one
// goroutine writes, so that all messages sent during one write leave together with the next. Only one goroutine at a
// time may call Recv.
type Conn struct {
	Net net.Conn
	br  *bufio.Reader
	in  []byte // the last frame; reused

	wake chan struct{} // something to write, or closing
	done chan struct{} // closed when the writing goroutine has ended

	mu      sync.Mutex // guards the fields below
	out     []byte
	closing bool
	room    sync.Cond // uses mu: out has become shorter, or the connection is closing
}

// NewConn returns a Conn that owns nc. The caller must close it with Close or Finish.
func NewConn(nc net.Conn) *Conn {
	c := &Conn{
		Net: nc, br: bufio.NewReaderSize(nc, 64<<10),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	c.room.L = &c.mu
	go c.write()
	return c
}

// Recv returns the next message; it refuses frames of more than limit bytes before it reads them. The error is io.EOF
// only between frames.
func (c *Conn) Recv(limit int) (*Message, error) {
	frame, err := readFrame(c.br, c.in, limit)
	if err != nil {
		return nil, err
	}
	if cap(frame) <= maxBatch {
		c.in = frame // a huge frame must not stay in memory permanently
	}
	return decode(frame)
}

// readFrame reads one frame into buf or, if that is too small, into a larger buffer.
func readFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > limit {
		return nil, fmt.Errorf("%w: a frame has %d bytes, but at most %d are allowed", ErrProtocol, n, limit)
	}
	if cap(buf) < n {
		buf = make([]byte, n, max(n, 4<<10))
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, NoEOF(err)
	}
	return buf, nil
}

// Send queues m. It does nothing on a closed connection: the reader detects the end.
func (c *Conn) Send(m *Message) {
	b, err := json.Marshal(m)
	if err != nil {
		panic("embedded: a message cannot be encoded as JSON: " + err.Error()) // unreachable: no such field
	}
	c.SendFrame(b)
}

// SendFrame queues one encoded message.
func (c *Conn) SendFrame(body []byte) {
	c.mu.Lock()
	if !c.closing && len(body) <= MaxFrame {
		c.out = binary.BigEndian.AppendUint32(c.out, uint32(len(body)))
		c.out = append(c.out, body...)
	}
	behind := len(c.out) > maxUnsent
	c.mu.Unlock()
	if behind {
		_ = c.Net.Close() // the reader fails, and its owner cleans up
	}
	c.rouse()
}

// rouse wakes the writing goroutine, unless it has already been woken.
func (c *Conn) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write runs in the writing goroutine. It closes the connection when it ends: at once if everything was written,
// otherwise after a delay, because a peer that closed its end may have sent the reason, which must still be read.
func (c *Conn) write() {
	defer close(c.done)
	var spare []byte
	for range c.wake {
		c.mu.Lock()
		batch, closing := c.out, c.closing
		c.out = spare[:0]
		c.mu.Unlock()
		c.room.Broadcast()
		if len(batch) > 0 {
			if err := c.writeOut(batch); err != nil {
				c.shut()
				time.AfterFunc(finishTimeout, func() { _ = c.Net.Close() })
				return
			}
		}
		if closing {
			_ = c.Net.Close()
			return
		}
		spare = batch
		if cap(spare) > maxBatch {
			spare = nil
		}
	}
}

// writeOut writes a batch in pieces, each with its own timeout.
func (c *Conn) writeOut(batch []byte) error {
	for len(batch) > 0 {
		c.mu.Lock()
		if !c.closing { // once closing, the remaining data has a common deadline
			_ = c.Net.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
		c.mu.Unlock()
		n, err := c.Net.Write(batch[:min(len(batch), writePiece)])
		if err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// shut disables later sends and makes the writing goroutine end soon.
func (c *Conn) shut() {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		_ = c.Net.SetWriteDeadline(time.Now().Add(finishTimeout))
	}
	c.mu.Unlock()
	c.room.Broadcast()
	c.rouse()
}

// Close closes the connection now and waits for its goroutine. It may be called more than once.
func (c *Conn) Close() {
	_ = c.Net.Close()
	c.Finish()
}

// Finish writes the queued messages, closes the connection and waits for its goroutine.
func (c *Conn) Finish() {
	c.shut()
	<-c.done
}

// EncodeAssign returns assign frames for jobs, in order, and the jobs that are too large for a frame. A frame contains
// up to maxBatch bytes of jobs, so that many small jobs need only one frame and a large job does not delay the jobs
// before it.
func EncodeAssign(jobs []*execution.Job) (frames [][]byte, tooLarge []*execution.Job) {
	const head, tail = `{"type":"` + TypeAssign + `","jobs":[`, `]}`
	var frame []byte
	flush := func() {
		if frame != nil {
			frames = append(frames, append(frame, tail...))
		}
		frame = nil
	}
	for _, j := range jobs {
		b, err := json.Marshal(j)
		if err != nil || len(b) > MaxFrame-len(head)-len(tail) {
			tooLarge = append(tooLarge, j)
			continue
		}
		if len(frame)+len(b) > maxBatch {
			flush()
		}
		if frame == nil {
			frame = append(make([]byte, 0, len(head)+len(tail)+len(b)*2), head...)
		} else {
			frame = append(frame, ',')
		}
		frame = append(frame, b...)
	}
	flush()
	return frames, tooLarge
}

// Refuse sends the reason to the peer and closes the connection. Internal errors are not revealed.
func Refuse(c *Conn, err error) {
	m := &Message{Type: TypeRefuse, Kind: corral.KindOf(err), Reason: Clip(err.Error())}
	if m.Kind == corral.Internal {
		m.Kind, m.Reason = corral.Unavailable, "internal error of the service; see its log"
	}
	c.Send(m)
	c.Finish()
}

// Clip limits a reason to the length that the protocol allows, and puts it on one line for display.
func Clip(reason string) string {
	reason = strings.ReplaceAll(strings.TrimSpace(reason), "\n", "; ")
	if len(reason) > maxReasonLen {
		return reason[:maxReasonLen]
	}
	return reason
}
