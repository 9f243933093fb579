package condor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
)

// HTCondor has no list of revoked tokens, but an expression over the claims of each presented token, which a daemon
// reads with its configuration. Therefore the list is kept in comments of the file with the expression.

// revokedFile is a part of the pool's configuration. It has a comment "# revoked ID UNIX-TIME" for each revoked token,
// with its expiry (0: never), and the expression made from them.
const revokedFile = "revoked.conf"

var (
	tokenID     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	revokedLine = regexp.MustCompile(`(?m)^# revoked ([A-Za-z0-9_-]+) (\d+)$`)
)

// Revoke makes the pool refuse tokens from its return on; only their ID and Expires matter. Sessions opened with them
// end within ten minutes. Revoked tokens that have expired are removed from the list. Revoking a token again does
// nothing. The pool must be running.
func (p *Pool) Revoke(ctx context.Context, now time.Time, tokens ...Token) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file := filepath.Join(p.config.Dir, revokedFile)
	before, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("revoking tokens: %w", err)
	}
	text, err := revoked(string(before), now, tokens)
	if err != nil {
		return fmt.Errorf("revoking tokens: %w", err)
	}
	if err := p.owner.Replace(file, text); err != nil {
		return fmt.Errorf("revoking tokens: %w", err)
	}
	if _, err := p.tools.Run(ctx, nil, "condor_reconfig"); err != nil {
		return fmt.Errorf("revoking tokens: %w", err)
	}
	return p.awaitRevoked(ctx, expression(text))
}

// revoked adds tokens to the text of the file and drops those that have expired.
func revoked(before string, now time.Time, tokens []Token) (string, error) {
	expires := map[string]int64{}
	var order []string
	add := func(id string, unix int64) {
		if _, known := expires[id]; !known && (unix == 0 || unix >= now.Unix()) {
			order, expires[id] = append(order, id), unix
		}
	}
	for _, m := range revokedLine.FindAllStringSubmatch(before, -1) {
		unix, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return "", err
		}
		add(m[1], unix)
	}
	for _, t := range tokens {
		if !tokenID.MatchString(t.ID) {
			return "", fmt.Errorf("%q cannot be a token's id", t.ID)
		}
		unix := int64(0)
		if !t.Expires.IsZero() {
			unix = t.Expires.Unix()
		}
		add(t.ID, unix)
	}
	var s strings.Builder
	for _, id := range order {
		fmt.Fprintf(&s, "# revoked %s %d\n", id, expires[id])
	}
	for i, id := range order {
		order[i] = classad.FormatNew(id)
	}
	// The last entry cannot be a token's id. It keeps the list from being empty.
	fmt.Fprintf(&s, "SEC_TOKEN_REVOCATION_EXPR = member(jti, { %s })\n", strings.Join(append(order, `""`), ", "))
	return s.String(), nil
}

// expression returns the value in the file's text.
func expression(text string) string {
	_, value, _ := strings.Cut(text, "SEC_TOKEN_REVOCATION_EXPR = ")
	return strings.TrimSpace(value)
}

// awaitRevoked returns when the collector, to which all glideins connect, has the expression: condor_reconfig returns
// before the daemons have read it.
func (p *Pool) awaitRevoked(ctx context.Context, want string) error {
	return poll(ctx, func() (bool, error) {
		out, err := p.tools.Run(ctx, nil, "condor_config_val", "-collector", "SEC_TOKEN_REVOCATION_EXPR")
		return err == nil && strings.TrimSpace(string(out)) == want, err
	})
}
