package packages

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// A PublicKey verifies signatures of packages: ed25519: and 32 bytes in base64.
type PublicKey string

// keyPrefix names the only kind of signature in use.
const keyPrefix = "ed25519:"

// MaxSignedBytes is the maximum length of a signature file.
const MaxSignedBytes = 8 << 10

// ParsePublicKey checks that s is a well-formed key. The error is Invalid.
func ParsePublicKey(s string) (PublicKey, error) {
	_, err := PublicKey(s).raw()
	return PublicKey(s), err
}

// raw returns the key in the form for verification.
func (k PublicKey) raw() (ed25519.PublicKey, error) {
	digits, ok := strings.CutPrefix(string(k), keyPrefix)
	raw, err := base64.StdEncoding.Strict().DecodeString(digits)
	if !ok || err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, corral.Errorf(corral.Invalid, "key %.80q is not %s and %d bytes in base64",
			string(k), keyPrefix, ed25519.PublicKeySize)
	}
	return raw, nil
}

// A Signed is a package with the signature of a key's holder. As JSON it is the detached signature beside an archive,
// in a file with SignatureSuffix.
type Signed struct {
	Package
	Key       PublicKey `json:"key"`
	Signature string    `json:"signature"` // of the statement, in base64
}

// SignatureSuffix follows the name of an archive in the name of its signature file.
const SignatureSuffix = ".sig"

// statement returns the signed text: all fields by which a package is chosen and its archive is recognized, one per
// line. Fields cannot contain line breaks, and the first line prevents the use of the key for other texts of the same
// form.
func statement(p Package) []byte {
	return []byte(strings.Join([]string{
		"corral worker package 1",
		p.What, p.Version, p.Platform.OS, p.Platform.Arch, p.Platform.Libc,
		p.Digest, strconv.FormatInt(p.SizeBytes, 10), "",
	}, "\n"))
}

// Check reports whether one of the trusted keys signed the package. The error is Forbidden and names the package: it is
// not signed, its key is not trusted here, or the signature is for other content.
func (s Signed) Check(trusted []PublicKey) error {
	place := "package " + s.Name
	if err := s.wellFormed(); err != nil {
		return corral.ErrorAt(corral.Forbidden, place, "%w", err)
	}
	// The key must be trusted before it is used, so that nothing is computed with an unknown key.
	switch {
	case s.Signature == "" || s.Key == "":
		return corral.ErrorAt(corral.Forbidden, place, "it is not signed")
	case !slices.Contains(trusted, s.Key):
		return corral.ErrorAt(corral.Forbidden, place, "it is signed with %s, which is not trusted here", s.Key)
	}
	key, err := s.Key.raw()
	if err != nil {
		return corral.ErrorAt(corral.Forbidden, place, "%w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature)
	if err != nil || !ed25519.Verify(key, statement(s.Package), signature) {
		return corral.ErrorAt(corral.Forbidden, place, "the signature is not that of %s for this package", s.Key)
	}
	return nil
}

// wellFormed checks that the parts of a package agree.
func (p Package) wellFormed() error {
	h := Header{What: p.What, Version: p.Version, Platform: p.Platform}
	if err := h.validate(); err != nil {
		return err
	}
	if h.Name() != p.Name {
		return fmt.Errorf("its fields give the name %s", h.Name())
	}
	if p.SizeBytes <= 0 || p.SizeBytes > MaxBytes {
		return fmt.Errorf("its size is %d bytes", p.SizeBytes)
	}
	_, err := HexOf(p.Digest)
	return err
}

// ReadSigned parses a signature file strictly. It does not verify the signature; Check does. The error is Invalid.
func ReadSigned(r io.Reader) (Signed, error) {
	var s Signed
	dec := json.NewDecoder(io.LimitReader(r, MaxSignedBytes))
	dec.DisallowUnknownFields()
	err := dec.Decode(&s)
	if err == nil {
		err = s.wellFormed()
	}
	if err != nil {
		return Signed{}, corral.Errorf(corral.Invalid, "reading a package's signature: %w", err)
	}
	return s, nil
}

// Encode formats the signature file.
func (s Signed) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// A Signer signs packages with a private key. corrald has one for the packages that it builds; sites trust its public
// key and those configured by its administrator.
type Signer struct{ key ed25519.PrivateKey }

// Public returns the key that verifies the signatures.
func (s Signer) Public() PublicKey {
	public, ok := s.key.Public().(ed25519.PublicKey)
	if !ok {
		return "" // unreachable: that is the type of an ed25519 key
	}
	return PublicKey(keyPrefix + base64.StdEncoding.EncodeToString(public))
}

// Sign signs p. The caller must have inspected the archive.
func (s Signer) Sign(p Package) Signed {
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, statement(p)))
	return Signed{Package: p, Key: s.Public(), Signature: signature}
}

// seedType is the PEM type of the key file, which contains the key's seed. The type is unique to Corral, so that a key
// for another purpose is not used by mistake.
const seedType = "CORRAL PACKAGE SIGNING KEY"

// LoadSigner reads the private key in the file name, or generates one there that only its owner can read. A file that
// others can read is rejected, because the holder of the key can run any program at every site.
func LoadSigner(name string) (Signer, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return newSigner(name)
	}
	if err != nil {
		return Signer{}, fmt.Errorf("reading the signing key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Signer{}, corral.ErrorAt(corral.Invalid, name, "the signing key has mode %04o, want 0600",
			info.Mode().Perm())
	}
	b, err := input.ReadFile(name, 64<<10)
	if err != nil {
		return Signer{}, fmt.Errorf("reading the signing key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != seedType || len(block.Bytes) != ed25519.SeedSize {
		return Signer{}, corral.ErrorAt(corral.Invalid, name, "it is not a package signing key")
	}
	return Signer{ed25519.NewKeyFromSeed(block.Bytes)}, nil
}

// newSigner generates a key. If two processes do so concurrently, one wins and the other reads the winner's file: a
// link, unlike a rename, fails if the name is taken.
func newSigner(name string) (Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Signer{}, fmt.Errorf("making a signing key: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".key-*") // mode 0600
	if err != nil {
		return Signer{}, fmt.Errorf("making a signing key: %w", err)
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(pem.Encode(tmp, &pem.Block{Type: seedType, Bytes: key.Seed()}), tmp.Close())
	if err != nil {
		return Signer{}, fmt.Errorf("keeping the signing key: %w", err)
	}
	if err := os.Link(tmp.Name(), name); errors.Is(err, fs.ErrExist) {
		return LoadSigner(name)
	} else if err != nil {
		return Signer{}, fmt.Errorf("keeping the signing key: %w", err)
	}
	return Signer{key}, nil
}
