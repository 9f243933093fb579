package staging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

// A Fetcher downloads archives. Once its fields are set, it may be used concurrently.
type Fetcher struct {
	Pace Pace            // the minimum pace of a mirror
	Open map[string]Open // :: scheme of a URL → its opener; http, https and file are preset

	http *retryablehttp.Client
}

// A Pace is a minimum rate: in each Window, as many bytes must arrive as BytesPerS gives. Otherwise the mirror is given
// up.
type Pace struct {
	BytesPerS int64
	Window    time.Duration
}

// DefaultPace gives up on a transfer that would take an hour for 60 MB: another mirror may be faster, and the walltime
// of the job passes.
var DefaultPace = Pace{BytesPerS: 16 << 10, Window: 30 * time.Second}

// NewFetcher returns a Fetcher with the DefaultPace that tries each mirror at most three times in quick succession.
func NewFetcher(lg *slog.Logger) *Fetcher {
	c := retryablehttp.NewClient()
	c.Logger = lg
	// A mirror gets few tries, in quick succession, because another one may be better and the walltime of the job
	// passes.
	c.RetryMax = 2
	c.RetryWaitMin = 100 * time.Millisecond
	c.RetryWaitMax = time.Second
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler // the last answer is more informative than "giving up"
	f := &Fetcher{http: c, Pace: DefaultPace}
	f.Open = map[string]Open{"file": openFile, "http": f.openHTTP, "https": f.openHTTP}
	return f
}

// Fetch writes the archive of src to the file dst, from the first mirror that delivers exactly its bytes. tries[i] is
// the result of src.URLs[i]; mirrors after the first good one are not tried. If none works, dst does not exist and the
// error has all reasons; it is Unavailable if one of them is transient, else Failed.
func (f *Fetcher) Fetch(ctx context.Context, src Source, dst string) (tries []Try, err error) {
	// One temporary file for all mirrors, beside dst: it is renamed to dst when its content is right.
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

// nothingWorked returns the error of a Fetch that no mirror satisfied. It is retryable if one mirror may succeed later.
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
	return corral.ErrorAt(kind, "package "+name, "no mirror delivered it: %s", strings.Join(why, "; "))
}

// try tries one mirror. The mirror's faults are recorded in the Try; the error is local: a full disk, or the end of
// ctx. In that case other mirrors could not help either.
func (f *Fetcher) try(ctx context.Context, rawURL string, p packages.Package, out *os.File) (Try, error) {
	start, try := time.Now(), Try{URL: "(not a URL)"}
	u, err := url.Parse(rawURL)
	if err != nil {
		try.Reason = "not a URL" // the text may contain a password
		return try, nil
	}
	try.URL = shown(u)
	t := &transfer{fetcher: f, url: u, size: p.SizeBytes, sink: sink{file: out}}
	err = t.run(ctx, p)
	try.Bytes, try.Took, try.Reached, try.Resumed = t.received, time.Since(start), t.reached, t.resumed
	if local := errors.Join(t.sink.err, ctx.Err()); local != nil {
		try.Reason = local.Error()
		return try, local
	}
	if err != nil {
		try.Reason, try.Transient = err.Error(), corral.KindOf(err) != corral.Failed
	}
	return try, nil
}

// refusef returns the error for a permanent refusal by a mirror.
func refusef(format string, args ...any) error { return corral.Errorf(corral.Failed, format, args...) }

// A sink stores the bytes of one archive and hashes them on arrival, so that the file need not be read again.
type sink struct {
	file *os.File
	sum  hash.Hash
	n    int64
	err  error // of the file: not the mirror's fault
}

// restart discards the bytes received so far.
func (s *sink) restart() error {
	s.n, s.sum = 0, sha256.New()
	if s.err = s.file.Truncate(0); s.err == nil {
		_, s.err = s.file.Seek(0, io.SeekStart)
	}
	return s.err
}

// Write records an error of the file separately, because it is not a mirror's fault.
func (s *sink) Write(b []byte) (int, error) {
	n, err := s.file.Write(b)
	s.n += int64(n)
	s.err = err
	s.sum.Write(b[:n])
	return n, err
}

// compare checks a completely received archive.
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
