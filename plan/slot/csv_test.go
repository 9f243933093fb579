package slot_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/slot"
)

const header = "site,start_s,length_s,processors,price,fee,divisible,extensible\n"

func TestReadCSV(t *testing.T) {
	t.Parallel()
	got, err := slot.ReadCSV(strings.NewReader(header+"a,0,3600,8,,,false,false\nb,0.5,60,2,0.25,3,true,true\n"+
		"a,3600,60,4,1,0,true,true\na,0,60,1,1,0,true,false\n"), "slots.csv")
	want := []slot.Offer{
		{Site: "a", Processors: 9, Slots: []slot.Slot{
			{Length: h, Processors: 8, Price: 1_000_000},
			{Start: h, Length: time.Minute, Processors: 4, Price: 1_000_000, Divisible: true, Extensible: true},
			{Length: time.Minute, Processors: 1, Price: 1_000_000, Divisible: true},
		}},
		{Site: "b", Processors: 2, Slots: []slot.Slot{{Start: time.Second / 2, Length: time.Minute, Processors: 2,
			Price: 250_000, Fee: 3_000_000, Divisible: true, Extensible: true}}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Errors contain a place and a reason.
func TestReadCSVRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "f: the file is empty",
		"site\n":                               "f:1: the number of fields is not 8",
		strings.ToUpper(header):                "f:1: the first line is not site,start_s,",
		header + "a,1,2\n":                     "f:2: the number of fields is not 8",
		header + "a,1,0,1,,,true,true\n":       "f:2: the slot has no length",
		header + "\na,1,1,0,,,true,true\n":     "f:3: the slot has 0 processors",
		header + "a,-1,1,1,,,true,true\n":      `f:2: start_s "-1" must be a number of seconds`,
		header + "a,1,1.0001,1,,,true,true\n":  `f:2: length_s "1.0001" must be`,
		header + "a,1,NaN,1,,,true,true\n":     `f:2: length_s "NaN" must be`,
		header + "a,1,1e9,1,,,true,true\n":     `f:2: length_s "1e9" must be`,
		header + "a,1,9999999999,1,,,true,x\n": `f:2: length_s "9999999999" is more than 30 years`,
		header + "a,1,1,1.5,,,true,true\n":     `f:2: processors "1.5" is not a whole number`,
		header + "a,1,1,1,-1,,true,true\n":     `f:2: price "-1" is not an amount`,
		header + "a,1,1,1,,x,true,true\n":      `f:2: fee "x" is not an amount`,
		header + "a,1,1,1,,,yes,true\n":        `f:2: divisible "yes" is neither true nor false`,
		header + "a,1,1,1,,,true,\n":           `f:2: extensible "" is neither`,
		header + ",1,1,1,,,true,true\n":        `f:2: site "" must have a name`,
	} {
		_, err := slot.ReadCSV(strings.NewReader(text), "f")
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
	if _, err := slot.ReadCSV(strings.NewReader(header), "f"); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("a file without slots: %v", err)
	}
}

// Parsed slots are valid, and writing and parsing them again returns the same slots.
func FuzzReadCSV(f *testing.F) {
	f.Add(header + "a,0,3600,8,,,false,false\nb,0.5,60,2,0.25,3,true,true\n")
	f.Add(header + "a,1,0,1,,,true,true\n")
	f.Add("\uFEFF" + header + "\"a,b\",1,2,3,4,5,true,false\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := slot.ReadCSV(strings.NewReader(text), "f")
		if err != nil {
			if kind := corral.KindOf(err); kind != corral.Invalid && kind != corral.Unsatisfiable {
				t.Fatalf("%v is of kind %s", err, kind)
			}
			return
		}
		for _, o := range all {
			for _, s := range o.Slots {
				if err := s.Check(); err != nil || s.Processors > o.Processors {
					t.Errorf("%+v: %v", s, err)
				}
			}
		}
		var out bytes.Buffer
		if err := slot.WriteCSV(&out, all); err != nil {
			t.Fatal(err)
		}
		again, err := slot.ReadCSV(&out, "f")
		if diff := cmp.Diff(all, again); err != nil || diff != "" {
			t.Errorf("%v (-read +again):\n%s", err, diff)
		}
	})
}
