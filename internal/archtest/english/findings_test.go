package english

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the findings in findings.txt, if they are not more than before")

const (
	top    = "../../.." // the repository
	record = "findings.txt"
	again  = "go test ./internal/archtest/english -update"
)

// A finding is one match of a rule.
type finding struct {
	rule   rule
	folder string
	place  string // FILE:LINE
	text   string // the match with the words around it
}

// mark is a short hash by which a finding is recognized after other lines of its file have changed.
func (f finding) mark() string {
	return fmt.Sprintf("%04x", crc32.ChecksumIEEE([]byte(f.rule.name+f.text))&0xffff)
}

func (f finding) String() string {
	return fmt.Sprintf("%s: … %s …\n\t%q: %s; write %s", f.place, f.text, f.rule.name, f.rule.why, f.rule.write)
}

// TestEnglish compares the findings of each folder with the record. Only the number of findings decides; the marks in
// the record select the findings that a failure prints.
func TestEnglish(t *testing.T) {
	found, err := findings()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(record)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	known, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	logCounts(t, found)
	if *update {
		if now, before := total(found), total(known); text != nil && now > before {
			t.Fatalf("%d findings, %d are recorded: rewrite the new ones, which the test lists without -update", now, before)
		}
		if err := os.WriteFile(record, format(found), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	folders := maps.Clone(found)
	for folder := range known {
		folders[folder] = found[folder]
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if complaint := compare(folder, found[folder], known[folder]); complaint != "" {
			t.Error(complaint)
		}
	}
}

// logCounts prints the findings by rule, with go test -v.
func logCounts(t *testing.T, found map[string][]finding) {
	t.Helper()
	counts := map[string]int{}
	for _, all := range found {
		for _, f := range all {
			counts[f.rule.name]++
		}
	}
	for _, r := range rules {
		t.Logf("%-14s%5d", r.name, counts[r.name])
	}
	t.Logf("%-14s%5d", "all", total(found))
}

// compare returns the complaint about a folder; "" if it has as many findings as recorded.
func compare(folder string, found []finding, known []string) string {
	switch more := len(found) - len(known); {
	case more > 0:
		var list strings.Builder
		for _, f := range unknown(found, known) {
			list.WriteString("\n" + f.String())
		}
		return fmt.Sprintf("%s: %d findings, %d are recorded: rewrite %d of these:%s",
			folder, len(found), len(known), more, list.String())
	case more < 0:
		return fmt.Sprintf("%s: %d findings, %d are recorded: record the better number with %s",
			folder, len(found), len(known), again)
	}
	return ""
}

// unknown returns the findings that have no mark in known; each mark stands for one finding.
func unknown(found []finding, known []string) []finding {
	left := slices.Clone(known)
	return slices.DeleteFunc(slices.Clone(found), func(f finding) bool {
		i := slices.Index(left, f.mark())
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	})
}

// format returns the record: a line for each folder with its number of findings and their marks.
func format(found map[string][]finding) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Findings of each folder and their marks, written by %s\n", again)
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		var marks []string
		for _, f := range found[folder] {
			marks = append(marks, f.mark())
		}
		slices.Sort(marks)
		fmt.Fprintf(&b, "%s %d %s\n", folder, len(marks), strings.Join(marks, " "))
	}
	return b.Bytes()
}

// parse reads a record and returns the marks of each folder.
func parse(text []byte) (map[string][]string, error) {
	known := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			if len(words) < 3 || words[1] != strconv.Itoa(len(words)-2) {
				return nil, fmt.Errorf("%s: %.60q: the number is not that of the marks", record, line)
			}
			known[words[0]] = words[2:]
		}
	}
	return known, nil
}

func total[F any](folders map[string][]F) int {
	n := 0
	for _, all := range folders {
		n += len(all)
	}
	return n
}

// findings returns the findings of each folder that has any, in the order of the files.
func findings() (map[string][]finding, error) {
	found := map[string][]finding{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != top && foreign(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		below, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		passages, err := passagesOf(name)
		if err != nil {
			return err
		}
		for _, p := range passages {
			for _, f := range p.findings() {
				f.folder = path.Dir(below)
				f.place = below + ":" + f.place
				found[f.folder] = append(found[f.folder], f)
			}
		}
		return nil
	})
	return found, err
}

// foreign reports whether a folder has nothing that people of this project write for readers. Decisions that are in the
// archive are not edited any more.
func foreign(folder string) bool {
	return strings.HasPrefix(folder, ".") || slices.Contains([]string{"testdata", "bin", "build", "archive"}, folder)
}

// passagesOf reads one file; a file of another kind has no passages.
func passagesOf(name string) ([]passage, error) {
	base := filepath.Base(name)
	kind := filepath.Ext(base)
	if kind != ".go" && kind != ".md" && !strings.HasSuffix(base, "help.txt") || strings.HasPrefix(base, "archive") {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return passagesIn(name, text)
}

// passagesIn returns the passages of a text by the kind of its file.
func passagesIn(name string, text []byte) ([]passage, error) {
	switch filepath.Ext(name) {
	case ".go":
		return goPassages(name, text)
	case ".md":
		return markdownPassages(string(text)), nil
	}
	return helpPassages(string(text)), nil
}

// findings returns the findings of a passage; the place of each is only its line.
func (p *passage) findings() []finding {
	const around = 40
	var found []finding
	text := ownWords(p.text)
	for _, r := range rules {
		for _, at := range r.matches(text) {
			from, to := max(at[0]-around, 0), min(min(at[1], at[0]+2*around)+around, len(text))
			words := strings.Join(strings.Fields(strings.ToValidUTF8(p.text[from:to], "")), " ")
			found = append(found, finding{rule: r, place: p.place(at[0]), text: words})
		}
	}
	return found
}
