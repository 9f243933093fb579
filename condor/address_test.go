package condor_test

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral/condor"
)

// Addresses in an ad of a schedd of 23.9.6, behind a shared port and with IPv6, and texts that are not addresses.
func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<127.0.0.1:22929?addrs=127.0.0.1-22929&alias=127-0-0-1.corral.pool&noUDP&sock=schedd_31738_854c>": "127.0.0.1:22929",
		"<[::1]:9618?addrs=[--1]-9618>": "[::1]:9618",
		"<10.0.0.1:9618>":               "10.0.0.1:9618",
		"10.0.0.1:9618":                 "",
		"<10.0.0.1:9618":                "",
		"<host:9618>":                   "",
		"<>":                            "",
		"":                              "",
	} {
		at, err := condor.ParseAddress(text)
		if want == "" && (err == nil || !strings.Contains(err.Error(), "no address")) || want != "" && at.String() != want {
			t.Errorf("ParseAddress(%q) = %v, %v, want %q", text, at, err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("<127.0.0.1:9618?sock=a>")
	f.Add("<[::1]:9618>")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := condor.ParseAddress(text)
		if err != nil {
			return
		}
		if again, err := condor.ParseAddress("<" + at.String() + ">"); err != nil || again != at {
			t.Errorf("ParseAddress(%q) = %v, and of that %v, %v", text, at, again, err)
		}
	})
}
