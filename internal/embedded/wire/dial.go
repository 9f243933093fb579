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

// Errors of dialling after which retrying is useless.
var (
	// ErrRefused reports that the dispatcher does not accept this worker or pilot.
	ErrRefused = errors.New("refused by the dispatcher")

	// ErrDuplicate reports that another pilot holds the attempt's lease. It is also an ErrRefused.
	ErrDuplicate = fmt.Errorf("%w: another pilot holds the attempt's lease", ErrRefused)
)

// AdmitTimeout limits handshake, hello and admission together.
const AdmitTimeout = 10 * time.Second

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 2 * time.Second
)

// A Greeting is a connection on which this side has been admitted.
type Greeting struct {
	*Conn
	By     string // the address that was dialled
	Terms  *Welcome
	SentAt time.Time // when the hello was sent: the lease counts from here
	GotAt  time.Time // when the welcome was received
}

// Dial tries the addresses in order until one admits or refuses h. A refusal from any address is final, because all
// lead to the same port; an address that cannot be reached is skipped.
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

// connect connects to unix:PATH, tls:HOST:PORT or relay:HOST:PORT, where the certificate must have the digest: like the
// network, a relay sees only encrypted data.
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

// throughRelay connects through a relay, which asks corrald to check a proof that h contains a certain secret. This is
// the session's secret if corrald already knows it. A pilot cannot be sure that corrald does, because an answer may be
// lost, so it then tries to prove the token.
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
	return nil, corral.Errorf(corral.Invalid, "want unix:PATH, tls:HOST:PORT or, with a token, relay:HOST:PORT")
}

// pinned accepts only the certificate with this digest, whatever its names and times.
func pinned(digest string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the chain is not checked; VerifyConnection decides
		VerifyConnection: func(s tls.ConnectionState) error {
			if got := digestOf(s.PeerCertificates[0].Raw); got != digest {
				return fmt.Errorf("the certificate has digest %s, not %s", got, digest)
			}
			return nil
		},
	}
}

// Greet sends the hello and waits for the answer. It closes nc after an error; otherwise the returned Greeting owns nc.
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

// Refusal returns the error for an answer that is not a welcome. Temporary kinds are errors after which the sender may
// retry; all others are an ErrRefused, after which it gives up.
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

// Forgive resets the wait to the minimum after a connection that lasted; a connection that breaks at once counts as a
// failure.
func (b *Backoff) Forgive(lasted time.Duration) {
	if lasted > backoffMost {
		b.next = 0
	}
}

// Wait waits a little longer than the previous time, with jitter, so that the workers of a restarted dispatcher do not
// reconnect in step. It returns false if ctx ended.
func (b *Backoff) Wait(ctx context.Context) bool {
	b.next = min(max(backoffFirst, 2*b.next), backoffMost)
	return retry.For(ctx, b.next/2+rand.N(b.next/2))
}

// Reach connects to the worker port at unix:PATH or tls:HOST:PORT, checks that its certificate has the digest, and
// closes the connection. It needs no token.
func Reach(ctx context.Context, address, certDigest string) error {
	nc, err := dialAddress(ctx, address, certDigest)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nc.Close()
}
