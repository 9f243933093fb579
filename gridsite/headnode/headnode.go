// Package headnode stages the files that jobs need at a site whose head node has a shell and shares a file system with
// the worker nodes. It needs only a Conn; steps that must be done together are small POSIX scripts (lib.sh).
//
// The mark .corral-site at the top of the root names its owner. A root is claimed only if it contains no files of
// others, because the removal of the site removes the root with all its content.
package headnode

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/kit/fault"
)

// Node represents the head node of one site, together with the root at that site.
type Node struct {
	conn gridsite.Conn
	root string
}

// New returns a Node that stages files below root, an absolute path at the site. Closing the Node closes conn.
func New(conn gridsite.Conn, root string) *Node { return &Node{conn, path.Clean(root)} }

//go:embed *.sh
var scripts embed.FS

// script returns a script of this package.
func script(name string) string {
	text, err := scripts.ReadFile(name + ".sh")
	if err != nil {
		panic(err) // unreachable: the names are constants of this package
	}
	return string(text)
}

// run runs a script with the root as its first argument.
func (n *Node) run(ctx context.Context, at fault.Point, name string, args ...string) error {
	return n.try(ctx, at, append([]string{"sh", "-c", script("lib") + script(name), name, n.root}, args...)...)
}

// try runs a command. If the command fails, the error is a *Refused with the last line of its output.
func (n *Node) try(ctx context.Context, at fault.Point, argv ...string) error {
	res, err := gridsite.Run(ctx, n.conn, at, gridsite.Command{Argv: argv})
	if err == nil && res.Exit != 0 {
		return &gridsite.Refused{Text: gridsite.LastLine(append(res.Stdout, res.Stderr...))}
	}
	return err
}

// flag encodes a boolean argument of a script.
func flag(yes bool) string {
	if yes {
		return "yes"
	}
	return ""
}

// Check creates and removes a directory in the nearest existing ancestor of the root.
func (n *Node) Check(ctx context.Context, c gridsite.Claim) error {
	return n.run(ctx, fault.SiteCheck, "check", c.Owner, flag(c.Before))
}

// Boot requires space for the mark and the program. It is called before any job runs, so it detects a site that is full
// or that belongs to someone else; a root that it has just claimed is then released.
func (n *Node) Boot(ctx context.Context, program string, c gridsite.Claim, open func() (io.ReadCloser, error)) error {
	if there, err := n.Has(ctx, program, true); there || err != nil {
		return err
	}
	dir := path.Join(n.root, path.Dir(program))
	err := n.run(ctx, fault.SiteBoot, "boot", dir, c.Owner)
	if err != nil {
		err = fmt.Errorf("making %s: %w", dir, err)
	} else if err = n.put(ctx, program, 0o700, open); isFull(err) {
		words := strings.Split(gridsite.LastLine([]byte(err.Error())), ": ")
		err = fmt.Errorf("%s has no room for the pilot binary: %w", n.root,
			&gridsite.Refused{Text: words[len(words)-1]})
	}
	if c.Before || !errors.As(err, new(*gridsite.Refused)) {
		return err
	}
	if left := n.run(ctx, fault.SiteAbandon, "abandon"); left != nil {
		err = fmt.Errorf("%w (and the cleanup failed: %w)", err, left)
	}
	return err
}

// isFull reports whether the text of an error shows that a site's disk or quota is full.
func isFull(err error) bool {
	if err == nil {
		return false
	}
	said := strings.ToLower(err.Error())
	return strings.Contains(said, "no space left") || strings.Contains(said, "quota exceeded")
}

// put writes a file below the root.
func (n *Node) put(ctx context.Context, name string, mode fs.FileMode, open func() (io.ReadCloser, error)) error {
	f, err := open()
	if err != nil {
		return fmt.Errorf("opening the content of %s: %w", name, err)
	}
	defer f.Close()
	return gridsite.Put(ctx, n.conn, fault.SitePut,
		gridsite.File{Path: path.Join(n.root, name), Mode: mode, Content: f})
}

// Push puts the archive into the folder where the package will be.
func (n *Node) Push(ctx context.Context, name, unless string, open func() (io.ReadCloser, error)) (string, error) {
	file := path.Join(n.root, name)
	at := (&url.URL{Scheme: "file", Path: file}).String()
	if there, err := n.Has(ctx, unless, false); there || err != nil {
		return at, err
	}
	if err := n.try(ctx, fault.SiteMake, "mkdir", "-p", "--", path.Dir(file)); err != nil {
		return "", fmt.Errorf("making %s: %w", path.Dir(file), err)
	}
	return at, n.put(ctx, name, 0o600, open)
}

// Replace writes into the job's directory.
func (n *Node) Replace(ctx context.Context, tag, name string, content []byte) error {
	return gridsite.Put(ctx, n.conn, fault.SiteReplace, gridsite.File{
		Path: path.Join(jobdir.Path(n.root, tag), name), Mode: 0o600, Content: bytes.NewReader(content),
	})
}

// Sweep does not touch an unmarked root unless it was ours before.
func (n *Node) Sweep(ctx context.Context, before bool) error {
	return n.run(ctx, fault.SiteSweep, "sweep", flag(before))
}

// Platform needs only a POSIX shell at the site: no binary can be sent before the platform is known.
func (n *Node) Platform(ctx context.Context) (corral.Platform, error) {
	res, err := gridsite.Run(ctx, n.conn, fault.SitePlatform,
		gridsite.Command{Argv: []string{"sh", "-c", script("platform")}})
	if err != nil {
		return corral.Platform{}, fmt.Errorf("asking for the platform: %w", err)
	}
	return parsePlatform(res)
}

// Has tests the head node's own file system.
func (n *Node) Has(ctx context.Context, name string, program bool) (bool, error) {
	kind := "-f"
	if program {
		kind = "-x"
	}
	return n.test(ctx, kind, path.Join(n.root, name))
}

// Sees returns true if the head node is this machine or shares a file system with it.
func (n *Node) Sees(ctx context.Context, file string) (bool, error) { return n.test(ctx, "-r", file) }

// test runs test(1) at the site and returns its result.
func (n *Node) test(ctx context.Context, args ...string) (bool, error) {
	res, err := gridsite.Run(ctx, n.conn, fault.SiteTest, gridsite.Command{Argv: append([]string{"test"}, args...)})
	if err != nil {
		return false, fmt.Errorf("running test at the site: %w", err)
	}
	return res.Exit == 0, nil
}

// Ping runs true at the site.
func (n *Node) Ping(ctx context.Context) error {
	_, err := gridsite.Run(ctx, n.conn, fault.SitePing, gridsite.Command{Argv: []string{"true"}})
	return err
}

// Close closes the Conn.
func (n *Node) Close() error { return n.conn.Close() }

// Start runs a program with live input and output, if the Conn supports that.
func (n *Node) Start(ctx context.Context, program string, args ...string) (gridsite.Stream, error) {
	conn, ok := n.conn.(gridsite.Streamer)
	if !ok {
		return nil, corral.Errorf(corral.Unsatisfiable,
			"the connection does not support programs with live input and output")
	}
	return gridsite.Start(ctx, conn, gridsite.Command{Argv: append([]string{path.Join(n.root, program)}, args...)})
}

// Expand reads the variable in a login shell.
func (n *Node) Expand(ctx context.Context, variable string) (string, error) {
	mark := rand.Text() // earlier output was printed by the profile
	argv := []string{"sh", "-lc", `printf %s "$1"; printenv "$2"`, "sh", mark, variable}
	res, err := gridsite.Run(ctx, n.conn, fault.SiteExpand, gridsite.Command{Argv: argv})
	if err != nil || res.Exit != 0 {
		return "", err
	}
	_, value, _ := strings.Cut(string(res.Stdout), mark)
	return strings.TrimSuffix(value, "\n"), nil
}
