// Package sftp reads files from sftp servers for package staging, through the transport of ssh sites, with the keys,
// agent, ~/.ssh/config and known hosts of corrald's user.
//
// Opener returns the opener of the scheme sftp: a program sets it in Fetcher.Open. The package writes nothing to
// servers.
//
// It is a separate package because only corrald uses ssh: the pilot imports staging and should not contain it. Its one
// invariant: a connection lasts for one file and is closed with its stream.
package sftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"github.com/pkg/sftp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/staging"
)

// ahead is the number of bytes requested at once: the library splits it into many requests, which cost one round trip.
const ahead = 1 << 20

// Opener returns a staging.Open for URLs like sftp://ann@host:22/srv/corral, whose path is absolute, or relative to the
// login directory if it begins with /~/ . It can begin at any offset of a file. A file's size and time identify its
// version.
func Opener(options ssh.Options) staging.Open {
	return func(ctx context.Context, u *url.URL, at staging.Position) (staging.Stream, error) {
		conn, err := ssh.New((&url.URL{Scheme: "ssh", User: u.User, Host: u.Host}).String(), options)
		if err != nil {
			return staging.Stream{}, refused(err)
		}
		s, err := open(ctx, conn, u, at)
		if err != nil {
			return staging.Stream{}, errors.Join(refused(err), conn.Close())
		}
		return s, nil
	}
}

// open opens the file on a connection, which the caller closes after an error. If the file's version differs from the
// position's, it starts at the beginning.
func open(ctx context.Context, conn *ssh.Conn, u *url.URL, at staging.Position) (staging.Stream, error) {
	channel, err := conn.Subsystem(ctx, "sftp")
	if err != nil {
		return staging.Stream{}, err
	}
	client, err := sftp.NewClientPipe(channel, channel)
	if err != nil {
		return staging.Stream{}, fmt.Errorf("the server does not speak sftp: %w", err)
	}
	f, err := client.Open(strings.TrimPrefix(u.Path, "/~/"))
	if err != nil {
		return staging.Stream{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return staging.Stream{}, err
	}
	start := staging.Position{Validator: fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC())}
	if at.Offset > 0 && at.Offset <= info.Size() && (at.Validator == "" || at.Validator == start.Validator) {
		if start.Offset, err = f.Seek(at.Offset, io.SeekStart); err != nil {
			return staging.Stream{}, err
		}
	}
	body := &stream{bufio.NewReaderSize(f, ahead), f, client, conn}
	return staging.Stream{ReadCloser: body, Start: start, Resumable: true}, nil
}

// refused gives a permanent refusal the kind defined by staging, so that the mirror is not tried again soon.
func refused(err error) error {
	var login *gridsite.LoginError
	var key *gridsite.HostKeyError
	switch {
	case errors.As(err, &login), errors.As(err, &key), corral.KindOf(err) == corral.Invalid,
		errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return corral.Errorf(corral.Failed, "%w", err)
	}
	return err
}

// A stream is one file on one connection.
type stream struct {
	ahead  *bufio.Reader
	file   *sftp.File
	client *sftp.Client
	conn   *ssh.Conn
}

func (s *stream) Read(b []byte) (int, error) { return s.ahead.Read(b) }

// Close ends the connection, even during the transfer. The server's reply does not matter, because the bytes were
// counted.
func (s *stream) Close() error {
	_ = s.conn.Close() // first, so that the others do not wait for an answer
	_ = s.client.Close()
	_ = s.file.Close()
	return nil
}
