package condor

import (
	"net/netip"
	"testing"
	"time"
)

func netipAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestRevokedList(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	text, err := revoked("", now, []Token{{ID: "a", Expires: time.Unix(2000, 0)}, {ID: "b", Expires: time.Unix(3000, 0)}, {ID: "gone", Expires: time.Unix(10, 0)}, {ID: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err = revoked(text, time.Unix(2500, 0), []Token{{ID: "b"}, {ID: "d", Expires: time.Unix(4000, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	want := "# revoked b 3000\n# revoked c 0\n# revoked d 4000\nSEC_TOKEN_REVOCATION_EXPR = member(jti, { \"b\", \"c\", \"d\", \"\" })\n"
	if text != want {
		t.Errorf("revoked() = %q, want %q", text, want)
	}
	if _, err := revoked("", now, []Token{{ID: `a" }) || member(jti, {"`}}); err == nil {
		t.Error("an id that is an expression was taken")
	}
}

func TestParseTokenRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a.b", "a.!.c", "a.e30.c.d", "a.bm8.c"} {
		if token, err := ParseToken(text); err == nil {
			t.Errorf("ParseToken(%q) = %v, want an error", text, token)
		}
	}
}
