package htcondor

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
)

// The functions below change how programs and libraries are loaded, as patchelf(1) does, in the three ways that
// packages need and no others. The format is described in elf(5) and in the System V ABI, chapters 4 and 5;
// debug/elf, of the standard library, has its types and constants but only reads.

// An image is an ELF file of 64 bits, little endian, with the tables in it that say how it is loaded.
type image struct {
	raw      []byte
	head     elf.Header64
	segments []elf.Prog64    // what of the file is loaded, and where
	sections []elf.Section64 // for tools that show or change programs; may be missing
	dynamic  []elf.Dyn64     // for the loader: which libraries it needs, and where it looks
}

// errDamaged says that a table of the file leads out of it.
var errDamaged = errors.New("damaged ELF file")

// parse reads the tables of a file. A program without a dynamic section is linked statically.
func parse(b []byte) (*image, error) {
	m := &image{raw: b}
	if len(b) < 64 || string(b[:4]) != elf.ELFMAG || b[4] != byte(elf.ELFCLASS64) || b[5] != byte(elf.ELFDATA2LSB) {
		return nil, errors.New("no ELF file of 64 bits, little endian")
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

// segmentsSize and sectionsSize are how long the two tables are, in bytes.
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

// bytes returns size bytes of the file from offset on. Both may come from a damaged file.
func (m *image) bytes(offset, size uint64) ([]byte, error) {
	if end := uint64(len(m.raw)); offset > end || size > end-offset {
		return nil, errDamaged
	}
	return m.raw[offset : offset+size], nil
}

// encode writes the tables back to where they were, and returns the file.
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

// segment returns the first segment of a kind; nil without one.
func (m *image) segment(kind elf.ProgType) *elf.Prog64 {
	for i := range m.segments {
		if elf.ProgType(m.segments[i].Type) == kind {
			return &m.segments[i]
		}
	}
	return nil
}

// entry returns the first entry of the dynamic section with a tag; nil without one.
func (m *image) entry(tag elf.DynTag) *elf.Dyn64 {
	for i := range m.dynamic {
		if elf.DynTag(m.dynamic[i].Tag) == tag {
			return &m.dynamic[i]
		}
	}
	return nil
}

// names returns the table that dynamic entries have their texts in. The entries say where it is in memory; the
// segment that is loaded there says where in the file.
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

// dropRunPath removes what the file says of where libraries are. The entries that follow move up; the section keeps its
// length.
func (m *image) dropRunPath() {
	size := len(m.dynamic)
	m.dynamic = slices.DeleteFunc(m.dynamic, func(d elf.Dyn64) bool {
		return elf.DynTag(d.Tag) == elf.DT_RUNPATH || elf.DynTag(d.Tag) == elf.DT_RPATH
	})[:size] // the rest is zero: DT_NULL
}

// withoutRunPath returns a library that has no mind of its own about where others are: the program's DT_RPATH
// counts for the libraries of its libraries then.
func withoutRunPath(library []byte) ([]byte, error) {
	m, err := parse(library)
	if err != nil {
		return nil, err
	}
	m.dropRunPath()
	return m.encode()
}

// relink returns the program with loader in place of the path of its loader, and the offset where that is; it looks for
// libraries in rpath first.
//
// Both texts need more room than the file has for them, and nothing in it can be moved, because programs name places by
// their addresses. So a segment is added at the end, with the loader's path, a copy of the table of names, and rpath
// behind it; then the entries that lead to the loader's path and to the names are changed. The table of segments cannot
// grow either: the new one takes the place of a note, which says how the program was built and which nothing reads.
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
	// Entries name a text by its offset in the table, so the old names keep theirs and rpath gets the one after them.
	content := slices.Concat(loader, names, []byte(rpath), []byte{0})
	s, err := m.add(content)
	if err != nil {
		return nil, 0, err
	}
	// The sections first, which are found by the addresses that the entries below lose.
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
	out, err = m.encode() // the header keeps its place and content: no table has moved or grown
	return out, int64(s.Off), err
}

// add appends content to the file and has it loaded, after all else, in place of a note or of what an earlier relink
// has added.
func (m *image) add(content []byte) (elf.Prog64, error) {
	m.raw = bytes.Clone(m.raw)
	place := m.dropAdded()
	// The new segment is loaded behind all others, at a page of its own.
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
	// What a damaged file says must not become the length of ours.
	if page&(page-1) != 0 || page > 1<<20 || end > 1<<40 {
		return elf.Prog64{}, errDamaged
	}
	m.raw = append(m.raw, make([]byte, -len(m.raw)&7)...) // up to a multiple of 8
	at, size := uint64(len(m.raw)), uint64(len(content))
	address := (end+page-1)&^(page-1) + at&(page-1) // an address and its offset differ by whole pages
	m.raw = append(m.raw, content...)
	m.segments[place] = elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: at,
		Vaddr: address, Paddr: address, Filesz: size, Memsz: size, Align: page}
	return m.segments[place], nil
}

// dropAdded takes what an earlier relink has added off the file, and returns its place in the table of segments;
// -1 if there is none. So a package can be made of an unpacked one without growing. An added segment is known by having
// the loader's path, the names, and nothing else.
func (m *image) dropAdded() int {
	interpreter, size := m.segment(elf.PT_INTERP), m.entry(elf.DT_STRSZ)
	tables := max(m.head.Shoff+m.sectionsSize(), m.head.Phoff+m.segmentsSize()) // where both end
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

// addEntry puts d before the entry that ends the dynamic section, where linkers leave room.
func (m *image) addEntry(d elf.Dyn64) error {
	for i, e := range m.dynamic {
		if elf.DynTag(e.Tag) == elf.DT_NULL && i+1 < len(m.dynamic) {
			m.dynamic[i], m.dynamic[i+1] = d, elf.Dyn64{}
			return nil
		}
	}
	return errors.New("its dynamic section has no room for another entry")
}

// moveSection tells the section at address, if the file has a table of them, that it is within s now. Only
// tools that show or change programs look.
func (m *image) moveSection(address uint64, s elf.Prog64, from, size int) {
	for i := range m.sections {
		if x := &m.sections[i]; x.Addr == address && x.Size > 0 && elf.SectionFlag(x.Flags)&elf.SHF_ALLOC != 0 {
			x.Off, x.Addr, x.Size = s.Off+uint64(from), s.Vaddr+uint64(from), uint64(size)
		}
	}
}

// sortSegments puts the table into the order that loaders want: what tells of the table and the loader first,
// then what is loaded by address.
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
