package survey

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
)

// Only text between two marks counts, and only if its end arrived.
func TestSections(t *testing.T) {
	t.Parallel()
	said := parseSections([]byte("Welcome!\nM begin cpus\n 4\nM end cpus 0 \nM begin slow\nM end slow 124 \n"+
		"M begin bad\nM end bad 2 no such thing\nM begin silent\nM end silent 3 \nM begin cut\nhalf of"), "M")
	for name, want := range map[string][2]string{
		"cpus": {"4", ""}, "slow": {"", "no answer within 20 s"}, "bad": {"", "no such thing"},
		"silent": {"", "exit status 3"}, "cut": {"", "no answer"}, "never": {"", "no answer"},
	} {
		out, err := said.Of(name)
		if out != want[0] || (err == nil) != (want[1] == "") || err != nil && err.Error() != want[1] {
			t.Errorf("Of(%s) = %q, %v, want %q, %q", name, out, err, want[0], want[1])
		}
	}
}

// The free space is the minimum of the space on the disk and the space within the quota.
func TestSpace(t *testing.T) {
	t.Parallel()
	const df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a 9000000 1 4194304 1% /home"
	for name, tt := range map[string]struct {
		said        Sections
		free, quota int64
		notes       []string
	}{
		"no answer": {Sections{}, -1, 0, []string{"the free space is not known: no answer"}},
		"no quota":  {Sections{"space": {out: df}, "quota": {exit: 127}}, 4096, 0, nil},
		"quota":     {Sections{"space": {out: df}, "quota": {out: "/dev/a 1024 0 2048 0 1 0 0 0"}}, 1, 1, nil},
		"used up": {Sections{"space": {out: df}, "quota": {out: "/dev/a 3000* 0 2048 0 1 0 0 0", exit: 1}}, 0, 0,
			[]string{"the quota on /dev/a is used up"}},
		"junk": {Sections{"space": {out: df}, "quota": {out: "what?"}}, 4096, 0,
			[]string{`the quota is not known: quota printed "what?"`}},
	} {
		var facts corral.SiteFacts
		surveySpace(tt.said, &facts)
		if facts.FreeMiB != tt.free || facts.QuotaMiB != tt.quota || !slices.Equal(facts.Notes, tt.notes) {
			t.Errorf("%s: %d MiB free, quota %d, notes %q; want %d, %d, %q",
				name, facts.FreeMiB, facts.QuotaMiB, facts.Notes, tt.free, tt.quota, tt.notes)
		}
	}
}
