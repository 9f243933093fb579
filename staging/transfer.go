package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

// A Position is a place in the file at a URL: the number of bytes already received, and the version.
type Position struct {
	Offset    int64  // bytes; 0 is the beginning
	Validator string // the server's name of that version; may be ""
}

// A Stream is the rest of the file at a URL, from a position on.
type Stream struct {
	io.ReadCloser
	Start     Position // the requested position, or the beginning
	Resumable bool     // the server can start elsewhere than at the beginning
}

// Open begins to read the file at u at a position; if the server cannot, or has another version now, it starts at the
// beginning. The error is Failed if it is permanent, Unavailable if no server was reached, and of any other kind if it
// may be transient.
type Open func(ctx context.Context, u *url.URL, at Position) (Stream, error)

// maxResumes is how often an interrupted transfer is resumed before the next mirror is tried.
const maxResumes = 3

// A transfer is one package from one mirror.
type transfer struct {
	fetcher  *Fetcher
	url      *url.URL
	size     int64 // of the archive
	sink     sink
	received int64 // bytes, including useless ones
	reached  bool  // a server answered
	resumed  int
}

// run transfers the archive and checks it. If an archive assembled from parts is wrong, it is transferred once more as
// a whole, because the mirror may have changed the file in between.
func (t *transfer) run(ctx context.Context, p packages.Package) error {
	err := t.copy(ctx, maxResumes)
	if err == nil {
		err = t.sink.compare(p)
	}
	if corral.KindOf(err) == corral.Failed && t.resumed > 0 { // parts of two versions have a wrong digest
		if err = t.copy(ctx, 0); err == nil {
			err = t.sink.compare(p)
		}
	}
	return err
}

// copy reads from the beginning to the end and resumes after interruptions, as long as each part adds bytes.
func (t *transfer) copy(ctx context.Context, resumes int) error {
	if err := t.sink.restart(); err != nil {
		return err
	}
	at := Position{}
	for {
		from, before := at, t.sink.n
		next, err := t.piece(ctx, from)
		// A transfer was interrupted unless the mirror refused, our own disk failed, or the caller's time is over.
		broke := err != nil && corral.KindOf(err) != corral.Failed && t.sink.err == nil && ctx.Err() == nil
		// If a part added no bytes, another try would not either.
		if !broke || next == nil || t.sink.n <= before || resumes == 0 {
			return err
		}
		at = *next
		t.resumed++
		resumes--
	}
}

// errSlow is the cause of the end of a transfer that was too slow.
var errSlow = errors.New("too slow")

// piece copies the file at the URL from a position to its end, or up to one byte more than the archive's length, which
// shows that the file is too long. If the copying is interrupted, next is where to resume; nil if that is not possible.
func (t *transfer) piece(ctx context.Context, at Position) (next *Position, err error) {
	open, ok := t.fetcher.Open[t.url.Scheme]
	if !ok {
		return nil, refusef("this program does not support the scheme %q", t.url.Scheme)
	}
	// The watch includes the opening: a server may accept a connection and send nothing.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var arrived atomic.Int64
	stop := t.fetcher.Pace.watch(&arrived, cancel)
	defer stop()
	stream, err := open(ctx, t.url, at)
	t.reached = t.reached || corral.KindOf(err) != corral.Unavailable
	if err == nil {
		defer stream.Close()
		next, err = t.drain(stream, at, &arrived)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
		if errors.Is(cause, errSlow) { // it would not be faster from the middle
			next = nil
		}
	}
	return next, err
}

// drain copies stream, which must start at the position at or at the beginning.
func (t *transfer) drain(stream Stream, at Position, arrived *atomic.Int64) (*Position, error) {
	switch stream.Start.Offset {
	case at.Offset:
		if at.Offset > 0 && at.Validator != stream.Start.Validator {
			return nil, errors.New("the file changed while it was read")
		}
	case 0:
		if err := t.sink.restart(); err != nil {
			return nil, err
		}
	default:
		return nil, refusef("server started at byte %d, not at %d", stream.Start.Offset, at.Offset)
	}
	// One byte more than the archive's length suffices to detect a file that is too long.
	n, err := io.Copy(&t.sink, io.LimitReader(&counted{stream, arrived}, t.size+1-t.sink.n))
	t.received += n
	if !stream.Resumable {
		return nil, err
	}
	return &Position{t.sink.n, stream.Start.Validator}, err
}

// watch cancels with the reason if less arrives in a window than the pace requires, until stop is called. It compares
// the total at the ends of windows, so that the cost arises once per window and not per read.
func (p Pace) watch(arrived *atomic.Int64, cancel context.CancelCauseFunc) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(p.Window)
		defer tick.Stop()
		for before := int64(0); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := arrived.Load()
			if err := p.check(now - before); err != nil {
				cancel(err)
				return
			}
			before = now
		}
	}()
	return func() { end(); <-ended }
}

// check evaluates the bytes of one window. A window without any bytes has its own message, because it suggests a
// network problem rather than a slow server.
func (p Pace) check(n int64) error {
	floor := int64(p.Window.Seconds() * float64(p.BytesPerS))
	switch {
	case n == 0:
		return fmt.Errorf("%w: no data arrived for %s", errSlow, p.Window)
	case n < floor:
		return fmt.Errorf("%w: %d bytes in %s, the floor is %d", errSlow, n, p.Window, floor)
	}
	return nil
}

// counted counts the bytes read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

// Read counts the bytes for watch, which runs in another goroutine.
func (r *counted) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n.Add(int64(n))
	return n, err
}
