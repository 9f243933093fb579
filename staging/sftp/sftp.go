// Package sftp reads files from sftp servers for package staging, through the transport of ssh sites: with the keys,
// the agent, ~/.ssh/config and the known hosts of corrald's user.
//
// It is a package of its own because only corrald speaks ssh: the pilot, which imports staging, does not carry it.
// Its one invariant: a connection lasts for one file and is closed with its stream.
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

// ahead is how much is asked for at once, in bytes: the library makes many requests of it, which cost one round trip.
const ahead = 1 << 20

// Opener returns a staging.Open for URLs like sftp://ann@host:22/srv/corral, whose path is absolute, or below the login
// directory if it begins with /~/ . It can begin anywhere in a file; what a file's version is, its size and time say.
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

// open opens the file on a connection, which the caller closes after an error. If the file has another version by now
// than the position says, it begins at the beginning.
func open(ctx context.Context, conn *ssh.Conn, u *url.URL, at staging.Position) (staging.Stream, error) {
	channel, err := conn.Subsystem(ctx, "sftp")
	if err != nil {
		return staging.Stream{}, err
	}
	client, err := sftp.NewClientPipe(channel, channel)
	if err != nil {
		return staging.Stream{}, fmt.Errorf("the server speaks no sftp: %w", err)
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

// refused gives a definite no the kind that staging asks for, so that the mirror is not tried again soon.
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

// Close ends the connection, wherever the transfer is. What the server says to that is of no interest: the bytes were
// counted.
func (s *stream) Close() error {
	_ = s.conn.Close() // first: then nothing of the others waits for an answer
	_ = s.client.Close()
	_ = s.file.Close()
	return nil
}
