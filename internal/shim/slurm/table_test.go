package slurm

import (
	"strings"
	"testing"
	"time"
)

// A fruit is an item of the lists in these tests.
type fruit struct{ name, colour string }

var fruits = []column[fruit]{
	{letter: 'n', name: "Name", header: "NAME", width: 8, value: func(f fruit) string { return f.name }},
	{letter: 'c', name: "Colour", header: "COLOUR", width: -6, value: func(f fruit) string { return f.colour }},
	uncut(column[fruit]{letter: 'l', name: "Full Name", header: "FULL NAME", width: 5, value: func(f fruit) string {
		return f.colour + " " + f.name
	}}),
}

var basket = []fruit{{"pear", "green"}, {"strawberry", "red"}}

// printed returns the list of the basket.
func printed(t *testing.T, f format[fruit], q query, title string) string {
	t.Helper()
	var b strings.Builder
	if err := f.write(&b, &q, title, basket, time.Date(2026, 11, 26, 9, 5, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each case is an argument of -o of squeue and sinfo, and the list.
func TestByLetters(t *testing.T) {
	for text, want := range map[string]string{
		"%n %c":       "NAME COLOUR\npear green\nstrawberry red\n",
		"%6n|%.6c|":   "NAME  |COLOUR|\npear  | green|\nstrawb|   red|\n",
		"<%.12n>":     "<        NAME>\n<        pear>\n<  strawberry>\n",
		"a%%b%nc":     "abNAMEc\nabpearc\nabstrawberryc\n",
		"%n%":         "NAME\npear\nstrawberry\n",
		"%n%12":       "NAME\npear\nstrawberry\n",
		"%0n":         "NAME\npear\nstrawberry\n",
		"%.3l":        "FUL\ngreen pear\nred strawberry\n",
		"%12l.":       "FULL NAME   .\ngreen pear  .\nred strawberry.\n",
		"%99999n":     "NAME" + strings.Repeat(" ", 9995) + "\npear" + strings.Repeat(" ", 9995) + "\nstrawberry" + strings.Repeat(" ", 9989) + "\n",
		"%x":          "!Invalid fruit format specification: x",
		"%n %.5q":     "!Invalid fruit format specification: q",
		"%n\x00%\x00": "!Invalid fruit format specification: \x00",
		"nothing":     "nothing\nnothing\nnothing\n",
		"%-3n":        "!Invalid fruit format specification: -",
		"%n %n":       "NAME NAME\npear pear\nstrawberry strawberry\n",
		"%.n|":        "NAME|\npear|\nstrawberry|\n",
		"%2n%2c":      "NACO\npegr\nstre\n",
		"%4c\t%n":     "COLO\tNAME\ngree\tpear\nred \tstrawberry\n",
		"%c äöü":      "COLOUR äöü\ngreen äöü\nred äöü\n",
		"%..6c":       "COLOUR\n green\n   red\n",
		"%n % c":      "!Invalid fruit format specification:  ",
		"%n%c%l":      "NAMECOLOURFULL NAME\npeargreengreen pear\nstrawberryredred strawberry\n",
		"%1n%1c%1l":   "NCF\npggreen pear\nsrred strawberry\n",
		"(%6.n)":      "!Invalid fruit format specification: .",
		"%10n%10c$":   "NAME      COLOUR    $\npear      green     $\nstrawberryred       $\n",
		"%.10n%.10c$": "      NAME    COLOUR$\n      pear     green$\nstrawberry       red$\n",
		"%n%%%c":      "NAMECOLOUR\npeargreen\nstrawberryred\n",
		"%%n":         "n\nn\nn\n",
		"%c\\n":       "COLOUR\\n\ngreen\\n\nred\\n\n",
		"%010n|":      "NAME      |\npear      |\nstrawberry|\n",
		"%n ":         "NAME \npear \nstrawberry \n",
		" ":           " \n \n \n",
		"":            "\n\n\n",
		"%":           "\n\n\n",
		"%5":          "\n\n\n",
		"%.":          "\n\n\n",
	} {
		f, err := byLetters(text, ".", "fruit", fruits)
		got := ""
		if err != nil {
			got = "!" + err.Error()
		} else {
			got = printed(t, f, query{}, "")
		}
		if got != want {
			t.Errorf("-o %q: got\n%q, want\n%q", text, got, want)
		}
	}
}

// Each case is a format of sacct and sacctmgr, and the list: for people, and for programs with -P and -p.
func TestByNames(t *testing.T) {
	for text, want := range map[string]string{
		"name": "    NAME \n-------- \n    pear \nstrawbe+ \n" + "NAME\npear\nstrawberry\n" + "NAME|\npear|\nstrawberry|\n",
		"COLOUR,name": "COLOUR     NAME \n------ -------- \ngreen      pear \nred    strawbe+ \n" +
			"COLOUR|NAME\ngreen|pear\nred|strawberry\n" + "COLOUR|NAME|\ngreen|pear|\nred|strawberry|\n",
		"n%4,col%-3": "NAME CO+ \n---- --- \npear gr+ \nstr+ red \n" +
			"NAME|COLOUR\npear|green\nstrawberry|red\n" + "NAME|COLOUR|\npear|green|\nstrawberry|red|\n",
		"full":        "FULL  \n----- \ngree+ \nred + \n" + "FULL NAME\ngreen pear\nred strawberry\n" + "FULL NAME|\ngreen pear|\nred strawberry|\n",
		" name%x , ,": "    NAME \n-------- \n    pear \nstrawbe+ \n" + "NAME\npear\nstrawberry\n" + "NAME|\npear|\nstrawberry|\n",
		"name%0":      "NAME \n \npear \nstrawberry \n" + "NAME\npear\nstrawberry\n" + "NAME|\npear|\nstrawberry|\n",
		"size":        "!no field size", "name,nam,names": "!no field names", "%5": "empty", "": "empty", ",": "empty",
	} {
		places, err := byNames(text, "no field %s", fruits)
		got := ""
		switch {
		case err != nil:
			got = "!" + err.Error()
		case places == nil:
			got = "empty"
		default:
			for _, q := range []query{{}, {parsable: true, delimiter: "|"}, {parsable: true, trailing: true, delimiter: "|"}} {
				got += printed(t, sheetOf(&q, places), q, "")
			}
		}
		if got != want {
			t.Errorf("format %q: got\n%q, want\n%q", text, got, want)
		}
	}
}

// The lines above a list.
func TestTops(t *testing.T) {
	f := format[fruit]{places: inOrder(fruits)[:1]}
	for want, q := range map[string]query{
		"    NAME\n": {}, "Thu Nov 26 09:05:00 2026\n    NAME\n": {long: true}, "": {noHeader: true, long: true},
	} {
		got, _, _ := strings.Cut(printed(t, f, q, ""), "    pear\n")
		if got != want {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
		got, _, _ = strings.Cut(printed(t, f, q, "mine"), "    pear\n")
		if want := "CLUSTER: mine\n" + want; got != want && !q.noHeader {
			t.Errorf("%+v of a cluster: %q, want %q", q, got, want)
		}
	}
}

// Other delimiters, for programs.
func TestDelimiter(t *testing.T) {
	q := query{parsable: true, noHeader: true, delimiter: " <> "}
	if got, want := printed(t, sheetOf(&q, inOrder(fruits)[:2]), q, ""), "pear <> green\nstrawberry <> red\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
