package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// openFile always starts at the beginning, because reading a file is not interrupted.
func openFile(_ context.Context, u *url.URL, _ Position) (Stream, error) {
	if u.Host != "" && u.Host != "localhost" {
		return Stream{}, refusef("a file URL cannot name the host %q", u.Host)
	}
	f, err := input.Open(u.Path)
	if err != nil {
		return Stream{}, fileError(err)
	}
	return Stream{ReadCloser: f}, nil
}

// fileError marks errors about a file as permanent if it is missing, unreadable, or not a regular file.
func fileError(err error) error {
	var notFile *input.NotRegularError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.As(err, &notFile) {
		return refusef("%v", err)
	}
	return err
}

// openHTTP reads with GET, and with Range to resume a transfer. Because of If-Range, a server with another version
// sends the whole file, so that two versions are not mixed.
func (f *Fetcher) openHTTP(ctx context.Context, u *url.URL, at Position) (Stream, error) {
	resp, err := f.get(ctx, u, at)
	if err != nil {
		return Stream{}, err
	}
	s := Stream{ReadCloser: resp.Body, Resumable: resp.Header.Get("Accept-Ranges") == "bytes"}
	s.Start.Validator = validator(resp.Header)
	switch {
	case resp.StatusCode == http.StatusOK:
		return s, nil
	case resp.StatusCode == http.StatusPartialContent && at.Offset > 0:
		s.Resumable = true
		_, err = fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &s.Start.Offset)
		if err == nil {
			return s, nil
		}
		err = refusef("server sent the range %q", resp.Header.Get("Content-Range"))
	default:
		err = statusError(resp)
	}
	return Stream{}, errors.Join(err, resp.Body.Close())
}

// get sends one request; the caller closes the answer's body.
func (f *Fetcher) get(ctx context.Context, u *url.URL, at Position) (*http.Response, error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, refusef("not a URL for http")
	}
	req.Header.Set("Accept-Encoding", "identity") // the digest is that of the stored bytes
	if at.Offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", at.Offset))
		if at.Validator != "" {
			req.Header.Set("If-Range", at.Validator)
		}
	}
	resp, err := f.http.Do(req)
	if err != nil {
		return nil, corral.Errorf(corral.Unavailable, "%w", bare(err))
	}
	return resp, nil
}

// validator returns a value for If-Range: a strong entity tag, or else the date. Without one, a change of the server's
// file is detected only when the digest is compared.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return h.Get("Last-Modified")
}

// statusError distinguishes transient answers from permanent ones.
func statusError(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return fmt.Errorf("server replied %s", resp.Status)
	}
	return refusef("server replied %s", resp.Status)
}

// bare removes the URL, which the Try shows already, from an error's text.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// readAll reads at most most bytes at u.
func (f *Fetcher) readAll(ctx context.Context, u *url.URL, most int64) ([]byte, error) {
	open, ok := f.Open[u.Scheme]
	if !ok {
		return nil, refusef("this program does not support the scheme %q", u.Scheme)
	}
	ctx, cancel := context.WithTimeout(ctx, f.Pace.Window)
	defer cancel()
	s, err := open(ctx, u, Position{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b, err := input.ReadAll(s, most)
	if tooLong, ok := errors.AsType[*input.TooLongError](err); ok {
		err = refusef("%s is %w", shown(u), tooLong)
	}
	return b, err
}
