package packages

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Relocation is a place in a program that refers to another file of the package by its absolute path, which is the
// only way in which a kernel finds a program's loader. In the archive it contains the Placeholder of its length; Unpack
// replaces it by the path, followed by zeros.
type Relocation struct {
	File   string `json:"file"`   // the program, below the package's directory
	Offset int64  `json:"offset"` // in bytes
	Length int64  `json:"length"` // in bytes, including the zero after the path
	Text   string `json:"text"`   // the file referred to, below the package's directory
}

// Limits of relocations. The maximum length is Linux's limit for paths.
const (
	minPlaceBytes  = 64
	maxPlaceBytes  = 4096
	maxRelocations = 2000
)

// placeholderText is repeated to fill a place. It is an absolute path, so that a program unpacked without Corral fails
// to start, rather than start with a loader in the current directory.
const placeholderText = "/unpacked-without-corral"

// Placeholder returns the content of a place of that many bytes in an archive. It ends with a zero.
func Placeholder(length int) []byte {
	b := bytes.Repeat([]byte(placeholderText), length/len(placeholderText)+1)[:length]
	b[length-1] = 0
	return b
}

// validate rejects a place that is not within a program of the package, or refers to a file that the package lacks.
func (r Relocation) validate(files map[string]file) error {
	f, ok := files[r.File]
	switch _, text := files[r.Text]; {
	case !ok:
		return fmt.Errorf("relocation in %q, which is not in the package", r.File)
	case f.Mode != 0o755:
		return fmt.Errorf("relocation in %q, which is not a program", r.File)
	case r.Length < minPlaceBytes || r.Length > maxPlaceBytes:
		return fmt.Errorf("relocation in %q: %d bytes; want %d to %d", r.File, r.Length, minPlaceBytes, maxPlaceBytes)
	case r.Offset < 0 || r.Offset > f.Size-r.Length:
		return fmt.Errorf("relocation in %q: %d bytes at offset %d are outside its %d",
			r.File, r.Length, r.Offset, f.Size)
	case !text:
		return fmt.Errorf("relocation in %q: it names %q, which is not in the package", r.File, r.Text)
	}
	return nil
}

// validateRelocations checks that the places are within programs of the package and do not overlap.
func (m manifest) validateRelocations() error {
	if len(m.Relocations) > maxRelocations {
		return fmt.Errorf("%d relocations; at most %d", len(m.Relocations), maxRelocations)
	}
	files := map[string]file{}
	for _, f := range m.Files {
		files[f.Path] = f
	}
	for _, r := range m.Relocations {
		if err := r.validate(files); err != nil {
			return err
		}
	}
	// Overlapping places could together write a forbidden content.
	for file, places := range m.places() {
		slices.SortFunc(places, func(a, b Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
		for i := 1; i < len(places); i++ {
			if places[i-1].Offset+places[i-1].Length > places[i].Offset {
				return fmt.Errorf("relocations in %q overlap at offset %d", file, places[i].Offset)
			}
		}
	}
	return nil
}

// places returns the relocations by the file that contains them.
func (m manifest) places() map[string][]Relocation {
	by := map[string][]Relocation{}
	for _, r := range m.Relocations {
		by[r.File] = append(by[r.File], r)
	}
	return by
}

// A blanked reader reads a file with placeholders in its places, whatever they contain. Thus the manifest's digest also
// applies to a relocated file, and an unpacked package can be checked against its manifest.
type blanked struct {
	io.Reader
	at      int64 // offset in the file
	places  []Relocation
	differs bool // a place had other content
}

// Read overwrites the parts of places within the bytes read with placeholders; a place may span several reads.
func (b *blanked) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	for _, place := range b.places {
		from, to := max(place.Offset, b.at), min(place.Offset+place.Length, b.at+int64(n))
		if from >= to {
			continue
		}
		held, want := p[from-b.at:to-b.at], Placeholder(int(place.Length))[from-place.Offset:to-place.Offset]
		b.differs = b.differs || !bytes.Equal(held, want)
		copy(held, want)
	}
	b.at += int64(n)
	return n, err
}

// errNoPlaceholder means that a relocation would overwrite other content.
var errNoPlaceholder = errors.New("a place to relocate does not hold the placeholder")

// relocate makes the programs of an unpacked package, which is below root now, refer to each other below dir, the
// package's final location.
func relocate(root *os.Root, m manifest, dir string) error {
	for file, places := range m.places() {
		if err := relocateFile(root, file, places, dir); err != nil {
			return err
		}
	}
	return nil
}

// relocateFile writes the paths into one program.
func relocateFile(root *os.Root, file string, places []Relocation, dir string) error {
	f, err := root.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, place := range places {
		text := filepath.Join(dir, filepath.FromSlash(place.Text))
		if room := int(place.Length) - 1; len(text) > room {
			return errors.Join(f.Close(), corral.Errorf(corral.Unsatisfiable, "program %q can name a file by at most "+
				"%d bytes, and %s has %d: unpack it in a folder with a shorter path", file, room, text, len(text)))
		}
		// The rest of the place becomes zeros: the path ends at the first one.
		b := make([]byte, place.Length)
		copy(b, text)
		if _, err := f.WriteAt(b, place.Offset); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// checkPlace reports whether the place in f refers to the right file of the package below root. The path may contain
// links: only its target matters.
func checkPlace(root *os.Root, f io.ReaderAt, place Relocation) error {
	b := make([]byte, place.Length)
	if _, err := f.ReadAt(b, place.Offset); err != nil {
		return err
	}
	text, zeros, ok := strings.Cut(string(b), "\x00")
	if !ok || strings.Trim(zeros, "\x00") != "" || !filepath.IsAbs(text) {
		return fmt.Errorf("it has no absolute path at offset %d", place.Offset)
	}
	named, err := os.Stat(text)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it was unpacked for %s, which does not exist", text)
	}
	if err != nil {
		return err
	}
	want, err := root.Stat(place.Text)
	if err == nil && !os.SameFile(named, want) {
		err = fmt.Errorf("it was unpacked for %s, which is another file", text)
	}
	return err
}
