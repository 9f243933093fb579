package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// Errors of dialling in that repeating does not help.
var (
	// ErrRefused says that the dispatcher does not want this worker or pilot.
	ErrRefused = errors.New("refused by the dispatcher")

	// ErrDuplicate says that another pilot has the attempt's lease. It is an ErrRefused too.
	ErrDuplicate = fmt.Errorf("%w: another pilot holds the attempt's lease", ErrRefused)
)

// AdmitTimeout is for handshake, hello and admission together.
const AdmitTimeout = 10 * time.Second

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 2 * time.Second
)

// A Greeting is a connection on which this side was admitted.
type Greeting struct {
	*Conn
	By     string // the address that was dialled
	Terms  *Welcome
	SentAt time.Time // of the hello: a lease counts from here
	GotAt  time.Time // of the welcome
}

// Dial tries the addresses in order until one admits or refuses h. A refusal counts from any of them, because all lead
// to the same port; an address that cannot be reached says nothing.
func Dial(ctx context.Context, addresses []string, digest string, h *Hello) (*Greeting, error) {
	var all []error
	for _, address := range addresses {
		nc, err := h.connect(ctx, address, digest)
		if err == nil {
			var g *Greeting
			if g, err = Greet(ctx, nc, h); err == nil {
				g.By = address
			}
			if err == nil || errors.Is(err, ErrRefused) {
				return g, err
			}
		}
		all = append(all, fmt.Errorf("%s: %w", address, err))
	}
	if len(all) == 0 {
		all = append(all, errors.New("no address is known"))
	}
	return nil, fmt.Errorf("dialling the dispatcher: %w", errors.Join(all...))
}

// connect connects to unix:PATH, tls:HOST:PORT or relay:HOST:PORT, where the certificate must have the digest: a relay
// understands as little of what is said as the net does.
func (h *Hello) connect(ctx context.Context, address, digest string) (net.Conn, error) {
	at, relayed := strings.CutPrefix(address, "relay:")
	if !relayed {
		return dialAddress(ctx, address, digest)
	}
	ctx, cancel := context.WithTimeout(ctx, AdmitTimeout)
	defer cancel()
	nc, err := h.throughRelay(ctx, at)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(nc, pinned(digest))
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return secure, nil
}

// throughRelay connects by a relay, which has corrald check a proof of what h knows. That is the secret of the session,
// as soon as corrald knows one. A pilot cannot tell whether it does, since an answer may be lost; so it proves the
// token next.
func (h *Hello) throughRelay(ctx context.Context, at string) (nc net.Conn, err error) {
	for _, known := range []string{h.Secret, h.Token} {
		if known == "" || known == h.Token && h.Secret != "" && h.Role != RolePilot {
			continue
		}
		nc, err = relay.Dial(ctx, at, relay.NewRequest(relay.Workers, h.Tag, known))
		if corral.KindOf(err) != corral.Unauthenticated {
			return nc, err
		}
	}
	return nc, err
}

// dialAddress connects to unix:PATH or tls:HOST:PORT, where the certificate must have the digest.
func dialAddress(ctx context.Context, address, digest string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, AdmitTimeout)
	defer cancel()
	network, where, _ := strings.Cut(address, ":")
	switch network {
	case "unix":
		return new(net.Dialer).DialContext(ctx, "unix", where)
	case "tls":
		return (&tls.Dialer{Config: pinned(digest)}).DialContext(ctx, "tcp", where)
	}
	return nil, corral.Errorf(corral.Invalid, "it is not unix:PATH, tls:HOST:PORT or, with a token, relay:HOST:PORT")
}

// pinned accepts exactly the certificate with this digest, whatever names and times it has.
func pinned(digest string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the chain is not looked at; VerifyConnection decides
		VerifyConnection: func(s tls.ConnectionState) error {
			if got := digestOf(s.PeerCertificates[0].Raw); got != digest {
				return fmt.Errorf("the certificate has digest %s, not %s", got, digest)
			}
			return nil
		},
	}
}

// Greet says hello and waits for the answer. It takes nc over.
func Greet(ctx context.Context, nc net.Conn, h *Hello) (*Greeting, error) {
	_ = nc.SetDeadline(time.Now().Add(2 * AdmitTimeout))
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	g := &Greeting{Conn: NewConn(nc), SentAt: time.Now()}
	g.Send(&Message{Type: TypeHello, Hello: h})
	m, err := g.Recv(MaxFrame)
	if err == nil && m.Type == TypeWelcome {
		_ = nc.SetReadDeadline(time.Time{})
		g.Terms, g.GotAt = m.Welcome, time.Now()
		return g, nil
	}
	g.Close()
	if err != nil {
		return nil, fmt.Errorf("waiting to be admitted: %w", err)
	}
	return nil, Refusal(h.Role, m)
}

// Refusal returns the error for an answer that is not a welcome. Kinds that may pass are errors to be repeated; all
// others are an ErrRefused, after which the sender gives up.
func Refusal(role Role, m *Message) error {
	if m.Type != TypeRefuse {
		return fmt.Errorf("%w: %s instead of welcome", ErrProtocol, m.Type)
	}
	switch m.Kind {
	case corral.Unavailable, corral.Unknown, corral.Timeout, corral.Internal:
		return corral.Errorf(m.Kind, "not admitted now: %s", m.Reason)
	case corral.Conflict:
		if role == RolePilot {
			return corral.Errorf(m.Kind, "%w (%s)", ErrDuplicate, m.Reason)
		}
	}
	return corral.Errorf(m.Kind, "%w: %s", ErrRefused, m.Reason)
}

// A Backoff is the waiting time between attempts to connect. The zero value is ready.
type Backoff struct{ next time.Duration }

// Forgive starts from the shortest wait again after a connection that lasted: one that always breaks at once is a
// failure too.
func (b *Backoff) Forgive(lasted time.Duration) {
	if lasted > backoffMost {
		b.next = 0
	}
}

// Wait waits a little longer than the time before, with jitter, so that the workers of a dispatcher
// that was started again do not come back in step. It reports false if ctx ended.
func (b *Backoff) Wait(ctx context.Context) bool {
	b.next = min(max(backoffFirst, 2*b.next), backoffMost)
	return retry.For(ctx, b.next/2+rand.N(b.next/2))
}

// Reach connects to the worker port at unix:PATH or tls:HOST:PORT, makes sure that it is the one with the
// certificate's digest, and hangs up. It needs no token.
func Reach(ctx context.Context, address, certDigest string) error {
	nc, err := dialAddress(ctx, address, certDigest)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nc.Close()
}
