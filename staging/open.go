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

// openFile always begins at the beginning: a file does not break off.
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

// fileError gives an error about a file that will be the same tomorrow the kind that says so: it is not there, is
// closed to us, or is no regular file.
func fileError(err error) error {
	var notFile *input.NotRegularError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.As(err, &notFile) {
		return refusef("%v", err)
	}
	return err
}

// openHTTP reads by GET, with a Range for a transfer that broke off. If-Range has a server that has another version
// by now send the whole file, so that two versions are not put together.
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
	req.Header.Set("Accept-Encoding", "identity") // the digest is of the bytes as they are stored
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

// validator returns what If-Range takes: a strong entity tag, or else the date. Without one it goes unnoticed, until
// the digest is compared, that a server has another file now.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return h.Get("Last-Modified")
}

// statusError tells answers that may be better tomorrow from those that will not.
func statusError(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return fmt.Errorf("server said %s", resp.Status)
	}
	return refusef("server said %s", resp.Status)
}

// bare takes the URL, which the Try shows already, out of an error's text.
func bare(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// readAll reads a small thing at u, at most most bytes long.
func (f *Fetcher) readAll(ctx context.Context, u *url.URL, most int64) ([]byte, error) {
	open, ok := f.Open[u.Scheme]
	if !ok {
		return nil, refusef("scheme %q is none that this program speaks", u.Scheme)
	}
	ctx, cancel := context.WithTimeout(ctx, f.Pace.Window)
	defer cancel()
	s, err := open(ctx, u, Position{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b, err := input.ReadAll(s, most)
	var tooLong *input.TooLongError
	if errors.As(err, &tooLong) {
		err = refusef("%s is %w", shown(u), tooLong)
	}
	return b, err
}
