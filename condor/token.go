package condor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A Token is an IDTOKEN: who holds its text is Identity to the pool, until Expires or until its ID is
// revoked, and has at most the rights that it names. It never appears in logs.
type Token struct {
	ID       string // HTCondor's jti
	Identity string
	Rights   []string
	Expires  time.Time
	text     string
}

// Secret returns the text, to be written into a file of mode 0600 in the SEC_TOKEN_DIRECTORY of a glidein.
func (t Token) Secret() string { return t.text }

// LogValue leaves the secret out.
func (t Token) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", t.ID), slog.String("identity", t.Identity), slog.Time("expires", t.Expires))
}

// String names the token without the secret.
func (t Token) String() string { return "token " + t.ID + " of " + t.Identity }

// GoString is String, so that no way of printing shows the secret.
func (t Token) GoString() string { return t.String() }

// glideinRights are all that a glidein needs: to offer slots, to say that it is there, and to find the
// pool's daemons.
var glideinRights = []string{"ADVERTISE_STARTD", "ADVERTISE_MASTER", "READ"}

// MintGlidein makes a token for a glidein, valid for lifetime, which is rounded up to a second.
func (p *Pool) MintGlidein(ctx context.Context, lifetime time.Duration) (Token, error) {
	return p.mint(ctx, glideinName+"@"+domain, lifetime)
}

// MintNumbered is MintGlidein for one of many: its daemons are [NumberedIdentity] to the pool, which is the
// AuthenticatedIdentity that the collector writes into their ads.
func (p *Pool) MintNumbered(ctx context.Context, n int64, lifetime time.Duration) (Token, error) {
	return p.mint(ctx, NumberedIdentity(n), lifetime)
}

// NumberedIdentity returns who a glidein with a number is to the pool.
func NumberedIdentity(n int64) string { return fmt.Sprintf("%s-%d@%s", glideinName, n, domain) }

func (p *Pool) mint(ctx context.Context, identity string, lifetime time.Duration) (Token, error) {
	if lifetime <= 0 {
		return Token{}, errors.New("minting a token: its lifetime is over before it begins")
	}
	seconds := (lifetime + time.Second - 1) / time.Second
	args := []string{"-identity", identity, "-lifetime", fmt.Sprint(int64(seconds))}
	for _, r := range glideinRights {
		args = append(args, "-authz", r)
	}
	out, err := p.tools.Run(ctx, nil, "condor_token_create", args...)
	if err != nil {
		return Token{}, fmt.Errorf("minting a token: %w", err)
	}
	return ParseToken(strings.TrimSpace(string(out)))
}

// ParseToken reads a token's claims. It does not verify the signature, which only the pool can.
func ParseToken(text string) (Token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Token{}, errors.New("reading a token: it has not three parts")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, errors.New("reading a token: its claims are not in base64")
	}
	var claims struct {
		ID      string `json:"jti"`
		Subject string `json:"sub"`
		Scope   string `json:"scope"`
		Expires int64  `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Token{}, errors.New("reading a token: its claims are not JSON")
	}
	t := Token{ID: claims.ID, Identity: claims.Subject, text: text}
	if claims.Expires != 0 {
		t.Expires = time.Unix(claims.Expires, 0)
	}
	for _, s := range strings.Fields(claims.Scope) {
		t.Rights = append(t.Rights, strings.TrimPrefix(s, "condor:/"))
	}
	return t, nil
}
