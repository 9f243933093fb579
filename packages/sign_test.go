package packages

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/corral-pilot/corral"
)

func signer(t *testing.T) Signer {
	t.Helper()
	s, err := LoadSigner(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnlyATrustedSignatureCounts(t *testing.T) {
	t.Parallel()
	_, p := build(t, pilotHeader, pilotFiles)
	ours, theirs := signer(t), signer(t)
	good := ours.Sign(p)
	if err := good.Check([]PublicKey{theirs.Public(), ours.Public()}); err != nil {
		t.Fatalf("Check of a good signature = %v", err)
	}
	for _, c := range []struct {
		name string
		edit func(*Signed)
		want string
	}{
		{"unsigned", func(s *Signed) { s.Key, s.Signature = "", "" }, "not signed"},
		{"unknown key", func(s *Signed) { *s = theirs.Sign(p) }, "not trusted here"},
		{"another's signature under a trusted key", func(s *Signed) { s.Signature = theirs.Sign(p).Signature }, "not that of"},
		{"no base64", func(s *Signed) { s.Signature = "!" }, "not that of"},
		{"other digest", func(s *Signed) { s.Digest = "sha256:" + strings.Repeat("0", 64) }, "not that of"},
		{"other size", func(s *Signed) { s.SizeBytes++ }, "not that of"},
		{"other libc", func(s *Signed) {
			s.Platform.Libc = "musl"
			s.Name = Header{What: s.What, Version: s.Version, Platform: s.Platform}.Name()
		}, "not that of"},
		{"name of another", func(s *Signed) { s.Name = "corral-pilot-9-x86_64-linux-static" }, "its fields give the name"},
		{"digest is a path", func(s *Signed) { s.Digest = "sha256:../x" }, "64 lower-case hex digits"},
		{"line break", func(s *Signed) { s.Version = "1\n2" }, "does not match"},
	} {
		s := good
		c.edit(&s)
		err := s.Check([]PublicKey{ours.Public()})
		if corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "package "+s.Name) {
			t.Errorf("%s: Check = %v, want Forbidden naming the package with %q", c.name, err, c.want)
		}
	}
}

func TestSignatureFile(t *testing.T) {
	t.Parallel()
	_, p := build(t, pilotHeader, pilotFiles)
	want := signer(t).Sign(p)
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSigned(bytes.NewReader(b)); err != nil || got != want {
		t.Errorf("ReadSigned = %+v, %v, want %+v", got, err, want)
	}
	for name, text := range map[string]string{
		"empty": "", "other": "[]", "more": strings.Replace(string(b), "{", `{"more": 1,`, 1),
		"name": strings.Replace(string(b), p.Name, "another", 1), "long": strings.Repeat(" ", MaxSignedBytes) + string(b),
	} {
		if _, err := ReadSigned(strings.NewReader(text)); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s: ReadSigned = %v, want Invalid", name, err)
		}
	}
}

func FuzzReadSigned(f *testing.F) {
	f.Add([]byte(`{"name":"a-1-x86_64-linux-static","what":"a","version":"1","platform":{"os":"linux","arch":"x86_64","libc":"static"},` +
		`"digest":"sha256:` + strings.Repeat("0", 64) + `","size_bytes":1,"key":"ed25519:` + base64.StdEncoding.EncodeToString(make([]byte, 32)) + `","signature":"AA=="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSigned(bytes.NewReader(b))
		if err == nil && s.Check([]PublicKey{s.Key}) == nil {
			t.Errorf("%q holds a valid signature", b)
		}
	})
}

func TestSigningKeyIsPrivateAndStays(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "key")
	var mu sync.Mutex
	made := map[PublicKey]bool{}
	var all sync.WaitGroup
	for range 8 { // concurrent first starts
		all.Go(func() {
			s, err := LoadSigner(name)
			mu.Lock()
			defer mu.Unlock()
			if made[s.Public()] = true; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(made) != 1 {
		t.Errorf("%d keys were made, want one", len(made))
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("the key file is %v, %v, want mode 0600", info.Mode(), err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSigner(name); corral.KindOf(err) != corral.Invalid {
		t.Errorf("LoadSigner of a file that others can read = %v, want Invalid", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "no"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSigner(filepath.Join(filepath.Dir(name), "no")); corral.KindOf(err) != corral.Invalid {
		t.Errorf("LoadSigner of something else = %v, want Invalid", err)
	}
}

func TestParsePublicKey(t *testing.T) {
	t.Parallel()
	public := signer(t).Public()
	if got, err := ParsePublicKey(string(public)); got != public || err != nil {
		t.Errorf("ParsePublicKey(%s) = %s, %v", public, got, err)
	}
	for _, bad := range []string{"", "ed25519:", "ed25519:AAAA", strings.Replace(string(public), "ed25519:", "rsa:", 1), string(public) + "="} {
		if _, err := ParsePublicKey(bad); corral.KindOf(err) != corral.Invalid {
			t.Errorf("ParsePublicKey(%q) = %v, want Invalid", bad, err)
		}
	}
}
