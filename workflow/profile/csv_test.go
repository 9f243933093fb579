package profile_test

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/profile"
)

const header = "transformation,level,metric,count,min,max,mean,sd,sum\n"

func TestWriteCSV(t *testing.T) {
	t.Parallel()
	p := of(t, []profile.Sample{
		sample("a", "1", "map, all", 0, values{
			profile.Runtime: 2, profile.CPU: 1, profile.Memory: 100, profile.Read: 10, profile.Written: 0,
		}),
		sample("a", "2", "map, all", 0, values{
			profile.Runtime: 4, profile.CPU: 4, profile.Memory: 300, profile.Read: 30, profile.Written: 0,
		}),
	}, runtimes("a", "add", 1, 1, 1, 1, 1, 1), runtimes("a", "add", 2, 8, 8, 8, 8, 8))
	var got strings.Builder
	if err := p.WriteCSV(&got); err != nil {
		t.Fatal(err)
	}
	want := header + `add,1,runtime_s,5,1,1,1,0,5
add,2,runtime_s,5,8,8,8,0,40
"map, all",,runtime_s,2,2,4,3,1.4142135623730951,6
"map, all",,cpu_s,2,1,4,2.5,2.1213203435596424,5
"map, all",,utilization,2,0.5,1,0.75,0.3535533905932738,1.5
"map, all",,memory_bytes,2,100,300,200,141.4213562373095,400
"map, all",,read_bytes,2,10,30,20,14.142135623730951,40
"map, all",,written_bytes,2,0,0,0,0,0
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestReadCSVRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "p.csv: the file is empty"},
		{"a,b,c,d,e,f,g,h,i\n", "p.csv:1: the first line is not transformation,level"},
		{header + "map,0,runtime_s,1\n", "p.csv:2: the number of fields is not 9"},
		{
			header + "map,0,runtime_s,1,1,1,1,0,1\nmap,0,runtime_s,1,1,1,1,0,1\n",
			"p.csv:3: transformation \"map\" has a second line",
		},
		{
			header + "map,0,runtime_s,1,1,1,1,0,1\nmap,,cpu_s,1,1,1,1,0,1\n",
			"p.csv:3: transformation \"map\" has lines with a level and lines without",
		},
		{header + ",0,runtime_s,1,1,1,1,0,1\n", "p.csv:2: transformation: \"\" must be a name"},
		{header + "\"a\nb\",0,runtime_s,1,1,1,1,0,1\n", "p.csv:2: transformation: \"a\\nb\" must be a name"},
		{header + "map,x,runtime_s,1,1,1,1,0,1\n", "p.csv:2: level: \"x\""},
		{header + "map,-1,runtime_s,1,1,1,1,0,1\n", "p.csv:2: level: \"-1\""},
		{header + "map,0,runtime,1,1,1,1,0,1\n", "p.csv:2: metric \"runtime\" must be one of runtime_s"},
		{header + "map,0,runtime_s,0,1,1,1,0,1\n", "p.csv:2: count 0"},
		{header + "map,0,runtime_s,1.5,1,1,1,0,1\n", "p.csv:2: count: \"1.5\""},
		{header + "map,0,runtime_s,1,-1,1,1,0,1\n", "p.csv:2: min: -1 is not"},
		{header + "map,0,runtime_s,1,1,1,NaN,0,1\n", "p.csv:2: mean: NaN is not"},
		{header + "map,0,runtime_s,1,1,+Inf,1,0,1\n", "p.csv:2: max: +Inf is not"},
		{header + "map,0,runtime_s,1,1,1e999,1,0,1\n", "p.csv:2: max: \"1e999\" is not"},
		{header + "map,0,runtime_s,2,1,3,4,0,8\n", "p.csv:2: mean 4 is not between"},
		{header + "map,0,runtime_s,2,1,3,2,9,4\n", "p.csv:2: sd 9 is more than"},
		{header + "map,0,runtime_s,1,1,3,2,1,2\n", "p.csv:2: sd 1 is not 0, but there is only one value"},
		{header + "map,0,runtime_s,2,1,,2,0,4\n", "p.csv:2: only one of min and max"},
		{header + "map,0,runtime_s,2,1,3,2,1,5\n", "p.csv:2: sum 5 is not count × mean, which is 4"},
		{header + "map,0,runtime_s,2,1,3,2,1,NaN\n", "p.csv:2: sum NaN is not"},
		{header + "\"map,0\n", "p.csv:2: extraneous or missing"},
		{header + strings.Repeat("x", 40<<20), "p.csv: longer than 32 MiB"},
	} {
		_, err := profile.ReadCSV(strings.NewReader(c.text), "p.csv")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || corral.KindOf(err) != corral.Invalid {
			t.Errorf("ReadCSV(%.80q) = %v, want %s", c.text, err, c.want)
		}
	}
}

// Reading a written profile yields the same profile, and writing that profile yields the same text.
func TestFilesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, err := profile.Of(drawSamples(t))
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, p)
	})
}

// Squares of the smallest values are no longer normal numbers: the sd of such values has few correct digits, but is
// accepted nevertheless.
func TestLeastValuesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, v := range [][]float64{
		{3.641767935156351e-158, 1.5975644379355736e-160},
		{2.1e-162, 1e-163, 7e-163},
		{math.SmallestNonzeroFloat64, 0, 3e-323},
	} {
		checkRoundTrip(t, of(t, runtimes("r", "map", 0, v...)))
	}
}

func checkRoundTrip(t rapid.TB, p *profile.Profile) {
	var table, again, whole, wholeAgain bytes.Buffer
	fromTable, err := writeAndRead(p, &table, (*profile.Profile).WriteCSV, profile.ReadCSV)
	if err != nil {
		t.Fatalf("CSV: %v\n%s", err, &table)
	}
	if err := fromTable.WriteCSV(&again); err != nil || again.String() != table.String() {
		t.Errorf("CSV: %v\n%s", err, cmp.Diff(table.String(), again.String()))
	}
	same, err := writeAndRead(p, &whole, (*profile.Profile).WriteJSON, profile.ReadJSON)
	if err != nil {
		t.Fatalf("JSON: %v", err)
	}
	if err := same.WriteJSON(&wholeAgain); err != nil || wholeAgain.String() != whole.String() {
		t.Errorf("JSON: %v\n%s", err, cmp.Diff(whole.String(), wholeAgain.String()))
	}
	if diff := cmp.Diff(view(p), view(same)); diff != "" {
		t.Errorf("JSON: %s", diff)
	}
}

func writeAndRead(p *profile.Profile, text *bytes.Buffer, write func(*profile.Profile, io.Writer) error,
	read func(io.Reader, string) (*profile.Profile, error),
) (*profile.Profile, error) {
	if err := write(p, text); err != nil {
		return nil, err
	}
	return read(bytes.NewReader(text.Bytes()), "p")
}

func FuzzReadCSV(f *testing.F) {
	for _, name := range profile.Library() {
		p, _ := profile.FromLibrary(name)
		var text bytes.Buffer
		if err := p.WriteCSV(&text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Add([]byte(header + "map,0,runtime_s,2,1,3,2,1,4\nmap,3,runtime_s,9,1,3,2,1,18\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := profile.ReadCSV(bytes.NewReader(text), "p.csv")
		if err != nil {
			if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "p.csv") {
				t.Errorf("error without kind or place: %v", err)
			}
			return
		}
		checkReadable(t, p)
	})
}

func FuzzReadJSON(f *testing.F) {
	var text bytes.Buffer
	p := of(f, runtimes("a", "map", 0, 1, 2, 3), runtimes("b", "map", 1, 0), runtimes("b", "add", -1, 9))
	if err := p.WriteJSON(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Add([]byte(`{"version":1,"runs":[],"classes":[
		{"transformation":"m","level":0,"stats":{"runtime_s":{"count":1}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := profile.ReadJSON(bytes.NewReader(text), "p.json")
		if err != nil {
			if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "p.json: ") {
				t.Errorf("error without kind or place: %v", err)
			}
			return
		}
		checkReadable(t, p)
	})
}

// checkReadable uses a profile that was read, and checks that none of its results is out of range.
func checkReadable(t *testing.T, p *profile.Profile) {
	var table, whole bytes.Buffer
	if _, err := writeAndRead(p, &whole, (*profile.Profile).WriteJSON, profile.ReadJSON); err != nil {
		t.Fatalf("%v\n%s", err, &whole)
	}
	if _, err := writeAndRead(p, &table, (*profile.Profile).WriteCSV, profile.ReadCSV); err != nil {
		t.Fatalf("%v\n%s", err, &table)
	}
	p.Findings()
	speeds := p.Speeds()
	e := profile.NewEstimator(p, speeds)
	for _, c := range p.Classes() {
		x, ok := e.Estimate(profile.Subject{Transformation: c.Transformation, Level: c.Level}, 1<<40)
		least := min(x.Point, x.Mean, x.SD, x.Quantile(0), x.Draw(0.5), time.Duration(x.MemoryBytes))
		if ok && (least < 0 || x.Quantile(1) < x.Quantile(0) || x.CPUs < 1) {
			t.Errorf("%s: %+v", c.Transformation, x)
		}
	}
}

func TestReadJSONRefuses(t *testing.T) {
	t.Parallel()
	class := func(more string) string {
		return `{"version":1,"runs":["a"],"classes":[{"transformation":"m","level":0,
			"stats":{"runtime_s":{"count":1,"mean":1,"min":1,"max":1,"ranged":true}}` + more + `}]}`
	}
	for _, c := range []struct{ text, want string }{
		{`{`, "unexpected EOF"},
		{`{"version":2}`, "must be 1, not 2"},
		{`{"version":1,"colour":3}`, "unknown field"},
		{class("") + "x", "text after the end"},
		{class(`},{"transformation":"m","level":-1,"stats":{"cpu_s":{"count":1}}`), "has the same tasks"},
		{class(`},{"transformation":"n","level":0,"stats":{}`), "no statistics"},
		{class(`},{"transformation":"n","level":0,"stats":{"cpu_s":{"count":1,"mean":-1}}`), "mean: -1"},
		{class(`,"samples":[{"transformation":"m","level":1,"run":"a","id":"1","values":{}}]`), "belongs to another class"},
		{class(`,"samples":[{"transformation":"m","level":0,"run":"z","id":"1","values":{}}]`), "belongs to another class"},
		{class(`,"samples":[{"transformation":"m","level":0,"run":"a","id":"1","values":{"speed":1}}]`), "speed"},
		{class(`,"samples":[{"transformation":"m","level":0,"run":"a","id":"1","values":{"cpu_s":-1}}]`), "cpu_s: -1"},
	} {
		_, err := profile.ReadJSON(strings.NewReader(c.text), "p.json")
		if err == nil || !strings.Contains(err.Error(), c.want) || corral.KindOf(err) != corral.Invalid {
			t.Errorf("ReadJSON(%s) = %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := profile.ReadJSON(strings.NewReader(class("")), "p.json"); err != nil {
		t.Error(err)
	}
}
