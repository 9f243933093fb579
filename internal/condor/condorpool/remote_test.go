package condorpool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

func TestTokensThatMayGoToASite(t *testing.T) {
	for name, test := range map[string]struct {
		rights []string
		want   string
	}{
		"what workers need": {workerRights, ""},
		"less":              {workerRights[:1], ""},
		"more":              {append([]string{"WRITE", "DAEMON"}, workerRights...), "also allows WRITE, DAEMON"},
		"all":               {nil, "has all rights of its owner"},
	} {
		err := mayTravel(condor.Token{Rights: test.rights})
		switch {
		case test.want == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %v, want it forbidden: %s", name, err, test.want)
		}
	}
}

func TestNoScheddNamesWhatThereIs(t *testing.T) {
	var twelve []string
	for i := range 12 {
		twelve = append(twelve, fmt.Sprintf("s%02d", 11-i))
	}
	err := noSchedd(corral.Cluster{Name: "mine", Collector: "c:1"}, twelve)
	const want = "the collector c:1 lists 12 schedds, s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, …: "
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("noSchedd() = %v, want %s", err, want)
	}
}

func TestScheddAt(t *testing.T) {
	c := corral.Cluster{Collector: "192.0.2.1:9618"}
	for address, want := range map[string]string{
		"<192.0.2.1:9618?alias=pool>": "", // the schedd shares the collector's port
		"<192.0.2.1:40000?x=y>":       "192.0.2.1:40000",
		"nowhere":                     "",
	} {
		if got := scheddAt(c, classad.Ad{"MyAddress": address}); got != want {
			t.Errorf("scheddAt(%s) = %q, want %q", address, got, want)
		}
	}
}
