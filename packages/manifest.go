package packages

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/corral-pilot/corral"
)

// ManifestName is the first entry of every archive, and a file of every unpacked package.
const ManifestName = "manifest.json"

// MaxBytes is the maximum length of an archive, and the maximum total length of the files in it.
const MaxBytes = 2 << 30

// Limits on the content of a package, so that a hostile archive cannot fill a disk or memory.
const (
	maxManifestBytes = 4 << 20
	maxFiles         = 20_000
	maxTotalBytes    = MaxBytes
	maxTarBytes      = MaxBytes + 256<<20 // with tar's overhead: some headers per file, and padding
)

// digestPrefix names the only hash in use.
const digestPrefix = "sha256:"

// A Header identifies a package and its platform. Platform.Libc is the requirement of the files: static, musl, or the
// oldest sufficient glibc (glibc2.28).
type Header struct {
	What            string `json:"name"`    // corral-pilot, htcondor
	Version         string `json:"version"` // 0.1.0
	corral.Platform        // linux, x86_64 or aarch64, static
	// Requires lists programs that the site must have, by the names that are searched in PATH.
	Requires []string `json:"requires,omitempty"`
}

// Name returns the package's full name: what-version-arch-os-libc.
func (h Header) Name() string {
	return strings.Join([]string{h.What, h.Version, h.Platform.Arch, h.Platform.OS, h.Platform.Libc}, "-")
}

// Names become parts of file names and of signed lines, so they cannot contain separators, blanks or line breaks. Each
// pattern is compiled on first use: otherwise every program that imports this package would spend a millisecond on them
// at its start, and pilots start by the thousand.
var (
	whatPattern    = lazily(`^[a-z0-9][a-z0-9-]{0,63}$`)
	versionPattern = lazily(`^[0-9A-Za-z][0-9A-Za-z.+~-]{0,63}$`)
	wordPattern    = lazily(`^[a-z0-9][a-z0-9_]{0,31}$`)
	programPattern = lazily(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$`)
	libcPattern    = lazily(`^(static|musl|glibc[0-9]{1,4}\.[0-9]{1,4})$`)
)

// lazily compiles a pattern on first use.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// validate checks that each part of the name is well formed, so that the name and the signed text are unambiguous.
func (h Header) validate() error {
	for _, c := range []struct {
		field, value string
		pattern      *regexp.Regexp
	}{
		{"name", h.What, whatPattern()},
		{"version", h.Version, versionPattern()},
		{"os", h.Platform.OS, wordPattern()},
		{"arch", h.Platform.Arch, wordPattern()},
		{"libc", h.Platform.Libc, libcPattern()},
	} {
		if !c.pattern.MatchString(c.value) {
			return fmt.Errorf("%s %q does not match %s", c.field, c.value, c.pattern)
		}
	}
	for _, program := range h.Requires {
		if !programPattern().MatchString(program) {
			return fmt.Errorf("required program %q is not a plain name", program)
		}
	}
	return nil
}

// A manifest lists the content of a package. It is the archive's first entry, in which the header's fields are on the
// same level as the others.
type manifest struct {
	Header
	Files       []file       `json:"files"` // in the order of the archive
	Relocations []Relocation `json:"relocations,omitempty"`
}

// A file is one regular file of a package.
type file struct {
	Path   string `json:"path"` // below the package's directory, slash-separated
	Mode   mode   `json:"mode"`
	Size   int64  `json:"size"`   // in bytes
	SHA256 string `json:"sha256"` // hex; with placeholders in place of relocations
}

// mode is a file's permission bits, written in octal: 0644, or 0755 for executable files.
type mode fs.FileMode

// MarshalText writes the mode in octal.
func (m mode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads one of the two modes that packages use.
func (m *mode) UnmarshalText(b []byte) error {
	switch string(b) {
	case "0644":
		*m = 0o644
	case "0755":
		*m = 0o755
	default:
		return fmt.Errorf("mode %q is neither 0644 nor 0755", b)
	}
	return nil
}

// missing returns the required programs that look does not find; look is a function like exec.LookPath.
func (h Header) missing(look func(program string) (path string, err error)) []string {
	var missing []string
	for _, program := range h.Requires {
		if _, err := look(program); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}

// parseManifest parses a manifest strictly and checks it against every limit.
func parseManifest(b []byte) (manifest, error) {
	var m manifest
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return manifest{}, fmt.Errorf("decode: %w", err)
	}
	return m, m.validate()
}

// validate checks everything about a manifest that can be checked without the package's files.
func (m manifest) validate() error {
	if err := m.Header.validate(); err != nil {
		return err
	}
	if len(m.Files) == 0 || len(m.Files) > maxFiles {
		return fmt.Errorf("%d files; want 1 to %d", len(m.Files), maxFiles)
	}
	total, seen := int64(0), map[string]bool{ManifestName: true} // the manifest's own name is reserved
	for _, f := range m.Files {
		if err := f.validate(); err != nil {
			return err
		}
		if seen[f.Path] {
			return fmt.Errorf("file %q is listed twice", f.Path)
		}
		seen[f.Path] = true
		total += f.Size
	}
	if total > maxTotalBytes {
		return fmt.Errorf("%d bytes of files; at most %d", total, int64(maxTotalBytes))
	}
	return m.validateRelocations()
}

// validate rejects a path that could lead out of the package's directory, and impossible values.
func (f file) validate() error {
	switch sum, err := hex.DecodeString(f.SHA256); {
	case !fs.ValidPath(f.Path), f.Path == ".", path.Clean(f.Path) != f.Path, strings.ContainsAny(f.Path, "\\\x00"):
		return fmt.Errorf("file name %q is not a plain path below the package", f.Path)
	case f.Mode != 0o644 && f.Mode != 0o755:
		return fmt.Errorf("file %q: mode %04o is neither 0644 nor 0755", f.Path, uint32(f.Mode))
	case f.Size < 0 || f.Size > maxTotalBytes:
		return fmt.Errorf("file %q: size %d is out of range", f.Path, f.Size)
	case err != nil || len(sum) != 32:
		return fmt.Errorf("file %q: sha256 %q is not 64 hex digits", f.Path, f.SHA256)
	}
	return nil
}

// HexOf returns the 64 hex digits of a digest of the form sha256:HEX, which are safe as a file name.
func HexOf(digest string) (string, error) {
	digits, ok := strings.CutPrefix(digest, digestPrefix)
	if sum, err := hex.DecodeString(digits); !ok || err != nil || len(sum) != 32 || strings.ToLower(digits) != digits {
		return "", corral.Errorf(corral.Invalid, "digest %q is not sha256: and 64 lower-case hex digits", digest)
	}
	return digits, nil
}
