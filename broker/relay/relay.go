// Package relay carries TCP connections from worker nodes without a route to corrald, or to its HTCondor pools, over
// the input and output of one command on the site's head node, which corrald starts through ssh. It needs no forwarding
// by sshd, no open port to the outside, and no connection from corrald to a node.
//
// There are three sides. A worker node connects to the head node and requests a target (Dial, Forward). The head node
// (Run) opens a stream of the command's stdio for each such connection and copies bytes, without interpreting them.
// corrald (Open, Session.Serve) reads the request at the beginning of each stream, lets a Gate decide about it, and
// answers before it copies, so that a worker receives the reason for a refusal.
//
// A request names one of two targets and never an address, so that a relay leads nowhere else. It proves knowledge of
// the token of an attempt without containing the token, because connections from a node to its head node are not
// encrypted.
//
// # The protocol
//
// The head node first writes one line of JSON with its version and addresses. After that the command's stdio carries
// multiplexed streams (yamux), one per connection. A stream begins with the worker's request, one line of text, and
// corrald's answer, also one line: "ok", or "no" with the kind and text of the error. The rest is the connection's
// bytes in both directions, each of which ends separately, as in TCP.
package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/corral-pilot/corral"
)

// A Target is a possible destination of a worker's connection.
type Target string

const (
	Workers Target = "workers" // corrald's worker port
	Pool    Target = "pool"    // the HTCondor pool of the attempt's cluster
)

// A Request asks for a connection.
type Request struct {
	Target Target
	Tag    string // of the attempt
	Proof  string // of knowledge of the attempt's token; see NewRequest
}

// NewRequest returns a request made with the attempt's token.
func NewRequest(target Target, tag, token string) Request {
	digest := sha256.Sum256([]byte(token))
	return Request{Target: target, Tag: tag, Proof: proofFor(hex.EncodeToString(digest[:]), target, tag)}
}

// proofFor returns the proof that replaces a token, given the token's SHA-256 in hex: an HMAC of the target and the
// attempt's tag. It is valid only for that target and attempt. An eavesdropper on the site's network can use it to
// connect to the same target, which then requires the token itself.
func proofFor(tokenDigest string, target Target, tag string) string {
	m := hmac.New(sha256.New, []byte(tokenDigest))
	fmt.Fprintf(m, "corral relay %s %s", target, tag)
	return hex.EncodeToString(m.Sum(nil))
}

// Proves reports whether r was made with the token of this digest.
func (r Request) Proves(tokenDigest string) bool {
	return hmac.Equal([]byte(r.Proof), []byte(proofFor(tokenDigest, r.Target, r.Tag)))
}

// Limits of the protocol. They must be the same on all three sides, whose versions may differ while a pilot waits in a
// queue.
const (
	maxLine    = 1024             // of a request or an answer, in bytes
	maxStreams = 4096             // at one relay
	openTime   = 15 * time.Second // for a request, and for the requested connection
	goneTime   = 5 * time.Second  // after which a peer that has stopped sending, and reads nothing, counts as gone
)

// requestForm matches the line of a request: version, target, tag, proof. Any other line is refused unparsed. The
// pattern is compiled on first use, because pilots start by the thousand and few of them handle a request.
var requestForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^corral-relay/1 (workers|pool) ([A-Za-z0-9._-]{1,128}) ([0-9a-f]{64})$`)
})

// encode returns r's line.
func (r Request) encode() string {
	return fmt.Sprintf("corral-relay/1 %s %s %s\n", r.Target, r.Tag, r.Proof)
}

// readRequest reads the first line of a stream. The error is Invalid if the line is not a request.
func readRequest(r io.Reader) (Request, error) {
	line, err := readLine(r)
	if err != nil {
		return Request{}, err
	}
	m := requestForm().FindStringSubmatch(line)
	if m == nil {
		return Request{}, corral.Errorf(corral.Invalid, "this is not a request to a relay")
	}
	return Request{Target: Target(m[1]), Tag: m[2], Proof: m[3]}, nil
}

// admitted is the answer to a granted request.
const admitted = "ok"

// answer returns the line that tells the worker whether its request is granted and, if not, why.
func answer(err error) string {
	if err == nil {
		return admitted + "\n"
	}
	// The error must become one line, because the connection's bytes follow the line.
	why := strings.Join(strings.Fields(err.Error()), " ")
	return fmt.Sprintf("no %s %s\n", corral.KindOf(err), why[:min(len(why), maxLine/2)])
}

// readAnswer returns the error of an answer.
func readAnswer(r io.Reader) error {
	line, err := readLine(r)
	if errors.Is(err, io.EOF) {
		return corral.Errorf(corral.Unavailable, "the relay has lost its connection with corrald")
	}
	if err != nil {
		return err
	}
	if line == admitted {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	kind, why, _ := strings.Cut(rest, " ")
	if word != "no" || why == "" {
		return corral.Errorf(corral.Failed, "this is not a relay")
	}
	// An unknown kind, from a newer corrald, is treated as temporary.
	switch k := corral.Kind(kind); k {
	case corral.Unauthenticated, corral.Forbidden, corral.Invalid, corral.Unsatisfiable:
		return corral.Errorf(k, "%s", why)
	}
	return corral.Errorf(corral.Unavailable, "%s", why)
}

// readLine reads exactly up to the next newline, because the following bytes belong to the connection.
func readLine(r io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxLine {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", corral.Errorf(corral.Invalid, "a line of more than %d bytes", maxLine)
}

// multiplexing configures how streams share the command's stdio. A slow or saturated link must not count as lost: pings
// wait behind the bytes in transit, so they have a minute.
func multiplexing() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = maxStreams
	c.KeepAliveInterval = 15 * time.Second
	c.ConnectionWriteTimeout = time.Minute
	c.MaxStreamWindowSize = 1 << 20
	c.StreamCloseTimeout = 24 * time.Hour // of a stream that one end may still write
	c.LogOutput = io.Discard              // errors are reported by the streams
	return c
}

// join copies between a and b in both directions until each ends, and closes both. One direction may end long before
// the other: a program that has sent its request and waits for the answer closes its half.
func join(a, b net.Conn) {
	var ways sync.WaitGroup
	way := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if err == nil {
			err = closeWrite(to)
		}
		if err != nil { // one side is gone, so the other is useless
			a.Close()
			b.Close()
		}
	}
	ways.Go(func() { way(a, b) })
	ways.Go(func() { way(b, a) })
	ways.Wait()
	a.Close()
	b.Close()
}

// closeWrite signals the end of the data to the other end.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close() // unreachable: TCP connections and tubes implement it
}

// A tube is a stream that notices when its other end is gone. A stream can only signal that no more data comes, which
// an end that still reads signals too. After that signal, each write to the end gets a deadline: if the end reads
// nothing for goneTime, it is gone.
type tube struct {
	*yamux.Stream
	silent atomic.Bool // no more data comes
}

// Read detects the end of the other side's data. A write in progress then also gets a deadline.
func (t *tube) Read(p []byte) (int, error) {
	n, err := t.Stream.Read(p)
	if err != nil && !t.silent.Swap(true) {
		_ = t.SetWriteDeadline(time.Now().Add(goneTime)) // also for a write in progress
	}
	return n, err
}

// Write gives an end that sends no more, and may be gone, a limited time to read.
func (t *tube) Write(p []byte) (int, error) {
	if t.silent.Load() {
		_ = t.SetWriteDeadline(time.Now().Add(goneTime))
	}
	return t.Stream.Write(p)
}

// CloseWrite closes the stream, which in yamux still allows the other end to write.
func (t *tube) CloseWrite() error { return t.Stream.Close() }
