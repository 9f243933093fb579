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

// A Position is a place in what a URL names: how much of it we have, and of which version.
type Position struct {
	Offset    int64  // bytes; 0 is the beginning
	Validator string // what the server called that version; "" if it called it nothing
}

// A Stream is the rest of what a URL names, from a position on.
type Stream struct {
	io.ReadCloser
	Start     Position // the one asked for, or the beginning
	Resumable bool     // the server can begin elsewhere than at the beginning
}

// Open begins to read what u names at a position; a server that cannot, or has another version now,
// gives it from its beginning. The error is Failed if the server's answer will be the same tomorrow,
// Unavailable if no server was reached, and of any other kind if it may pass.
type Open func(ctx context.Context, u *url.URL, at Position) (Stream, error)

// maxResumes is how often a broken transfer is taken up again before the next mirror has its turn.
const maxResumes = 3

// A transfer is one package from one mirror.
type transfer struct {
	fetcher  *Fetcher
	url      *url.URL
	size     int64 // of the archive
	sink     sink
	received int64 // bytes, those that were of no use too
	reached  bool  // a server answered
	resumed  int
}

// run transfers the archive and checks it. What was put together from pieces and is wrong is
// transferred once more in one piece: the mirror may have changed the file in between.
func (t *transfer) run(ctx context.Context, p packages.Package) error {
	err := t.copy(ctx, maxResumes)
	if err == nil {
		err = t.sink.compare(p)
	}
	if corral.KindOf(err) == corral.Failed && t.resumed > 0 { // pieces of two versions have no right digest
		if err = t.copy(ctx, 0); err == nil {
			err = t.sink.compare(p)
		}
	}
	return err
}

// copy reads from the beginning to the end and takes up what breaks off, as long as each piece brings
// something new.
func (t *transfer) copy(ctx context.Context, resumes int) error {
	if err := t.sink.restart(); err != nil {
		return err
	}
	at := Position{}
	for {
		from, before := at, t.sink.n
		next, err := t.piece(ctx, from)
		// A transfer breaks off if neither the mirror said no, nor our own disk, nor the caller's time is the reason.
		broke := err != nil && corral.KindOf(err) != corral.Failed && t.sink.err == nil && ctx.Err() == nil
		// A piece that brought nothing new would not do better the next time.
		if !broke || next == nil || t.sink.n <= before || resumes == 0 {
			return err
		}
		at = *next
		t.resumed++
		resumes--
	}
}

// errSlow is the cause of a transfer that was given up for its pace.
var errSlow = errors.New("too slow")

// piece copies what is at the URL from a position to its end, or up to one byte more than the archive has, which
// shows that there is too much. If the copying breaks off, next is where to take it up again; nil if that is not
// possible.
func (t *transfer) piece(ctx context.Context, at Position) (next *Position, err error) {
	open, ok := t.fetcher.Open[t.url.Scheme]
	if !ok {
		return nil, refusef("scheme %q is none that this program speaks", t.url.Scheme)
	}
	// The watch covers the opening too: a server may take a connection and say nothing.
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
		if errors.Is(cause, errSlow) { // it will not be faster from the middle
			next = nil
		}
	}
	return next, err
}

// drain takes what stream gives, which must begin where at is or at the beginning.
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
		return nil, refusef("server began at byte %d, not at %d", stream.Start.Offset, at.Offset)
	}
	// One byte more than the archive has is enough to know that there is too much.
	n, err := io.Copy(&t.sink, io.LimitReader(&counted{stream, arrived}, t.size+1-t.sink.n))
	t.received += n
	if !stream.Resumable {
		return nil, err
	}
	return &Position{t.sink.n, stream.Start.Validator}, err
}

// watch cancels with the reason when less arrives in a window than the pace asks for, until stop is called. It compares
// what has arrived at the ends of windows, so that a transfer pays for it once a window and not with every read.
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

// check judges what came in one window: nothing at all is named apart, because it points at the network and not at a
// slow server.
func (p Pace) check(n int64) error {
	floor := int64(p.Window.Seconds() * float64(p.BytesPerS))
	switch {
	case n == 0:
		return fmt.Errorf("%w: nothing came for %s", errSlow, p.Window)
	case n < floor:
		return fmt.Errorf("%w: %d bytes in %s, the floor is %d", errSlow, n, p.Window, floor)
	}
	return nil
}

// counted notes what was read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

// Read counts what came, for watch, which runs in another goroutine.
func (r *counted) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n.Add(int64(n))
	return n, err
}
