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

// A Fetcher downloads archives. Once its fields are set, several goroutines may use it at the same time.
type Fetcher struct {
	Pace Pace            // what a mirror must keep up
	Open map[string]Open // :: scheme of a URL → how to read it; http, https and file are there

	http *retryablehttp.Client
}

// A Pace is the least that must arrive: in each Window, as much as BytesPerS would give. When less comes in a window,
// the mirror is given up.
type Pace struct {
	BytesPerS int64
	Window    time.Duration
}

// DefaultPace gives up what would take an hour for 60 MB: another mirror may be better, and the job's
// walltime runs.
var DefaultPace = Pace{BytesPerS: 16 << 10, Window: 30 * time.Second}

// NewFetcher returns a Fetcher that asks each mirror at most three times in quick succession, and
// wants the DefaultPace.
func NewFetcher(lg *slog.Logger) *Fetcher {
	c := retryablehttp.NewClient()
	c.Logger = lg
	// A mirror has few chances, in quick succession: there may be a better one, and the job's walltime runs.
	c.RetryMax = 2
	c.RetryWaitMin = 100 * time.Millisecond
	c.RetryWaitMax = time.Second
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler // the last answer says more than "giving up"
	f := &Fetcher{http: c, Pace: DefaultPace}
	f.Open = map[string]Open{"file": openFile, "http": f.openHTTP, "https": f.openHTTP}
	return f
}

// Fetch writes the archive of src to the file dst, from the first mirror that gives exactly its bytes.
// tries[i] is what came of src.URLs[i]; mirrors behind the first good one are not asked. If none works
// dst is not there, and the error gives every reason; it is Unavailable if one of them may pass, else
// Failed.
func (f *Fetcher) Fetch(ctx context.Context, src Source, dst string) (tries []Try, err error) {
	// One file for all mirrors, beside dst: it takes the name at once when its content is right.
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

// nothingWorked is the error of a Fetch that no mirror satisfied. One mirror that may do better later makes it worth
// trying again.
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
// on the disk, or ctx is over. Then other mirrors could not help either.
func (f *Fetcher) try(ctx context.Context, rawURL string, p packages.Package, out *os.File) (Try, error) {
	start, try := time.Now(), Try{URL: "(not a URL)"}
	u, err := url.Parse(rawURL)
	if err != nil {
		try.Reason = "not a URL" // its text may hold a password
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

// refusef is a mirror's answer that will be the same tomorrow.
func refusef(format string, args ...any) error { return corral.Errorf(corral.Failed, format, args...) }

// A sink takes the bytes of one archive and sums them up as they come, so that the file is not read once more.
type sink struct {
	file *os.File
	sum  hash.Hash
	n    int64
	err  error // of the file: not the mirror's fault
}

// restart forgets what came so far.
func (s *sink) restart() error {
	s.n, s.sum = 0, sha256.New()
	if s.err = s.file.Truncate(0); s.err == nil {
		_, s.err = s.file.Seek(0, io.SeekStart)
	}
	return s.err
}

// Write notes an error of the file apart, because it is no mirror's fault.
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
