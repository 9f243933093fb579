package staging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

// A Fetcher downloads archives. It may be used by several goroutines at once.
type Fetcher struct {
	http  *retryablehttp.Client
	stall time.Duration // a mirror that sends nothing for so long is given up
}

// NewFetcher returns a Fetcher that asks each mirror at most three times in quick succession and gives
// it up when nothing arrives for 30 s: another mirror may be better, and the job's walltime runs.
func NewFetcher(lg *slog.Logger) *Fetcher {
	c := retryablehttp.NewClient()
	c.Logger = lg
	c.RetryMax = 2
	c.RetryWaitMin = 100 * time.Millisecond
	c.RetryWaitMax = time.Second
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler // the last answer says more than "giving up"
	return &Fetcher{http: c, stall: 30 * time.Second}
}

// Fetch writes the archive of src to the file dst, from the first mirror that gives exactly its bytes.
// Every mirror that was asked is in tries, in that order. If none works dst is not there, and the error
// gives every reason; it is Unavailable if one of them may pass, else Failed.
func (f *Fetcher) Fetch(ctx context.Context, src Source, dst string) (tries []Try, err error) {
	out, err := os.CreateTemp(filepath.Dir(dst), ".fetch-*")
	if err != nil {
		return nil, fmt.Errorf("fetch package %s: %w", src.Package.Name, err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	for _, u := range src.URLs {
		try, err := f.try(ctx, u, src.Package, out)
		tries = append(tries, try)
		if err != nil {
			return tries, fmt.Errorf("fetch package %s: %w", src.Package.Name, err)
		}
		if try.Reason == "" {
			return tries, os.Rename(out.Name(), dst)
		}
	}
	return tries, nothingWorked(src.Package.Name, tries)
}

func nothingWorked(name string, tries []Try) error {
	kind, why := corral.Failed, []string{"no mirror is known"}
	if len(tries) > 0 {
		why = nil
	}
	for _, t := range tries {
		why = append(why, t.String())
		if t.Transient {
			kind = corral.Unavailable
		}
	}
	return corral.ErrorAt(kind, "package "+name, "no mirror gave it: %s", strings.Join(why, "; "))
}

// try asks one mirror. What the mirror did wrong is in the Try; the error is about ourselves: no room
// on the disk, or ctx is over.
func (f *Fetcher) try(ctx context.Context, rawURL string, p packages.Package, out *os.File) (Try, error) {
	start, try := time.Now(), Try{URL: "(not a URL)"}
	u, err := url.Parse(rawURL)
	if err != nil {
		try.Reason = "not a URL" // its text may hold a password
		return try, nil
	}
	try.URL = shown(u)
	if err := rewind(out); err != nil {
		return try, err
	}
	sink := &sink{file: out, sum: sha256.New()}
	err = f.copy(ctx, u, p.SizeBytes, sink)
	if err == nil {
		err = sink.compare(p)
	}
	try.Bytes, try.Took = sink.n, time.Since(start)
	if local := errors.Join(sink.err, ctx.Err()); local != nil {
		try.Reason = local.Error()
		return try, local
	}
	if err != nil {
		try.Reason, try.Transient = err.Error(), !errors.As(err, new(*refusal))
	}
	return try, nil
}

func rewind(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// A refusal is a mirror's answer that will be the same tomorrow.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refusef(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// sink takes the bytes of one try.
type sink struct {
	file *os.File
	sum  hash.Hash
	n    int64
	err  error // of the file: not the mirror's fault
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.file.Write(b)
	s.n += int64(n)
	s.err = err
	s.sum.Write(b[:n])
	return n, err
}

// compare checks what was received in full.
func (s *sink) compare(p packages.Package) error {
	got := "sha256:" + hex.EncodeToString(s.sum.Sum(nil))
	switch {
	case s.n < p.SizeBytes:
		return refusef("truncated: %d of %d bytes", s.n, p.SizeBytes)
	case s.n > p.SizeBytes:
		return refusef("more than %d bytes", p.SizeBytes)
	case got != p.Digest:
		return refusef("digest is %s, not %s", got, p.Digest)
	}
	return nil
}

// copy sends at most size+1 bytes of what is at u to w.
func (f *Fetcher) copy(ctx context.Context, u *url.URL, size int64, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(f.stall, func() { cancel(fmt.Errorf("nothing came for %s", f.stall)) })
	defer stalled.Stop()
	body, err := f.open(ctx, u)
	if err == nil {
		defer body.Close()
		_, err = io.Copy(w, io.LimitReader(&watched{body, stalled, f.stall}, size+1))
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// watched puts off the stall timer whenever something arrives.
type watched struct {
	io.Reader
	stalled *time.Timer
	after   time.Duration
}

func (r *watched) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		r.stalled.Reset(r.after)
	}
	return n, err
}

func (f *Fetcher) open(ctx context.Context, u *url.URL) (io.ReadCloser, error) {
	switch u.Scheme {
	case "file":
		return openFile(u)
	case "http", "https":
		return f.openHTTP(ctx, u)
	}
	return nil, refusef("scheme %q is none of http, https, file", u.Scheme)
}

func openFile(u *url.URL) (io.ReadCloser, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, refusef("a file URL cannot name the host %q", u.Host)
	}
	f, err := os.Open(u.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, refusef("%v", err)
	}
	return f, err
}

func (f *Fetcher) openHTTP(ctx context.Context, u *url.URL) (io.ReadCloser, error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, refusef("not a URL for http")
	}
	req.Header.Set("Accept-Encoding", "identity") // the digest is of the bytes as they are stored
	resp, err := f.http.Do(req)
	if err != nil {
		return nil, bare(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	resp.Body.Close()
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout {
		return nil, fmt.Errorf("server said %s", resp.Status)
	}
	return nil, refusef("server said %s", resp.Status)
}

// bare takes the URL, which the Try shows already, out of an error's text.
func bare(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
