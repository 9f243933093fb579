// Package ftp reads files from FTP servers for package staging.
//
// It is a package of its own because only corrald speaks FTP: the pilot, which imports staging, does
// not carry it. Its one invariant: a connection lasts for one file and is closed with its stream.
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

// dialTimeout bounds the wait for a server, shutTimeout that for its last word after a transfer.
const (
	dialTimeout = 10 * time.Second
	shutTimeout = 5 * time.Second
)

// Open is a staging.Open for ftp URLs: anonymous, or as the user that the URL names. It can begin anywhere. A stream
// that is closed before ctx ends says good-bye to the server. FTP has no word for a file's version, so that only the
// digest tells whether two pieces belong together.
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

// dialer makes connections, for commands and for data, that the end of ctx closes: the library knows no
// other way to leave a server that is silent.
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

// refusedLogin is a definite no unless the connection broke: the library gives some refusals without
// their code.
func refusedLogin(err error) error {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.EOF) {
		return err
	}
	return corral.Errorf(corral.Failed, "login refused: %w", err)
}

// answered gives a server's definite no the kind that Open promises.
func answered(err error) error {
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code >= 500 {
		return corral.Errorf(corral.Failed, "server said %d %s", reply.Code, reply.Msg)
	}
	return err
}

// A stream is one file on one connection.
type stream struct {
	body io.ReadCloser
	conn *ftp.ServerConn
}

func (s *stream) Read(b []byte) (int, error) { return s.body.Read(b) }

// Close ends the transfer, wherever it is, and the connection. What the server says to that is of no
// interest: the bytes were counted.
func (s *stream) Close() error {
	_ = s.body.Close()
	_ = s.conn.Quit()
	return nil
}
