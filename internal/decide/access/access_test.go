package access

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

var (
	ann   = Caller{Name: "ann", Role: corral.RoleUser}
	root  = Caller{Name: "root", Role: corral.RoleAdministrator}
	noon  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	ofAnn = Object{"ann"}
	ofBob = Object{"bob"}
)

func with(c Caller, change func(*Caller)) *Caller {
	change(&c)
	return &c
}

func TestAllows(t *testing.T) {
	t.Parallel()
	scoped := func(scopes ...string) *Caller { return with(ann, func(c *Caller) { c.Scopes = scopes }) }
	read := func(noun string) Operation { return Operation{noun, true} }
	write := func(noun string) Operation { return Operation{Resource: noun} }
	for _, tt := range []struct {
		name string
		who  *Caller
		what Operation
		of   Object
		want Verdict
	}{
		{"health, by nobody", nil, read("healthz"), Object{}, Allowed},
		{"a list, by nobody", nil, read("sites"), Object{}, Unauthenticated},
		{"what nobody has heard of, by nobody", nil, read("secrets"), Object{}, Unauthenticated},
		{"a list", &ann, read("sites"), Object{}, Allowed},
		{"a new one", &ann, write("sites"), Object{}, Allowed},
		{"one's own", &ann, write("sites"), ofAnn, Allowed},
		{"another's", &ann, read("sites"), ofBob, Hidden},
		{"another's, by an administrator", &root, write("sites"), ofBob, Allowed},
		{"the catalog", &ann, read("packages"), ofBob, Allowed},
		{"a new package", &ann, write("packages"), Object{}, Forbidden},
		{"a new package, granted", with(ann, func(c *Caller) { c.Grants = []corral.Grant{corral.GrantPackages} }), write("packages"), Object{}, Allowed},
		{"a new package, with another grant", with(ann, func(c *Caller) { c.Grants = []corral.Grant{corral.GrantLocal} }), write("packages"), Object{}, Forbidden},
		{"a new package, by an administrator", &root, write("packages"), Object{}, Allowed},
		{"metrics", &ann, read("metrics"), Object{}, Forbidden},
		{"metrics, by an administrator", &root, read("metrics"), Object{}, Allowed},
		{"in scope", scoped("runs"), write("runs"), ofAnn, Allowed},
		{"in scope, another's", scoped("runs"), write("runs"), ofBob, Hidden},
		{"out of scope", scoped("runs"), read("sites"), ofAnn, Forbidden},
		{"read, in scope", scoped("runs:read"), read("runs"), ofAnn, Allowed},
		{"write, beyond scope", scoped("runs:read"), write("runs"), ofAnn, Forbidden},
		{"read, with all reading", scoped("read"), read("sites"), ofAnn, Allowed},
		{"write, with all reading", scoped("read"), write("sites"), ofAnn, Forbidden},
		{"one of two scopes", scoped("read", "runs"), write("runs"), ofAnn, Allowed},
		{"an administrator's scopes", with(root, func(c *Caller) { c.Scopes = []string{"read"} }), write("sites"), ofBob, Forbidden},
	} {
		if got := Allows(tt.who, tt.what, tt.of); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Resources that are not in a table are closed to all but administrators, and an unknown role grants nothing.
func TestUnknownIsClosed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		what := Operation{rapid.StringMatching(`[a-z]{3,9}`).Draw(t, "noun"), rapid.Bool().Draw(t, "reads")}
		who := &Caller{Name: rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "name"), Role: corral.Role(rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "role"))}
		if _, known := kinds[what.Resource]; known {
			return
		}
		if got := Allows(who, what, Object{}); got != Forbidden {
			t.Errorf("%+v may do %+v: %s", *who, what, got)
		}
		if got := Allows(nil, what, Object{}); got != Unauthenticated {
			t.Errorf("nobody may do %+v: %s", what, got)
		}
	})
}

func TestOperationOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, path string
		want         Operation
	}{
		{"GET", "/v1/sites", Operation{"sites", true}},
		{"HEAD", "/v1/sites/hpc/history", Operation{"sites", true}},
		{"POST", "/v1/sites", Operation{"sites", false}},
		{"DELETE", "/v1/runs/7", Operation{"runs", false}},
		{"POST", "/v1/runs/dry-run", Operation{"runs", true}},
		{"POST", "/v1/runs/7/output", Operation{"runs", true}},
		{"POST", "/v1/runs/7/cancel", Operation{"runs", false}},
		{"DELETE", "/v1/runs/7/output", Operation{"runs", false}},
		{"GET", "/metrics", Operation{"metrics", true}},
		{"GET", "/v1/events", Operation{"events", true}},
		{"GET", "/", Operation{"", true}},
		{"GET", "/v1", Operation{"v1", true}},
		{"GET", "//v1/sites", Operation{"sites", true}},
		{"GET", "/v1//sites", Operation{"", true}},
		{"GET", "/v2/healthz", Operation{"v2", true}},
	} {
		if got := OperationOf(tt.method, tt.path); got != tt.want {
			t.Errorf("%s %s: %+v, want %+v", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	good := corral.Token{ID: 7, Name: "laptop", Owner: "ann", Role: corral.RoleUser, State: corral.TokenValid, ExpiresAt: noon}
	who, err := Of(good, noon.Add(-time.Nanosecond))
	if err != nil || who.Name != "ann" || who.Token != 7 || !who.Until.Equal(noon) || who.IsAdministrator() {
		t.Errorf("%+v, %v", who, err)
	}
	if _, err := Of(good, noon); corral.KindOf(err) != corral.Unauthenticated || !strings.Contains(err.Error(), "expired") {
		t.Errorf("at its end: %v", err)
	}
	good.State = corral.TokenRevoked
	if _, err := Of(good, noon.Add(-time.Hour)); corral.KindOf(err) != corral.Unauthenticated || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("revoked: %v", err)
	}
	if _, err := Of(corral.Token{State: corral.TokenValid}, noon); err != nil {
		t.Errorf("one that does not expire: %v", err)
	}
}

// A token cannot create one that may do more than itself.
func TestCheckMint(t *testing.T) {
	t.Parallel()
	until := with(ann, func(c *Caller) { c.Until = noon })
	few := with(ann, func(c *Caller) { c.Scopes = []string{"runs", "tokens", "sites:read"} })
	granted := with(ann, func(c *Caller) { c.Grants = []corral.Grant{corral.GrantLocal} })
	mine := corral.Token{Owner: "ann", Role: corral.RoleUser}
	as := func(change func(*corral.Token)) corral.Token {
		k := mine
		change(&k)
		return k
	}
	scopes := func(s ...string) corral.Token { return as(func(k *corral.Token) { k.Scopes = s }) }
	for _, tt := range []struct {
		name string
		who  *Caller
		make corral.Token
		at   string // field that is refused
	}{
		{"one's own", &ann, mine, ""},
		{"another's", &ann, as(func(k *corral.Token) { k.Owner = "bob" }), "owner"},
		{"another's, by an administrator", &root, as(func(k *corral.Token) { k.Owner = "bob" }), ""},
		{"an administrator's", &ann, as(func(k *corral.Token) { k.Role = corral.RoleAdministrator }), "role"},
		{"an administrator's, by one", &root, as(func(k *corral.Token) { k.Role = corral.RoleAdministrator }), ""},
		{"a shorter one", until, as(func(k *corral.Token) { k.ExpiresAt = noon }), ""},
		{"a longer one", until, as(func(k *corral.Token) { k.ExpiresAt = noon.Add(1) }), "expires_in_s"},
		{"one without an end", until, mine, "expires_in_s"},
		{"an ungranted one", granted, as(func(k *corral.Token) { k.Grants = []corral.Grant{corral.GrantHostPaths} }), "grants"},
		{"a granted one", granted, as(func(k *corral.Token) { k.Grants = []corral.Grant{corral.GrantLocal} }), ""},
		{"no scopes from all", &ann, mine, ""},
		{"a scope from all", &ann, scopes("read"), ""},
		{"no scopes from some", few, mine, "scopes"},
		{"one of some", few, scopes("runs"), ""},
		{"part of one", few, scopes("runs:read"), ""},
		{"the same part", few, scopes("sites:read"), ""},
		{"all of a part", few, scopes("sites"), "scopes"},
		{"another", few, scopes("plans:read"), "scopes"},
		{"all reading", few, scopes("read"), "scopes"},
	} {
		err := CheckMint(*tt.who, tt.make)
		place := ""
		if e, ok := err.(*corral.Error); ok {
			place = e.Place
		}
		if (err == nil) != (tt.at == "") || place != tt.at || err != nil && corral.KindOf(err) != corral.Forbidden {
			t.Errorf("%s: %v, want it refused at %q", tt.name, err, tt.at)
		}
	}
}

// A token created with another one allows only operations that the other one allows, whatever the scopes.
func TestMintedTokensReachNoFurther(t *testing.T) {
	t.Parallel()
	scope := rapid.Custom(func(t *rapid.T) string {
		noun := rapid.SampledFrom(append(Nouns(), "")).Draw(t, "noun")
		if noun == "" {
			return ReadScope
		}
		return noun + rapid.SampledFrom([]string{"", reading}).Draw(t, "only")
	})
	rapid.Check(t, func(t *rapid.T) {
		who := ann
		who.Scopes = rapid.SliceOfN(scope, 0, 4).Draw(t, "own")
		k := corral.Token{Owner: "ann", Role: corral.RoleUser, Scopes: rapid.SliceOfN(scope, 0, 4).Draw(t, "made"), State: corral.TokenValid}
		if CheckMint(who, k) != nil {
			return
		}
		made, err := Of(k, noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, noun := range Nouns() {
			for _, reads := range []bool{true, false} {
				what := Operation{noun, reads}
				if Allows(&made, what, ofAnn) == Allowed && Allows(&who, what, ofAnn) != Allowed {
					t.Fatalf("%v made %v, which may do %+v", who.Scopes, made.Scopes, what)
				}
			}
		}
	})
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"read": true, "runs": true, "runs:read": true, "packages": true, "ssh-key": true,
		"": false, "run": false, "runs:write": false, "read:read": false, "healthz": false, "metrics": false, ":read": false,
	} {
		if IsScope(s) != want {
			t.Errorf("%q is a scope: %v", s, !want)
		}
	}
	if !slices.IsSorted(Nouns()) || slices.Contains(Nouns(), "healthz") {
		t.Errorf("nouns %q", Nouns())
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"ann": true, "a": true, "ann-b_2": true, "": false, "Ann": false, "2ann": false, "local": false, "corrald": false,
		"..": false, "a/b": false, "-a": false, "a b": false, "a\n": false, strings.Repeat("a", 33): false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	granted := func(g corral.Grant) Caller { return *with(ann, func(c *Caller) { c.Grants = []corral.Grant{g} }) }
	for _, tt := range []struct {
		name string
		err  error
		want corral.Kind // "": accepted
	}{
		{"a path", CheckPaths(ann, Place{"dir", ""}, Place{"source_dir", "/etc"}), corral.Forbidden},
		{"no path", CheckPaths(ann, Place{"dir", ""}), ""},
		{"a path, granted", CheckPaths(granted(corral.GrantHostPaths), Place{"dir", "/x"}), ""},
		{"a path, with another grant", CheckPaths(granted(corral.GrantLocal), Place{"dir", "/x"}), corral.Forbidden},
		{"a path, by an administrator", CheckPaths(root, Place{"dir", "/x"}), ""},
		{"this machine", CheckContact(ann, "contact", "local", ""), corral.Forbidden},
		{"this machine, granted", CheckContact(granted(corral.GrantLocal), "contact", "local", ""), ""},
		{"another machine", CheckContact(ann, "contact", "ssh", "ann"), ""},
		{"another machine, as nobody", CheckContact(ann, "contact", "ssh", ""), corral.Invalid},
		{"another machine, as nobody, by an administrator", CheckContact(root, "contact", "ssh", ""), corral.Invalid},
		{"another machine, as oneself", CheckContact(Local, "contact", "ssh", ""), ""},
		{"a release in a folder", CheckRelease(ann, "htcondor", "/opt/condor"), corral.Forbidden},
		{"a release by name", CheckRelease(ann, "htcondor", "condor-25"), ""},
		{"an address", CheckPool(ann, "10.0.0.1", ""), corral.Forbidden},
		{"a pool of others", CheckPool(ann, "", "cm.example:9618"), corral.Forbidden},
		{"a pool of others, granted", CheckPool(granted(corral.GrantLocal), "", "cm.example:9618"), ""},
		{"a pool of one's own", CheckPool(ann, "", ""), ""},
		{"a source by http", CheckSource(ann, "source", "https://x/y"), ""},
		{"a source here", CheckSource(ann, "source", "/srv/x"), corral.Forbidden},
		{"a source here, by URL", CheckSource(ann, "source", "file:///srv/x"), corral.Forbidden},
		{"a source by sftp", CheckSource(granted(corral.GrantPackages), "source", "sftp://x/y"), corral.Forbidden},
		{"a source by sftp, by an administrator", CheckSource(root, "source", "sftp://x/y"), corral.Forbidden},
		{"a source by sftp, by corrald's own user", CheckSource(Local, "source", "sftp://x/y"), ""},
	} {
		if got := corral.KindOf(tt.err); got != tt.want {
			t.Errorf("%s: %v, want kind %q", tt.name, tt.err, tt.want)
		}
	}
}

// Owners may use their own objects in a request, and not those of others, even if they see them.
func TestMayUse(t *testing.T) {
	t.Parallel()
	if err := MayUse("ann", "site", "hpc", "ann"); err != nil {
		t.Errorf("one's own: %v", err)
	}
	err := MayUse("ann", "site", "hpc", "bob")
	if e, ok := errors.AsType[*corral.Error](err); !ok || e.Kind != corral.Forbidden || e.Place != "site" || !strings.Contains(err.Error(), "hpc belongs to bob") {
		t.Errorf("another's: %v", err)
	}
}

// During any span, the bucket admits at most the burst plus the refill in that span. A request that waits as long as it
// is told is admitted.
func TestBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: rapid.Float64Range(0.1, 100).Draw(t, "rate"), Burst: rapid.IntRange(1, 20).Draw(t, "burst")}
		var b Bucket
		now, in := noon, 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
			after, wait := b.Take(now, rate)
			if wait > 0 {
				if after != b {
					t.Fatal("a refused request costs something")
				}
				if _, again := b.Take(now.Add(wait), rate); again > 0 {
					t.Fatalf("after the wait of %v it has to wait %v", wait, again)
				}
				continue
			}
			b, in = after, in+1
		}
		if most := float64(rate.Burst) + now.Sub(noon).Seconds()*rate.PerSecond + 1e-3; float64(in) > most {
			t.Errorf("%d were let in, at most %g may be", in, most)
		}
	})
}

func TestBucketEnds(t *testing.T) {
	t.Parallel()
	var b Bucket
	for range 1000 {
		var wait time.Duration
		if b, wait = b.Take(noon, Rate{Burst: 1}); wait != 0 {
			t.Fatal("without a rate somebody waits")
		}
	}
	rate := Rate{PerSecond: 1, Burst: 1}
	b, _ = Bucket{}.Take(noon, rate)
	if _, wait := b.Take(noon, rate); wait != time.Second {
		t.Errorf("the second one waits %v", wait)
	}
	if _, wait := b.Take(noon.Add(-time.Hour), rate); wait != time.Second {
		t.Errorf("with a clock that was set back it waits %v", wait)
	}
	if b.Full(noon, rate) || !b.Full(noon.Add(time.Second), rate) {
		t.Error("it is full when it is not, or not when it is")
	}
}

// From returns the caller that With has added, and false for a context without one.
func TestContext(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(With(t.Context(), ann), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := From(r.Context()); !ok || who.Name != "ann" {
		t.Errorf("%+v, %v", who, ok)
	}
	if who, ok := From(t.Context()); ok {
		t.Errorf("%+v is there", who)
	}
}
