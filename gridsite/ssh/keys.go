package ssh

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// unlocked are the decrypted keys, by the wire format of their public halves. They stay in memory for as long as
// corrald runs, so that a connection lost at night can be restored without a person; passphrases are not kept.
type unlocked struct {
	mu   sync.Mutex
	keys map[string]ssh.Signer
}

// get returns the unlocked key with this public half.
func (u *unlocked) get(public ssh.PublicKey) (ssh.Signer, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key, ok := u.keys[string(public.Marshal())]
	return key, ok
}

// put stores an unlocked key.
func (u *unlocked) put(key ssh.Signer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		u.keys = map[string]ssh.Signer{}
	}
	u.keys[string(key.PublicKey().Marshal())] = key
}

// A keyring collects the keys for one login, and their results. Package ssh reports only that no key succeeded; the
// keyring records each key that was offered and each unusable key, for the error. Its ctx is the login's context,
// stored for callbacks of package ssh, which receive no context.
type keyring struct {
	dialer   *dialer
	hop      hop
	ctx      context.Context // of the login, for questions during it
	clock    *time.Timer     // stopped during questions
	keys     []ssh.Signer
	tried    []string
	expired  []credential.Credential // credentials that were not tried
	used     credential.Credential   // the last credential for which the host requested a signature
	problems []error
	ask      gridsite.Asker // nil: no person is available
	offered  []string
	stuck    bool // a requested key could not be opened, or a question was not answered
}

// keyring collects the keys for a host: certificates first, then key files, then the agent's other keys. Locked keys
// come last: the server selects the first key that it accepts, and a person should be asked for a passphrase only if no
// other key suffices. Each rejected key costs one of the server's permitted tries, often six.
func (d *dialer) keyring(ctx context.Context, h hop, clock *time.Timer, ask gridsite.Asker) (*keyring, error) {
	k := &keyring{dialer: d, hop: h, ctx: ctx, clock: clock, ask: ask}
	agents := k.agentKeys()
	var own []named
	for _, file := range h.identities {
		key, err := k.identity(file, agents)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !h.explicit:
		case err != nil:
			k.problems = append(k.problems, err)
		default:
			_, shut := key.(locked)
			own = append(own, named{Signer: key, from: file, shut: shut})
		}
	}
	certified, err := k.certified(own)
	if err != nil {
		return nil, err
	}
	all := append(certified, own...)
	if !h.identitiesOnly {
		for _, key := range agents {
			all = append(all, named{Signer: key, from: inAgent})
		}
	}
	for _, shut := range []bool{false, true} {
		for _, key := range all {
			if key.shut == shut {
				k.add(key)
			}
		}
	}
	return k, nil
}

// add adds a key, unless it was added before: an agent often also has the key of a file, and a server ends the login
// after several unknown keys. A certificate differs from its key on the wire, so both are tried. An expired certificate
// is not tried: it would use up one of the permitted tries, and hide the reason for the failure.
func (k *keyring) add(key named) {
	if held(key.PublicKey(), k.keys) != nil {
		return
	}
	of := describe(key.PublicKey(), key.from)
	if of.Expired(time.Now()) {
		k.expired = append(k.expired, of)
		return
	}
	key.signs = func() { k.used = of }
	k.keys = append(k.keys, key)
	from := key.from
	if !of.NotAfter.IsZero() {
		from += ", valid until " + of.NotAfter.Format(time.RFC3339)
	}
	k.tried = append(k.tried,
		fmt.Sprintf("%s %s (%s)", key.PublicKey().Type(), ssh.FingerprintSHA256(key.PublicKey()), from))
}

// agentKeys requests the agent's keys. The connection stays open until the end of the login, because the agent signs
// over it. An agent that does not answer is a problem reported with a failure; other keys may suffice.
func (k *keyring) agentKeys() []ssh.Signer {
	socket := k.dialer.options.AgentSocket
	if socket == "" {
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(k.ctx, "unix", socket)
	var keys []ssh.Signer
	if err == nil {
		context.AfterFunc(k.ctx, func() { conn.Close() })
		keys, err = agent.NewClient(patient{conn, k.dialer.timing.agent}).Signers()
	}
	if err != nil {
		k.problems = append(k.problems, fmt.Errorf("the ssh agent at %s does not answer: %w", socket, err))
	}
	return keys
}

// patient is a connection whose peer has limited time to answer each write. The agent protocol alternates requests and
// answers, and an unresponsive agent would block the login indefinitely.
type patient struct {
	net.Conn
	patience time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetDeadline(time.Now().Add(p.patience)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// maxKeyFile is the maximum length of a key file in bytes.
const maxKeyFile = 1 << 20

// identity reads a key file. It returns the file's own key, the agent's copy of it, which needs no passphrase, a key
// that was unlocked before, or a locked key, which asks for its passphrase only when the server requests a signature.
// As in ssh, a file with only a public key suffices if the agent has the private half.
func (k *keyring) identity(file string, agents []ssh.Signer) (ssh.Signer, error) {
	content, err := input.ReadFile(file, maxKeyFile)
	if err == nil {
		var key ssh.Signer
		if key, err = ssh.ParsePrivateKey(content); err == nil {
			return key, nil
		}
		err = fmt.Errorf("%s: %w", file, err)
	}
	missing, shut := errors.AsType[*ssh.PassphraseMissingError](err)
	public, unknown := publicHalf(file, content, missing)
	if unknown == nil {
		if key := held(public, agents); key != nil {
			return key, nil
		}
		if open, ok := k.dialer.keys.get(public); ok {
			return open, nil
		}
	}
	switch {
	case shut && unknown == nil:
		return locked{public: public, open: func() (ssh.Signer, error) { return k.unlock(file, content) }}, nil
	case shut:
		return nil, fmt.Errorf("%s is encrypted, and its public key is not beside it: %w", file, unknown)
	case unknown == nil:
		return nil, fmt.Errorf("no agent has the private key of %s: %w", file, err)
	}
	return nil, err
}

// publicHalf finds the public key of a key file: in the key file itself, if it is public or encrypted in the current
// format, or in the corresponding .pub file, as written by ssh-keygen.
func publicHalf(file string, content []byte, missing *ssh.PassphraseMissingError) (ssh.PublicKey, error) {
	if missing != nil && missing.PublicKey != nil { // older formats hide it
		return missing.PublicKey, nil
	}
	if key, _, _, _, err := ssh.ParseAuthorizedKey(content); err == nil {
		return key, nil
	}
	return readPublicKey(file + ".pub")
}

// held returns the key with this public half, or nil if keys does not contain it.
func held(public ssh.PublicKey, keys []ssh.Signer) ssh.Signer {
	for _, key := range keys {
		if bytes.Equal(key.PublicKey().Marshal(), public.Marshal()) {
			return key
		}
	}
	return nil
}

// readPublicKey reads a file with one public key, as written by ssh-keygen.
func readPublicKey(file string) (ssh.PublicKey, error) {
	line, err := input.ReadFile(file, maxKeyFile)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(line)
	return key, err
}

// unlock asks for the passphrase of a key. It is called during a login, after the server has indicated that it accepts
// the key. A failure excludes only this key, and marks the login as one for which a person's help would be useful.
func (k *keyring) unlock(file string, content []byte) (ssh.Signer, error) {
	key, err := func() (ssh.Signer, error) {
		if k.ask == nil {
			return nil, fmt.Errorf("%s: it needs a passphrase, but no person can enter one now: log in with"+
				" `corral site login`, or put the key into an ssh agent", file)
		}
		prompt := gridsite.Prompt{Text: "passphrase of " + file + ": "}
		answers, err := k.put(gridsite.Question{Name: k.who(), Prompts: []gridsite.Prompt{prompt}})
		if err != nil {
			return nil, fmt.Errorf("%s: asking for its passphrase: %w", file, err)
		}
		key, err := ssh.ParsePrivateKeyWithPassphrase(content, []byte(answers[0]))
		if errors.Is(err, x509.IncorrectPasswordError) {
			return nil, fmt.Errorf("%s: wrong passphrase", file)
		}
		return key, err
	}()
	if err != nil {
		k.problems, k.stuck = append(k.problems, err), true
		return nil, err
	}
	k.dialer.keys.put(key)
	return key, nil
}

// named is a key with its source.
type named struct {
	ssh.Signer
	from  string
	shut  bool   // a person is needed to open it
	signs func() // called before each signature; may be nil
}

// SignWithAlgorithm exposes a method hidden by the embedded interface: for RSA the server chooses the algorithm.
func (n named) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if n.signs != nil {
		n.signs()
	}
	if key, ok := n.Signer.(ssh.AlgorithmSigner); ok {
		return key.SignWithAlgorithm(rand, data, algorithm)
	}
	return n.Signer.Sign(rand, data)
}

// locked is an encrypted key that is opened for its first signature. Its public half suffices to ask the server whether
// it would accept the key.
type locked struct {
	public ssh.PublicKey
	open   func() (ssh.Signer, error)
}

func (l locked) PublicKey() ssh.PublicKey { return l.public }

func (l locked) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.SignWithAlgorithm(rand, data, "")
}

func (l locked) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	key, err := l.open()
	if err != nil {
		return nil, err
	}
	return named{Signer: key}.SignWithAlgorithm(rand, data, algorithm)
}
