//go:build sites

package condor

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral/condor/classad"
)

// stranger returns the tools of a user who has only a token's text.
func stranger(t *testing.T, p *Pool, secret string) Tools {
	t.Helper()
	tools, err := Attach(RemoteConfig{
		Dir: filepath.Join(folder(t), "remote"), Release: release, Collector: p.config.Address.String(), RunAs: programs.Unprivileged(),
	}, secret)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func mint(t *testing.T, p *Pool, lifetime time.Duration) Token {
	t.Helper()
	token, err := p.Mint(1, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// advertise sends an ad to the collector like a daemon.
func advertise(t *testing.T, tools Tools, command string, ad classad.Ad) error {
	t.Helper()
	var text bytes.Buffer
	for name, value := range ad {
		fmt.Fprintf(&text, "%s = %s\n", name, classad.FormatOld(value))
	}
	_, err := tools.Run(soon(t), text.Bytes(), "condor_advertise", "-tcp", command)
	return err
}

// startdAd is the ad of a slot that does not exist, which matches no job of other tests.
func startdAd(name string) classad.Ad {
	return classad.Ad{"MyType": "Machine", "Name": name, "Machine": name, "State": "Unclaimed", "Activity": "Idle",
		"MyAddress": "<127.0.0.1:9>", "StartdIpAddr": "<127.0.0.1:9>", "Cpus": 1, "Memory": 100, "Requirements": false}
}

// names returns the names of the ads of a kind.
func names(t *testing.T, tools Tools, kind string) []string {
	t.Helper()
	ads, err := tools.Query(soon(t), "condor_status", []string{"-any", "-constraint", "MyType == " + classad.FormatNew(kind)}, []string{"Name"})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, ad := range ads {
		name, _ := ad.Text("Name")
		found = append(found, name)
	}
	return found
}

func TestGlideinTokenOnlyAdvertises(t *testing.T) {
	t.Parallel()
	p := common(t)
	thief := stranger(t, p, mint(t, p, time.Hour).Secret())

	if err := advertise(t, thief, "UPDATE_STARTD_AD", startdAd("slot1@glidein-1")); err != nil {
		t.Errorf("advertising a startd: %v", err)
	}
	if got := names(t, thief, "Machine"); !slices.Contains(got, "slot1@glidein-1") {
		t.Errorf("startds = %v, want that of the glidein", got)
	}
	schedd := classad.Ad{"MyType": "Scheduler", "Name": "thief", "Machine": "thief", "MyAddress": "<127.0.0.1:9>", "ScheddIpAddr": "<127.0.0.1:9>"}
	if err := advertise(t, thief, "UPDATE_SCHEDD_AD", schedd); err == nil {
		t.Error("a glidein's token advertises a schedd")
	}
	if got := names(t, p.Tools(), "Scheduler"); slices.Contains(got, "thief") || len(got) != 1 {
		t.Errorf("schedds = %v, want only the pool's", got)
	}
	isRefused(t, "submitting", func() error {
		_, err := thief.Run(soon(t), []byte("executable = /bin/true\nqueue\n"), "condor_submit", "-name", names(t, thief, "Scheduler")[0], "-")
		return err
	})
	isRefused(t, "reading the queue", func() error {
		_, err := thief.Run(soon(t), nil, "condor_q", "-name", names(t, thief, "Scheduler")[0], "-all", "-long")
		return err
	})
	for _, right := range []string{"WRITE", "DAEMON", "ADMINISTRATOR", "NEGOTIATOR", "ADVERTISE_SCHEDD"} {
		isRefused(t, right, func() error { return ping(t, thief, right) })
	}
	for _, daemon := range [][]string{{"COLLECTOR"}, {"SCHEDD", "-name", names(t, thief, "Scheduler")[0]}, {"NEGOTIATOR", "-name", names(t, thief, "Negotiator")[0]}} {
		_, err := thief.Run(soon(t), nil, "condor_token_fetch", append([]string{"-type"}, daemon...)...)
		if err == nil || !strings.Contains(err.Error(), "does not have access to configured key") {
			t.Errorf("fetching another token from the %s: %v, want that it has no key", daemon[0], err)
		}
	}
	for _, right := range []string{"READ", "ADVERTISE_STARTD", "ADVERTISE_MASTER"} {
		if err := ping(t, thief, right); err != nil {
			t.Errorf("right %s: %v", right, err)
		}
	}
}

// TestReadShowsNoClaims reads, as a thief, all that the collector has about workers. The id of a claim permits its
// bearer to give the worker jobs; the collector keeps it for the negotiator.
func TestReadShowsNoClaims(t *testing.T) {
	t.Parallel()
	p := common(t)
	thief := stranger(t, p, mint(t, p, time.Hour).Secret())
	eventually(t, "a worker in the pool", func() (bool, error) { return len(names(t, thief, "Machine")) > 0, nil })
	for _, args := range [][]string{{"-any", "-long"}, {"-startd", "-long"}, {"-any", "-json"}} {
		out, err := thief.Run(soon(t), nil, "condor_status", args...)
		if err != nil {
			t.Fatal(err)
		}
		if found := claim.Find(out); found != nil {
			t.Errorf("condor_status %v shows a claim: %s…", args, found)
		}
	}
	isRefused(t, "NEGOTIATOR", func() error { return ping(t, thief, "NEGOTIATOR") }) // which receives them
}

// claim matches the id of a claim: its worker's address, that worker's start time, a number and a secret. In a
// PublicClaimId three dots replace the secret.
var claim = regexp.MustCompile(`<[0-9.]+:[0-9]+[^>]*>#[0-9]+#[0-9]+#[^.]`)

func ping(t *testing.T, tools Tools, right string) error {
	t.Helper()
	_, err := tools.Run(soon(t), nil, "condor_ping", "-type", "collector", right)
	return err
}

func isRefused(t *testing.T, what string, try func() error) {
	t.Helper()
	var refused *Refused
	if err := try(); !errors.As(err, &refused) {
		t.Errorf("%s with a glidein's token: %v, want a refusal", what, err)
	}
}

func TestExpiredTokenIsRefused(t *testing.T) {
	t.Parallel()
	p := common(t)
	token := mint(t, p, time.Second)
	late := stranger(t, p, token.Secret())
	eventually(t, "expiry", func() (bool, error) { return time.Now().After(token.Expires.Add(time.Second)), nil })
	if err := advertise(t, late, "UPDATE_STARTD_AD", startdAd("slot1@late@glidein-1")); err == nil {
		t.Error("an expired token advertises a startd")
	}
	if err := ping(t, late, "ADVERTISE_STARTD"); err == nil {
		t.Error("an expired token is known")
	}
}

func TestRevokedTokenIsRefused(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	good, bad := mint(t, p, time.Hour), mint(t, p, time.Hour)
	thief, friend := stranger(t, p, bad.Secret()), stranger(t, p, good.Secret())
	if err := ping(t, thief, "ADVERTISE_STARTD"); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := p.Revoke(soon(t), time.Now(), bad); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, thief, "ADVERTISE_STARTD"); err == nil {
		t.Error("a revoked token is known")
	}
	if err := ping(t, friend, "ADVERTISE_STARTD"); err != nil {
		t.Errorf("another token: %v", err)
	}
	if err := errors.Join(p.Stop(soon(t)), p.Start(soon(t))); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, thief, "ADVERTISE_STARTD"); err == nil {
		t.Error("a token is no longer revoked after a restart")
	}
	if err := ping(t, friend, "ADVERTISE_STARTD"); err != nil {
		t.Errorf("another token after a restart: %v", err)
	}
}

func TestTokenClaims(t *testing.T) {
	t.Parallel()
	p := common(t)
	from := time.Now().Add(-time.Second)
	token, err := p.Mint(7, 10*time.Minute)
	if err != nil || token.ID == "" || token.Identity != GlideinIdentity(7) || !slices.Equal(token.Rights, glideinRights) {
		t.Errorf("token = %+v, %v", token, err)
	}
	if err := advertise(t, stranger(t, p, token.Secret()), "UPDATE_STARTD_AD", startdAd("slot1@numbered@glidein-7")); err != nil {
		t.Errorf("advertising a startd with it: %v", err)
	}
	if token.Expires.Before(from.Add(10*time.Minute)) || token.Expires.After(time.Now().Add(10*time.Minute+time.Second)) {
		t.Errorf("token expires at %v, want in ten minutes", token.Expires)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", token)
	for _, printed := range []string{log.String(), fmt.Sprint(token), fmt.Sprintf("%+v %#v", token, token)} {
		if strings.Contains(printed, token.Secret()[:20]) {
			t.Errorf("the secret is printed: %s", printed)
		}
	}
	if _, err := p.Mint(1, 0); err == nil {
		t.Error("a token for no time was minted")
	}
}

// TestAttachSubmits uses the pool from another place as its owner, with a token that may write.
func TestAttachSubmits(t *testing.T) {
	t.Parallel()
	p := common(t)
	out, err := p.Tools().Run(soon(t), nil, "condor_token_create", "-identity", p.owner.Name+"@"+domain,
		"-authz", "READ", "-authz", "WRITE", "-lifetime", "3600")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := Attach(RemoteConfig{
		Dir: filepath.Join(folder(t), "remote"), Release: release, Collector: p.config.Address.String(), RunAs: programs.Unprivileged(),
		Schedd: names(t, p.Tools(), "Scheduler")[0],
	}, strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := tools.Submit(soon(t), Submit{Executable: "/bin/true", Requirements: "false", Procs: []Proc{{}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := idle(t, p, cluster); got != 1 {
		t.Errorf("%d jobs wait, want 1", got)
	}
}

func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	good := RemoteConfig{Dir: filepath.Join(folder(t), "remote"), Release: release, Collector: "192.0.2.1:9618", RunAs: programs.Unprivileged()}
	for name, change := range map[string]func(c *RemoteConfig){
		"no pool":     func(c *RemoteConfig) { c.Collector = "" },
		"line break":  func(c *RemoteConfig) { c.Collector += "\nALLOW_WRITE = *" },
		"schedd":      func(c *RemoteConfig) { c.Schedd = "a b" },
		"relative":    func(c *RemoteConfig) { c.Dir = "remote" },
		"nobody like": func(c *RemoteConfig) { c.RunAs = "no-such-user" },
	} {
		c := good
		change(&c)
		if _, err := Attach(c, "x"); err == nil {
			t.Errorf("%s: attached", name)
		}
	}
}
