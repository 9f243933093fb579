// Package ftp reads files from FTP servers for package staging.
//
// Open is the opener of the scheme ftp: a program sets it in Fetcher.Open. The package writes nothing to servers, and
// has no encryption: the digest and the signature of a package protect it.
//
// It is a separate package because only corrald uses FTP: the pilot imports staging and should not contain it. Its one
// invariant: a connection lasts for one file and is closed with its stream.
package ftp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/jlaffaye/ftp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/staging"
)

// dialTimeout limits the wait for a server, shutTimeout that for its final reply after a transfer.
const (
	dialTimeout = 10 * time.Second
	shutTimeout = 5 * time.Second
)

// Open is a staging.Open for ftp URLs: anonymous, or as the user in the URL. It can begin at any offset. A stream
// closed before ctx ends sends QUIT to the server. FTP has no file versions, so only the digest shows whether two parts
// belong together.
func Open(ctx context.Context, u *url.URL, at staging.Position) (staging.Stream, error) {
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "21")
	}
	conn, err := ftp.Dial(host, ftp.DialWithDialFunc(dialer(ctx)), ftp.DialWithShutTimeout(shutTimeout))
	if err != nil {
		return staging.Stream{}, corral.Errorf(corral.Unavailable, "%w", err)
	}
	body, err := retrieve(conn, u, at.Offset)
	if err != nil {
		return staging.Stream{}, errors.Join(answered(err), conn.Quit())
	}
	start := staging.Position{Offset: at.Offset}
	return staging.Stream{ReadCloser: &stream{body, conn}, Start: start, Resumable: true}, nil
}

// dialer creates connections, for commands and for data, that are closed when ctx ends, because the library cannot
// otherwise abandon a silent server.
func dialer(ctx context.Context) func(network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return func(network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}

// retrieve logs in and begins to read the file at an offset.
func retrieve(conn *ftp.ServerConn, u *url.URL, offset int64) (*ftp.Response, error) {
	user, password := "anonymous", "anonymous"
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	if err := conn.Login(user, password); err != nil {
		return nil, refusedLogin(err)
	}
	return conn.RetrFrom(strings.TrimPrefix(u.Path, "/"), uint64(offset)) // a URL's path begins at the login directory
}

// refusedLogin returns a permanent refusal unless the connection broke: the library reports some refusals without their
// code.
func refusedLogin(err error) error {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.EOF) {
		return err
	}
	return corral.Errorf(corral.Failed, "login refused: %w", err)
}

// answered gives a permanent refusal the kind that Open documents.
func answered(err error) error {
	if reply, ok := errors.AsType[*textproto.Error](err); ok && reply.Code >= 500 {
		return corral.Errorf(corral.Failed, "server replied %d %s", reply.Code, reply.Msg)
	}
	return err
}

// A stream is one file on one connection.
type stream struct {
	body io.ReadCloser
	conn *ftp.ServerConn
}

func (s *stream) Read(b []byte) (int, error) { return s.body.Read(b) }

// Close ends the transfer, complete or not, and the connection. The server's reply does not matter, because the bytes
// were counted.
func (s *stream) Close() error {
	_ = s.body.Close()
	_ = s.conn.Quit()
	return nil
}
