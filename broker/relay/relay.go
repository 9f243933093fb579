// Package relay carries TCP connections from worker nodes that have no route to corrald, or to its HTCondor pools, over
// the input and output of one command on the site's head node, where corrald has started it through ssh. It needs no
// forwarding of the sshd, no port that is open to the outside, and no connection from corrald to a node.
//
// There are three sides. A worker node dials the head node and says what it wants to be connected with (Dial, Forward).
// The head node (Run) opens a stream of the command's stdio for each such connection and copies bytes; it knows and
// decides nothing. corrald (Open, Session.Serve) reads the request at the beginning of each stream, has a Gate decide
// about it, and answers before it copies, so that a worker learns in words why it was not connected.
//
// A request names one of two targets and never an address, so that a relay leads nowhere else. It proves that its maker
// has the token of an attempt, and the token itself does not travel: the way from a node to its head node is not
// encrypted.
//
// # The protocol
//
// The head node first writes one line of JSON, its version and addresses. After that the command's stdio carries
// multiplexed streams (yamux), one for each connection. A stream begins with the worker's request, one line of text,
// and corrald's answer, one line too: "ok", or "no", the kind of the error and its words. From then on it is the
// connection's bytes in both directions, and each direction ends by itself, as TCP's do.
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

// A Target is what a worker may be connected with.
type Target string

const (
	Workers Target = "workers" // corrald's worker port
	Pool    Target = "pool"    // the HTCondor pool of the attempt's cluster
)

// A Request asks for a connection.
type Request struct {
	Target Target
	Tag    string // of the attempt
	Proof  string // that the attempt's token is known; see Proof
}

// NewRequest returns the request of somebody who has the attempt's token.
func NewRequest(target Target, tag, token string) Request {
	digest := sha256.Sum256([]byte(token))
	return Request{Target: target, Tag: tag, Proof: Proof(hex.EncodeToString(digest[:]), target, tag)}
}

// Proof is what the holder of a token, here by its SHA-256 in hex, shows instead of the token: an HMAC of the target
// and the attempt's tag. It is good for that target and that attempt alone. Whoever overhears it on the site's
// network may knock at the same door, where the token itself is asked for.
func Proof(tokenDigest string, target Target, tag string) string {
	m := hmac.New(sha256.New, []byte(tokenDigest))
	fmt.Fprintf(m, "corral relay %s %s", target, tag)
	return hex.EncodeToString(m.Sum(nil))
}

// Proves reports whether r was made with the token of this digest.
func (r Request) Proves(tokenDigest string) bool {
	return hmac.Equal([]byte(r.Proof), []byte(Proof(tokenDigest, r.Target, r.Tag)))
}

// Limits of the protocol. They are the same at all three sides, which may be of different versions for as long as a
// pilot waits in a queue.
const (
	maxLine    = 1024             // of a request or an answer, in bytes
	maxStreams = 4096             // at one relay
	openTime   = 15 * time.Second // for a request, and what it asks for
	goneTime   = 5 * time.Second  // after which an end that sends no more, and reads nothing, is taken for gone
)

// requestForm is a line of a request: version, target, tag, proof. Anything else is refused before it is looked at.
// Pilots are started by the thousand, and few of them ever see a request: it is compiled for the first.
var requestForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^corral-relay/1 (workers|pool) ([A-Za-z0-9._-]{1,128}) ([0-9a-f]{64})$`)
})

// encode returns r's line.
func (r Request) encode() string {
	return fmt.Sprintf("corral-relay/1 %s %s %s\n", r.Target, r.Tag, r.Proof)
}

// readRequest reads the line that a stream begins with. The error is Invalid for anything that is not a request.
func readRequest(r io.Reader) (Request, error) {
	line, err := readLine(r)
	if err != nil {
		return Request{}, err
	}
	m := requestForm().FindStringSubmatch(line)
	if m == nil {
		return Request{}, corral.Errorf(corral.Invalid, "this is no request to a relay")
	}
	return Request{Target: Target(m[1]), Tag: m[2], Proof: m[3]}, nil
}

// admitted is the answer to a request that is granted.
const admitted = "ok"

// answer returns the line that tells the worker whether its request is granted, and if not, why.
func answer(err error) string {
	if err == nil {
		return admitted + "\n"
	}
	// One line, whatever the error has in it: the line's end is where the connection begins.
	why := strings.Join(strings.Fields(err.Error()), " ")
	return fmt.Sprintf("no %s %s\n", corral.KindOf(err), why[:min(len(why), maxLine/2)])
}

// readAnswer returns the error that an answer tells.
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
		return corral.Errorf(corral.Failed, "this is no relay")
	}
	// A kind that this pilot does not know, of a newer corrald, is taken for one that may pass.
	switch k := corral.Kind(kind); k {
	case corral.Unauthenticated, corral.Forbidden, corral.Invalid, corral.Unsatisfiable:
		return corral.Errorf(k, "%s", why)
	}
	return corral.Errorf(corral.Unavailable, "%s", why)
}

// readLine reads up to the next newline and not a byte more: what follows belongs to the connection.
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

// multiplexing is how streams share the command's stdio. A link that is slow, or full, must not be taken for lost:
// pings wait behind the bytes that are under way, so there is a minute for them.
func multiplexing() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = maxStreams
	c.KeepAliveInterval = 15 * time.Second
	c.ConnectionWriteTimeout = time.Minute
	c.MaxStreamWindowSize = 1 << 20
	c.StreamCloseTimeout = 24 * time.Hour // of a stream that one end may still write
	c.LogOutput = io.Discard              // how it ended is what its streams say
	return c
}

// join copies between a and b, each way until its end, and closes both. One way may end long before the other: a
// program that has sent its request and waits for the answer closes its half.
func join(a, b net.Conn) {
	var ways sync.WaitGroup
	way := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if err == nil {
			err = closeWrite(to)
		}
		if err != nil { // one side is gone, so the other is of no more use
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

// closeWrite tells the other end that nothing more comes.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close() // unreachable: TCP and tubes can
}

// A tube is a stream that notices when its other end is gone. A stream can only say that nothing more comes, which is
// also what an end says that goes on reading. So an end that has said it gets a deadline for each write: if it reads
// nothing for goneTime, it is gone.
type tube struct {
	*yamux.Stream
	silent atomic.Bool // nothing more comes
}

// Read notes when the other end sends no more. What is being written at that moment gets a deadline too.
func (t *tube) Read(p []byte) (int, error) {
	n, err := t.Stream.Read(p)
	if err != nil && !t.silent.Swap(true) {
		_ = t.SetWriteDeadline(time.Now().Add(goneTime)) // of what is being written, too
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

// CloseWrite is what closing a stream does: the other end may still write.
func (t *tube) CloseWrite() error { return t.Stream.Close() }
