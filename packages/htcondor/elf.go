package htcondor

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
)

// The functions below change how programs and libraries are loaded, like patchelf(1), but only in the three ways that
// packages need. The format is described in elf(5) and in the System V ABI, chapters 4 and 5; the standard library's
// debug/elf has its types and constants but only reads files.

// An image is a 64-bit little-endian ELF file, with the tables that control its loading.
type image struct {
	raw      []byte
	head     elf.Header64
	segments []elf.Prog64    // the parts to load, with their addresses
	sections []elf.Section64 // for tools that show or change programs; may be missing
	dynamic  []elf.Dyn64     // for the loader: needed libraries and search paths
}

// errDamaged means that a table exceeds the file.
var errDamaged = errors.New("damaged ELF file")

// parse reads the tables of a file. A program without a dynamic section is linked statically.
func parse(b []byte) (*image, error) {
	m := &image{raw: b}
	if len(b) < 64 || string(b[:4]) != elf.ELFMAG || b[4] != byte(elf.ELFCLASS64) || b[5] != byte(elf.ELFDATA2LSB) {
		return nil, errors.New("not a 64-bit little-endian ELF file")
	}
	if err := m.read(0, 64, &m.head); err != nil {
		return nil, err
	}
	m.segments = make([]elf.Prog64, m.head.Phnum)
	m.sections = make([]elf.Section64, m.head.Shnum)
	err := m.read(m.head.Phoff, m.segmentsSize(), m.segments)
	if err = errors.Join(err, m.read(m.head.Shoff, m.sectionsSize(), m.sections)); err != nil {
		return nil, err
	}
	if s := m.segment(elf.PT_DYNAMIC); s != nil {
		if s.Filesz > uint64(len(b)) {
			return nil, errDamaged
		}
		m.dynamic = make([]elf.Dyn64, s.Filesz/16)
		return m, m.read(s.Off, 16*uint64(len(m.dynamic)), m.dynamic)
	}
	return m, nil
}

// segmentsSize and sectionsSize return the lengths of the two tables in bytes.
func (m *image) segmentsSize() uint64 { return 56 * uint64(m.head.Phnum) }
func (m *image) sectionsSize() uint64 { return 64 * uint64(m.head.Shnum) }

// read decodes size bytes at offset into v.
func (m *image) read(offset, size uint64, v any) error {
	b, err := m.bytes(offset, size)
	if err != nil {
		return err
	}
	_, err = binary.Decode(b, binary.LittleEndian, v)
	return err
}

// bytes returns size bytes of the file from offset on. Both values may come from a damaged file.
func (m *image) bytes(offset, size uint64) ([]byte, error) {
	if end := uint64(len(m.raw)); offset > end || size > end-offset {
		return nil, errDamaged
	}
	return m.raw[offset : offset+size], nil
}

// encode writes the tables back to their places, and returns the file.
func (m *image) encode() ([]byte, error) {
	put := func(offset uint64, v any) error {
		to, err := m.bytes(offset, uint64(binary.Size(v)))
		if err == nil {
			_, err = binary.Encode(to, binary.LittleEndian, v)
		}
		return err
	}
	err := errors.Join(put(m.head.Phoff, m.segments), put(m.head.Shoff, m.sections))
	if s := m.segment(elf.PT_DYNAMIC); s != nil {
		err = errors.Join(err, put(s.Off, m.dynamic))
	}
	return m.raw, err
}

// segment returns the first segment of a kind, or nil.
func (m *image) segment(kind elf.ProgType) *elf.Prog64 {
	for i := range m.segments {
		if elf.ProgType(m.segments[i].Type) == kind {
			return &m.segments[i]
		}
	}
	return nil
}

// entry returns the first entry of the dynamic section with a tag, or nil.
func (m *image) entry(tag elf.DynTag) *elf.Dyn64 {
	for i := range m.dynamic {
		if elf.DynTag(m.dynamic[i].Tag) == tag {
			return &m.dynamic[i]
		}
	}
	return nil
}

// names returns the table with the texts of dynamic entries. The entries contain its address; the segment loaded there
// determines its place in the file.
func (m *image) names() ([]byte, error) {
	at, size := m.entry(elf.DT_STRTAB), m.entry(elf.DT_STRSZ)
	if at == nil || size == nil {
		return nil, errors.New("it needs no libraries: it is linked statically")
	}
	for _, s := range m.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && at.Val >= s.Vaddr && at.Val-s.Vaddr < s.Filesz {
			return m.bytes(s.Off+at.Val-s.Vaddr, size.Val)
		}
	}
	return nil, errDamaged
}

// dropRunPath removes the file's search paths of libraries. The following entries move up; the section keeps its
// length.
func (m *image) dropRunPath() {
	size := len(m.dynamic)
	m.dynamic = slices.DeleteFunc(m.dynamic, func(d elf.Dyn64) bool {
		return elf.DynTag(d.Tag) == elf.DT_RUNPATH || elf.DynTag(d.Tag) == elf.DT_RPATH
	})[:size] // the rest is zero: DT_NULL
}

// withoutRunPath returns a library without search paths of its own, so that the program's DT_RPATH also applies to the
// libraries that it needs.
func withoutRunPath(library []byte) ([]byte, error) {
	m, err := parse(library)
	if err != nil {
		return nil, err
	}
	m.dropRunPath()
	return m.encode()
}

// relink returns the program with loader in place of its loader's path, and the offset of that path. The program will
// search rpath for libraries first.
//
// Both texts need more space than the file has, and nothing in it can be moved, because programs refer to places by
// address. Therefore relink adds a segment at the end, with the loader's path, a copy of the table of names, and rpath
// after the names, and changes the entries that refer to the loader's path and to the names. The table of segments
// cannot grow either: the new segment replaces a note, which describes how the program was built and is never read.
func relink(program, loader []byte, rpath string) (out []byte, at int64, err error) {
	m, err := parse(program)
	if err != nil {
		return nil, 0, err
	}
	names, err := m.names()
	if err != nil {
		return nil, 0, err
	}
	interpreter := m.segment(elf.PT_INTERP)
	if interpreter == nil {
		return nil, 0, errors.New("it names no loader")
	}
	// Entries refer to a text by its offset in the table, so old names keep their offsets, and rpath follows them.
	content := slices.Concat(loader, names, []byte(rpath), []byte{0})
	s, err := m.add(content)
	if err != nil {
		return nil, 0, err
	}
	// Sections first: they are found by the addresses that the entries below lose.
	m.moveSection(interpreter.Vaddr, s, 0, len(loader))
	m.moveSection(m.entry(elf.DT_STRTAB).Val, s, len(loader), len(names)+len(rpath)+1)
	interpreter.Off, interpreter.Vaddr, interpreter.Paddr = s.Off, s.Vaddr, s.Paddr
	interpreter.Filesz, interpreter.Memsz = uint64(len(loader)), uint64(len(loader))
	m.entry(elf.DT_STRTAB).Val = s.Vaddr + uint64(len(loader))
	m.entry(elf.DT_STRSZ).Val = uint64(len(names) + len(rpath) + 1)
	m.dropRunPath()
	if err := m.addEntry(elf.Dyn64{Tag: int64(elf.DT_RPATH), Val: uint64(len(names))}); err != nil {
		return nil, 0, err
	}
	m.sortSegments()
	out, err = m.encode() // the header is unchanged: no table has moved or grown
	return out, int64(s.Off), err
}

// add appends content to the file and to the loaded segments, in place of a note or of an earlier relink's segment.
func (m *image) add(content []byte) (elf.Prog64, error) {
	m.raw = bytes.Clone(m.raw)
	place := m.dropAdded()
	// The new segment is loaded after all others, on a page of its own.
	page, end := uint64(4096), uint64(0)
	for i, s := range m.segments {
		switch elf.ProgType(s.Type) {
		case elf.PT_LOAD:
			page, end = max(page, s.Align), max(end, s.Vaddr+s.Memsz)
		case elf.PT_NOTE:
			if place < 0 {
				place = i
			}
		}
	}
	if place < 0 {
		return elf.Prog64{}, errors.New("its table of segments has no room for another one")
	}
	// Values from a damaged file must not determine the length of ours.
	if page&(page-1) != 0 || page > 1<<20 || end > 1<<40 {
		return elf.Prog64{}, errDamaged
	}
	m.raw = append(m.raw, make([]byte, -len(m.raw)&7)...) // pad to a multiple of 8
	at, size := uint64(len(m.raw)), uint64(len(content))
	address := (end+page-1)&^(page-1) + at&(page-1) // an address and its offset differ by whole pages
	m.raw = append(m.raw, content...)
	m.segments[place] = elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: at,
		Vaddr: address, Paddr: address, Filesz: size, Memsz: size, Align: page}
	return m.segments[place], nil
}

// dropAdded removes the segment added by an earlier relink from the file, and returns its index in the table of
// segments; -1 if there is none. Thus a package can be built from an unpacked one without growing. The added segment is
// recognized by its content: the loader's path, the names, and nothing else.
func (m *image) dropAdded() int {
	interpreter, size := m.segment(elf.PT_INTERP), m.entry(elf.DT_STRSZ)
	tables := max(m.head.Shoff+m.sectionsSize(), m.head.Phoff+m.segmentsSize()) // the end of both
	for i, s := range m.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && s.Vaddr == interpreter.Vaddr && s.Off == interpreter.Off &&
			s.Filesz == interpreter.Filesz+size.Val && m.entry(elf.DT_STRTAB).Val == s.Vaddr+interpreter.Filesz &&
			s.Off+s.Filesz == uint64(len(m.raw)) && s.Off >= tables {
			m.raw, m.segments[i].Type = m.raw[:s.Off], uint32(elf.PT_NULL)
			return i
		}
	}
	return -1
}

// addEntry inserts d before the final entry of the dynamic section, where linkers leave space.
func (m *image) addEntry(d elf.Dyn64) error {
	for i, e := range m.dynamic {
		if elf.DynTag(e.Tag) == elf.DT_NULL && i+1 < len(m.dynamic) {
			m.dynamic[i], m.dynamic[i+1] = d, elf.Dyn64{}
			return nil
		}
	}
	return errors.New("its dynamic section has no room for another entry")
}

// moveSection updates the section at address, if the file has a table of sections, to its new place within s. Only
// tools that show or change programs use it.
func (m *image) moveSection(address uint64, s elf.Prog64, from, size int) {
	for i := range m.sections {
		if x := &m.sections[i]; x.Addr == address && x.Size > 0 && elf.SectionFlag(x.Flags)&elf.SHF_ALLOC != 0 {
			x.Off, x.Addr, x.Size = s.Off+uint64(from), s.Vaddr+uint64(from), uint64(size)
		}
	}
}

// sortSegments sorts the table in the order that loaders require: the table and the loader first, then the loaded
// segments by address.
func (m *image) sortSegments() {
	rank := func(s elf.Prog64) (kind int, address uint64) {
		switch elf.ProgType(s.Type) {
		case elf.PT_PHDR:
			return 0, 0
		case elf.PT_INTERP:
			return 1, 0
		case elf.PT_LOAD:
			return 2, s.Vaddr
		}
		return 3, 0
	}
	slices.SortStableFunc(m.segments, func(a, b elf.Prog64) int {
		kindA, addressA := rank(a)
		kindB, addressB := rank(b)
		return cmp.Or(cmp.Compare(kindA, kindB), cmp.Compare(addressA, addressB))
	})
}
