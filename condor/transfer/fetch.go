package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/kit/retry"
)

// maxRequests limits a starter's request, in bytes.
const maxRequests = 64 << 20

// run executes the requests of a starter in the file in, and writes the results to the file out. fetched is false if a
// file is missing. The error concerns the two files, or the end of ctx.
func (p Plugin) run(ctx context.Context, in, out string) (fetched bool, err error) {
	requests, err := readRequests(in)
	if err != nil {
		return false, err
	}
	var said strings.Builder
	fetched = true
	for _, r := range requests {
		result := result{request: r, Start: time.Now().Unix()}
		result.Bytes, result.Err = p.fetch(ctx, r)
		result.End = time.Now().Unix()
		fetched = fetched && result.Err == nil
		said.WriteString(result.format())
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	return fetched, os.WriteFile(out, []byte(said.String()), 0o600)
}

// refuse answers requests to send a job's files to URLs. It sends nothing.
func (p Plugin) refuse(in, out string) error {
	requests, err := readRequests(in)
	if err != nil {
		return err
	}
	var said strings.Builder
	for _, r := range requests {
		now := time.Now().Unix()
		said.WriteString(result{request: r, Start: now, End: now, Err: errors.New("this worker fetches from URLs and " +
			"sends nothing to them: have the job's files come back, and send them from there")}.format())
	}
	return os.WriteFile(out, []byte(said.String()), 0o600)
}

// readRequests reads a starter's file.
func readRequests(name string) ([]request, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRequests+1))
	if err == nil && len(b) > maxRequests {
		err = fmt.Errorf("%s: more than %d bytes of requests", name, maxRequests)
	}
	if err != nil {
		return nil, err
	}
	return parseRequests(string(b))
}

// A Plugin fetches files.
type Plugin struct {
	Pauses []time.Duration // before each retry of a transient failure
	Stall  time.Duration   // a connection without data for this time is given up
}

// Default retries for two minutes, in which a restarted server is usually back.
var Default = Plugin{
	Pauses: []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute},
	Stall:  time.Minute,
}

// A passing error is transient.
type passing struct{ error }

func (e passing) Unwrap() error { return e.error }

// fetch fetches one file, and returns its size. An incomplete file is removed.
func (p Plugin) fetch(ctx context.Context, r request) (bytes int64, err error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return 0, errors.New("an input of the job is not a valid URL") // the URL might contain a password
	}
	if !slices.Contains(strings.Split(served, ","), strings.ToLower(u.Scheme)) {
		return 0, fmt.Errorf("%s: this worker fetches by http and https, and not by %s: name a file instead, or have "+
			"the job itself fetch it", shown(u), u.Scheme)
	}
	for try := 0; ; try++ {
		bytes, err = p.once(ctx, u, r.File)
		var again passing
		if err == nil || ctx.Err() != nil || !errors.As(err, &again) {
			break
		}
		if try == len(p.Pauses) {
			err = fmt.Errorf("%w, %d times", err, try+1)
			break
		}
		if !retry.For(ctx, p.Pauses[try]) {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", shown(u), err)
	}
	return bytes, nil
}

// shown returns a URL for a hold reason: without password and query, which may contain a signature.
func shown(u *url.URL) string {
	bare := *u
	bare.RawQuery, bare.ForceQuery, bare.Fragment, bare.RawFragment = "", false, "", ""
	return bare.Redacted()
}

// once tries once. It writes the file under another name first.
func (p Plugin) once(ctx context.Context, u *url.URL, file string) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(p.Stall, cancel)
	defer stalled.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, p.reason(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, refused(answer)
	}
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, watched{answer.Body, func() { stalled.Reset(p.Stall) }})
	var disk *os.PathError
	if err != nil && !errors.As(err, &disk) {
		err = p.reason(ctx, err)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return n, err
}

// reason returns why an exchange failed, without the URL, which the caller adds.
func (p Plugin) reason(ctx context.Context, err error) error {
	if whole, ok := errors.AsType[*url.Error](err); ok {
		err = whole.Err
	}
	var unknown *net.DNSError
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return passing{fmt.Errorf("no data arrived for %s", p.Stall)}
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return passing{errors.New("the connection ended before the file did")}
	}
	return passing{err}
}

// refused returns the error for a server's answer other than the file.
func refused(answer *http.Response) error {
	err := fmt.Errorf("the server says %s", answer.Status)
	if s := answer.StatusCode; s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout {
		return passing{err}
	}
	return err
}

// A watched reader reports every read.
type watched struct {
	io.Reader
	came func()
}

// Read restarts the timer whenever data arrives: a slow server is not a dead one.
func (w watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.came()
	}
	return n, err
}
