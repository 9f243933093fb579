package classad

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseAds(t *testing.T) {
	t.Parallel()
	ads, err := ParseAds([]byte(`[{"S": "a\"\\\n", "I": -5, "F": 1.0, "E": 1.5e300, "T": true, "X": "\/Expr(A + \"b\")\/",
		"U": "\/Expr(undefined)\/", "R": "\/Expr(error)\/", "L": [1, "x", "\/Expr(Y)\/"], "N": {"In": 1}, "Z": null}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Ad{{"S": "a\"\\\n", "I": int64(-5), "F": 1.0, "E": 1.5e300, "T": true, "X": Expr(`A + "b"`), "U": Undefined,
		"R": Error, "L": []any{int64(1), "x", Expr("Y")}, "N": Ad{"In": int64(1)}, "Z": Undefined}}
	if diff := cmp.Diff(want, ads); diff != "" {
		t.Error(diff)
	}
	for _, nothing := range []string{"", "\n"} {
		if ads, err := ParseAds([]byte(nothing)); ads != nil || err != nil {
			t.Errorf("ParseAds(%q) = %v, %v, want nothing", nothing, ads, err)
		}
	}
	for _, bad := range []string{"[", "{}", "[1]", "[] []", "-- Failed to fetch ads"} {
		if ads, err := ParseAds([]byte(bad)); err == nil {
			t.Errorf("ParseAds(%q) = %v, want an error", bad, ads)
		}
	}
}

func TestGetters(t *testing.T) {
	t.Parallel()
	ad := Ad{"Name": "x", "Cpus": int64(4), "Load": 0.5, "OK": true, "Rank": Expr("Mips"), "Huge": 1e300}
	if s, ok := ad.Text("NAME"); s != "x" || !ok {
		t.Errorf("Text = %q, %v", s, ok)
	}
	if n, ok := ad.Int("cpus"); n != 4 || !ok {
		t.Errorf("Int = %d, %v", n, ok)
	}
	if n, ok := ad.Int("Load"); n != 0 || !ok {
		t.Errorf("Int of a real = %d, %v", n, ok)
	}
	if b, ok := ad.Bool("ok"); !b || !ok {
		t.Errorf("Bool = %v, %v", b, ok)
	}
	_, text := ad.Text("Rank")
	_, number := ad.Int("Name")
	_, huge := ad.Int("Huge")
	_, truth := ad.Bool("Cpus")
	_, absent := ad.Int("None")
	if text || number || huge || truth || absent {
		t.Error("a getter gives what is not there")
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value    any
		old, new string
	}{
		{`a "b" \c`, `"a \"b\" \c"`, `"a \"b\" \\c"`},
		{`ends in \`, `"ends in \ "`, `"ends in \\"`},
		{"two\nlines", `"two lines"`, `"two\nlines"`},
		{7, "7", "7"},
		{int64(-7), "-7", "-7"},
		{2.0, "2.0", "2.0"},
		{1e300, "1e+300", "1e+300"},
		{true, "true", "true"},
		{Expr("A > 1"), "A > 1", "A > 1"},
		{nil, "undefined", "undefined"},
		{[]any{int64(1), `\`}, `{ 1, "\ " }`, `{ 1, "\\" }`},
		{Ad{"B": int64(2), "A": "x"}, `[ A = "x"; B = 2; ]`, `[ A = "x"; B = 2; ]`},
	}
	for _, test := range tests {
		if got := FormatOld(test.value); got != test.old {
			t.Errorf("FormatOld(%v) = %s, want %s", test.value, got, test.old)
		}
		if got := FormatNew(test.value); got != test.new {
			t.Errorf("FormatNew(%v) = %s, want %s", test.value, got, test.new)
		}
	}
}

func TestParseValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text     string
		old, new any
	}{
		{`"C:\dir\new"`, `C:\dir\new`, Expr(`"C:\dir\new"`)},
		{`"a\tb\101"`, `a\tb\101`, "a\tbA"},
		{`"a \"b\""`, `a "b"`, `a "b"`},
		{`"a" + "b"`, Expr(`"a" + "b"`), Expr(`"a" + "b"`)},
		{" 12 ", int64(12), int64(12)},
		{"1.5E-3", 0.0015, 0.0015},
		{"TRUE", true, true},
		{"Undefined", Undefined, Undefined},
		{"error", Error, Error},
		{"Infinity", Expr("Infinity"), Expr("Infinity")},
		{"", Expr(""), Expr("")},
		{`"`, Expr(`"`), Expr(`"`)},
	}
	for _, test := range tests {
		if got := ParseOld(test.text); got != test.old {
			t.Errorf("ParseOld(%s) = %#v, want %#v", test.text, got, test.old)
		}
		if test.text == `"C:\dir\new"` {
			continue // \d is not an escape
		}
		if got := ParseNew(test.text); got != test.new {
			t.Errorf("ParseNew(%s) = %#v, want %#v", test.text, got, test.new)
		}
	}
}

func TestFormatThenParse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).AsAny(),
			rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(),
		).Draw(t, "value")
		if got := ParseNew(FormatNew(value)); got != value {
			t.Errorf("ParseNew(%s) = %#v, want %#v", FormatNew(value), got, value)
		}
		if s, ok := value.(string); ok && (strings.ContainsAny(s, "\n\r") || strings.HasSuffix(s, `\`) || strings.Contains(s, `\"`)) {
			return // it has no old syntax
		}
		if got := ParseOld(FormatOld(value)); got != value {
			t.Errorf("ParseOld(%s) = %#v, want %#v", FormatOld(value), got, value)
		}
	})
}

func FuzzParseAds(f *testing.F) {
	f.Add([]byte(`[{"A": "\/Expr(x)\/", "B": [{}], "C": 1e999}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ads, err := ParseAds(text)
		if err != nil && ads != nil {
			t.Error("ads with an error")
		}
		for _, ad := range ads {
			_ = FormatNew(ad)
		}
	})
}

func FuzzParseNew(f *testing.F) {
	f.Add(`"a\\\"\n\377"`)
	f.Add("-1.5e3")
	f.Fuzz(func(t *testing.T, text string) {
		value := ParseNew(text)
		if s, ok := value.(string); ok && !strings.Contains(s, "\x00") && ParseNew(FormatNew(s)) != value {
			t.Errorf("%q is %q, which does not come back", text, s)
		}
	})
}
