//go:build sites

package condor

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// alone starts a glidein with its own token that updates its ads only every few minutes, so that changes to its ads
// last for the duration of a test. It returns its slot's ad.
func alone(t *testing.T, p *Pool, name string, number int64) (secret string, slot classad.Ad) {
	t.Helper()
	token, err := p.Mint(number, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := glidein(t, p, name)
	c.Identity, c.Times.Update = token.Identity, time.Minute
	start(t, p, c, token.Secret())
	eventually(t, name+" in the pool", func() (bool, error) {
		slots := machine(t, p, name)
		if len(slots) == 1 {
			slot = slots[0]
		}
		return len(slots) == 1, nil
	})
	return token.Secret(), slot
}

// TestGlideinTokenTouchesNoOtherAds checks that a thief with one glidein's token cannot withdraw or overwrite another's
// ads.
func TestGlideinTokenTouchesNoOtherAds(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	secret, _ := alone(t, p, "robbed", 1)
	_, slot := alone(t, p, "victim", 2)
	eventually(t, "the masters' ads", func() (bool, error) { return len(names(t, p.Tools(), "DaemonMaster")) == 3, nil })
	eventually(t, "the victim's own ad", func() (bool, error) {
		return senders(t, p, "StartD", "victim@glidein-2") != "", nil
	})
	thief := stranger(t, p, secret)
	name, _ := slot.Text("Name")
	address, _ := slot.Text("MyAddress")
	forged := func(of any) classad.Ad {
		ad := startdAd("x")
		ad["Name"], ad["MyAddress"], ad["StartdIpAddr"] = of, address, address
		return ad
	}
	// When the collector decides whether to accept an ad there is a TARGET, and when it files the ad there is none.
	twofold := classad.Expr(fmt.Sprintf(`ifThenElse(isUndefined(TARGET.COLLECTOR_REQUIREMENTS), %s, "x@glidein-1")`, classad.FormatNew(name)))
	nameless := forged(name)
	delete(nameless, "Name")
	nameless["Machine"] = name
	for i, attack := range []struct {
		what, command string
		ad            classad.Ad
	}{
		{"takes back all slots", "INVALIDATE_STARTD_ADS", classad.Ad{"MyType": "Query", "TargetType": "Machine", "Requirements": true}},
		{"takes back all startds", "INVALIDATE_STARTD_ADS", classad.Ad{"MyType": "Query", "TargetType": "StartD", "Requirements": true}},
		{"takes back all masters", "INVALIDATE_MASTER_ADS", classad.Ad{"MyType": "Query", "TargetType": "DaemonMaster", "Requirements": true}},
		{"takes back one slot", "INVALIDATE_STARTD_ADS", classad.Ad{"MyType": "Query", "TargetType": "Machine", "Requirements": true, "Name": name, "MyAddress": address}},
		{"overwrites a slot", "UPDATE_STARTD_AD", forged(name)},
		{"overwrites a slot by an expression", "UPDATE_STARTD_AD", forged(classad.Expr("strcat(" + classad.FormatNew(name) + `, "")`))},
		{"overwrites a slot by a twofold name", "UPDATE_STARTD_AD", forged(twofold)},
		{"overwrites a slot without a name", "UPDATE_STARTD_AD", nameless},
		{"overwrites a master", "UPDATE_MASTER_AD", classad.Ad{"MyType": "DaemonMaster", "Name": "victim@glidein-2", "Machine": "x", "MyAddress": address}},
	} {
		if err := advertise(t, thief, attack.command, attack.ad); err != nil {
			t.Logf("%s: %v", attack.what, err)
		}
		// All earlier messages have been processed when this one arrives.
		last := fmt.Sprintf("slot%d@glidein-1", 100+i)
		if err := advertise(t, thief, "UPDATE_STARTD_AD", startdAd(last)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an ad of its own", func() (bool, error) {
			return strings.Contains(strings.Join(names(t, thief, "Machine"), " "), last), nil
		})
		for kind, want := range map[string]string{"Machine": name, "StartD": "victim@glidein-2", "DaemonMaster": "victim@glidein-2"} {
			if who := senders(t, p, kind, want); who != GlideinIdentity(2) {
				t.Errorf("a thief %s: the %s %s is of %q", attack.what, kind, want, who)
			}
		}
	}
	job := sh(p, "whole", "exit 0")
	job.Requirements, job.Transfer.When = `regexp("@victim@", TARGET.Name)`, "YES"
	if err := submit(t, p, job); err != nil {
		t.Fatal(err)
	}
	log := eventlog.File{Path: filepath.Join(p.config.Dir, "jobs.log")}
	eventually(t, "end of the victim's job", func() (bool, error) {
		for event := range log.New(time.Now()) {
			if _, ok := event.Detail.(eventlog.Terminated); ok {
				return true, nil
			}
		}
		return false, nil
	})
}

// senders returns the senders of the ads of a kind with a name.
func senders(t *testing.T, p *Pool, kind, name string) string {
	t.Helper()
	ads, err := p.Tools().Query(soon(t), "condor_status", []string{"-any", "-constraint",
		"MyType == " + classad.FormatNew(kind) + " && Name == " + classad.FormatNew(name)}, []string{"AuthenticatedIdentity"})
	if err != nil {
		t.Fatal(err)
	}
	var who []string
	for _, ad := range ads {
		one, _ := ad.Text("AuthenticatedIdentity")
		who = append(who, one)
	}
	return strings.Join(who, ", ")
}

// TestThiefsAdsDoNotStay checks that an ad cannot ask to be kept for long, because ads cannot be withdrawn.
func TestThiefsAdsDoNotStay(t *testing.T) {
	t.Parallel()
	p := common(t)
	thief := stranger(t, p, mint(t, p, time.Hour).Secret())
	for i, test := range []struct {
		attribute string
		value     any
		taken     bool
	}{
		{"ClassAdLifetime", 900, true},
		{"ClassAdLifetime", 1000, false},
		{"ClassAdLifetime", classad.Expr("30 * 3600"), false},
		{"LastHeardFrom", 4000000000, false},
		{"LastHeardFrom", classad.Expr("ifThenElse(isUndefined(TARGET.COLLECTOR_REQUIREMENTS), 4000000000, undefined)"), false},
	} {
		name, last := fmt.Sprintf("slot%d@stays@glidein-1", i), fmt.Sprintf("slot%d@last@glidein-1", i)
		ad := startdAd(name)
		ad[test.attribute] = test.value
		for _, ad := range []classad.Ad{ad, startdAd(last)} {
			if err := advertise(t, thief, "UPDATE_STARTD_AD", ad); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "another ad", func() (bool, error) { return senders(t, p, "Machine", last) != "", nil })
		if taken := senders(t, p, "Machine", name) != ""; taken != test.taken {
			t.Errorf("an ad with %s = %v: taken %v, want %v", test.attribute, test.value, taken, test.taken)
		}
	}
}
