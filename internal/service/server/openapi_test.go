package server_test

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/resubmit"
)

// loadDoc reads and validates openapi.yaml once, because that takes longer than most tests.
var loadDoc = sync.OnceValues(func() (*openapi3.T, error) {
	b, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

func openAPIDoc(t testing.TB) *openapi3.T {
	t.Helper()
	return must(loadDoc())(t)
}

var makeRouter = sync.OnceValues(func() (routers.Router, error) {
	openapi3filter.RegisterBodyDecoder(api.LinesMediaType, openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder(api.EventsMediaType, openapi3filter.PlainBodyDecoder)
	doc, err := loadDoc()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

func openAPIRouter(t testing.TB) routers.Router {
	t.Helper()
	return must(makeRouter())(t)
}

// TestDocumentHasTheRoutes: the routes and their query parameters equal those of openapi.yaml.
func TestDocumentHasTheRoutes(t *testing.T) {
	t.Parallel()
	documented := map[string][]string{}
	for path, item := range openAPIDoc(t).Paths.Map() {
		for method, operation := range item.Operations() {
			var names []string
			for _, p := range operation.Parameters {
				if p.Value.In == openapi3.ParameterInQuery {
					names = append(names, p.Value.Name)
				}
			}
			slices.Sort(names)
			documented[method+" "+path] = names
		}
	}
	if diff := cmp.Diff(start(t).server.Routes(), documented); diff != "" {
		t.Errorf("routes and parameters (-server +openapi.yaml):\n%s", diff)
	}
}

// schemas :: name in openapi.yaml → the Go value whose type it describes.
var schemas = map[string]any{
	"NewSite": api.NewSite{}, "NewGlidein": api.NewGlidein{}, "NewCluster": api.NewCluster{}, "NewRun": api.NewRun{},
	"NewRunOptions": corral.RunOptions{}, "NewProbe": api.NewProbe{}, "Probe": api.Probe{}, "NetworkProbe": corral.NetworkProbe{},
	"Wait": corral.Wait{}, "WaitList": api.List[corral.Wait]{}, "WaitStats": corral.WaitStats{}, "WaitStatsList": api.List[corral.WaitStats]{}, "Quantile": corral.Quantile{},
	"NewLogin": api.NewLogin{}, "Login": api.Login{}, "LoginQuestion": api.LoginQuestion{}, "LoginPrompt": api.LoginPrompt{},
	"SetSite": api.SetSite{}, "Site": corral.Site{}, "Platform": corral.Platform{}, "SiteLimits": corral.SiteLimits{},
	"SiteFacts": corral.SiteFacts{}, "SiteQueue": corral.SiteQueue{}, "NodeType": corral.NodeType{}, "Maintenance": corral.Maintenance{}, "Allowance": corral.Allowance{}, "SiteTrouble": corral.SiteTrouble{}, "BadNode": corral.BadNode{}, "NewForgiveness": api.NewForgiveness{}, "Backlog": corral.Backlog{}, "QueuedJob": corral.QueuedJob{},
	"QueueNode": corral.QueueNode{}, "QueueReservation": corral.QueueReservation{}, "Orphan": api.Orphan{}, "OrphanList": api.List[api.Orphan]{}, "SettleOrphans": api.SettleOrphans{}, "SiteList": api.List[corral.Site]{},
	"Glidein": corral.Glidein{}, "Outlook": corral.Outlook{}, "Policy": resubmit.Policy{}, "GlideinList": api.List[corral.Glidein]{},
	"Job": corral.Job{}, "LostHost": corral.LostHost{},
	"Cluster": corral.Cluster{}, "ClusterList": api.List[corral.Cluster]{},
	"StartCluster": api.StartCluster{}, "Env": api.Env{}, "Variable": api.Variable{},
	"Worker": corral.Worker{}, "WorkerList": api.List[corral.Worker]{},
	"NewPackage": api.NewPackage{}, "Package": corral.Package{}, "PackageList": api.List[corral.Package]{},
	"NewMirror": api.NewMirror{}, "Mirror": corral.Mirror{}, "MirrorHealth": corral.MirrorHealth{}, "MirrorList": api.List[corral.Mirror]{},
	"Run": corral.Run{}, "RunOptions": corral.RunOptions{}, "RunTasks": corral.RunTasks{}, "RunReport": corral.RunReport{}, "LearnedMemory": corral.LearnedMemory{},
	"RunList": api.List[corral.Run]{}, "DryRun": api.DryRun{}, "DryRunTask": api.DryRunTask{}, "TaskChoice": api.TaskChoice{},
	"NewTask": api.NewTask{}, "TaskWait": api.Condition{}, "AddedTasks": api.AddedTasks{},
	"Output": api.Output{}, "OutputPiece": api.OutputPiece{}, "OutputPlace": api.OutputPlace{}, "OutputFile": api.OutputFile{},
	"NewPlan": api.NewPlan{}, "NextRun": api.NextRun{}, "NewGoal": plan.Goal{}, "NewAmount": cost.Amount{}, "Plan": corral.Plan{},
	"NewScale": api.NewScale{}, "Scale": corral.Scale{},
	"PlanDocument": plan.Plan{}, "Goal": plan.Goal{}, "PlanAsked": plan.Asked{}, "Amount": cost.Amount{}, "PlanPilot": plan.Pilot{},
	"PlanSummary": plan.Summary{}, "PlanApart": plan.Apart{},
	"PlanRival": plan.Rival{}, "PlanEntrant": plan.Entrant{}, "PlanStep": plan.Step{}, "PlanAssumed": plan.Assumed{}, "PlanQueue": plan.Queue{}, "PlanClosure": plan.Closure{},
	"PlanPresent": plan.There{}, "PlanTransfer": plan.SiteTransfer{}, "SiteTransfer": corral.SiteTransfer{}, "OverCPUs": corral.OverCPUs{}, "ChangedInput": corral.ChangedInput{}, "PlanRunning": plan.ThereRunning{}, "PlanWaits": plan.ShapeWaits{},
	"PlanPoint": plan.Point{}, "PlanConfidence": plan.Confidence{}, "PlanEstimates": plan.Estimates{}, "PlanErrors": plan.KindErrors{}, "PlanOdds": plan.Odds{}, "PlanFrequency": plan.Frequency{}, "PlanMarginal": plan.Marginal{}, "Placement": plan.Placement{},
	"Ensemble": record.Ensemble{}, "EnsembleList": api.List[record.Ensemble]{}, "EnsembleGoal": record.Goal{},
	"EnsemblePilots": record.Pilots{}, "EnsembleMember": record.Member{}, "NewEnsemble": api.NewEnsemble{}, "NewMember": api.NewMember{},
	"PlanList": api.List[corral.Plan]{}, "ProfileSource": api.ProfileSource{},
	"NewProfile": api.NewProfile{}, "Profile": corral.Profile{}, "ProfileList": api.List[corral.Profile]{}, "Revision": corral.Revision{},
	"PilotChange": corral.PilotChange{}, "RevisionList": api.List[corral.Revision]{},
	"DiskUse": api.DiskUse{}, "Task": api.TaskStatus{}, "TaskList": api.List[api.TaskStatus]{},
	"Entry": corral.Entry{}, "EntryList": api.List[corral.Entry]{},
	"TimelineEvent": corral.TimelineEvent{}, "TimelineEventList": api.List[corral.TimelineEvent]{},
	"Usage": api.Usage{}, "UsageRow": api.UsageRow{}, "Ledger": api.Ledger{}, "LedgerLine": cost.Line{},
	"NewToken": api.NewToken{}, "Token": corral.Token{}, "TokenList": api.List[corral.Token]{}, "SSHKey": api.SSHKey{},
	"Owner": corral.Owner{}, "OwnerList": api.List[corral.Owner]{}, "NewOwnerState": api.NewOwnerState{}, "Holdings": corral.Holdings{},
	"Outage": corral.Outage{}, "Credential": credential.Credential{}, "Health": api.Health{}, "Problem": api.Problem{},
}

func TestSchemasMatchTheTypes(t *testing.T) {
	t.Parallel()
	for name, ref := range openAPIDoc(t).Components.Schemas {
		if len(ref.Value.Properties) == 0 {
			continue // not an object with fields
		}
		v, ok := schemas[name]
		if !ok {
			t.Errorf("no Go type is known for schema %s", name)
			continue
		}
		fields, always := jsonFields(reflect.TypeOf(v))
		var properties []string
		for p := range ref.Value.Properties {
			properties = append(properties, p)
		}
		slices.Sort(properties)
		if diff := cmp.Diff(fields, properties); diff != "" {
			t.Errorf("%s (-%T +openapi.yaml):\n%s", name, v, diff)
		}
		if strings.HasPrefix(name, "New") || name == "StartCluster" || name == "SetSite" {
			continue // the server checks what a request must have, the encoder does not
		}
		required := slices.Sorted(slices.Values(ref.Value.Required))
		if diff := cmp.Diff(always, required); diff != "" {
			t.Errorf("%s: always written, required (-%T +openapi.yaml):\n%s", name, v, diff)
		}
	}
	for name := range schemas {
		if openAPIDoc(t).Components.Schemas[name] == nil {
			t.Errorf("openapi.yaml has no schema %s", name)
		}
	}
}

// jsonFields returns the JSON names of a struct's fields, and of those that are always written.
func jsonFields(typ reflect.Type) (fields, always []string) {
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" { // its fields are written as if they were here
			typ := f.Type
			if typ.Kind() == reflect.Pointer { // they are written if it is not nil
				typ = typ.Elem()
			}
			within, ever := jsonFields(typ)
			fields = append(fields, within...)
			if typ == f.Type {
				always = append(always, ever...)
			}
			continue
		}
		if name == "-" {
			continue
		}
		fields = append(fields, name)
		if options == "" {
			always = append(always, name)
		}
	}
	slices.Sort(fields)
	slices.Sort(always)
	return fields, always
}

// enums :: name of a schema → the values in the code.
var enums = map[string][]string{
	"SiteState":     words(corral.SiteStates),
	"GlideinState":  words(corral.GlideinStates),
	"JobState":      words(corral.JobStates),
	"ClusterState":  words(corral.ClusterStates),
	"PackageState":  words(corral.PackageStates),
	"MirrorState":   words(corral.MirrorStates),
	"PlanState":     words(corral.PlanStates),
	"EnsembleState": words(record.States), "EnsembleStanding": words(record.Standings),
	"ProfileState": words(corral.ProfileStates),
	"TokenState":   words(corral.TokenStates),
	"Role":         words(corral.Roles),
	"Grant":        words(corral.Grants),
	"Objective":    words(plan.Objectives),
	"RunState":     words(corral.RunStates),
	"TaskState":    words(corral.TaskStates),
	"Outcome":      words(corral.Outcomes),
}

func words[S ~string](values []S) []string {
	var w []string
	for _, v := range values {
		w = append(w, string(v))
	}
	return w
}

func TestEnumsMatchTheStates(t *testing.T) {
	t.Parallel()
	doc := openAPIDoc(t)
	for name, want := range enums {
		var got []string
		for _, v := range doc.Components.Schemas[name].Value.Enum {
			got = append(got, v.(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-code +openapi.yaml):\n%s", name, diff)
		}
	}
}

// TestKeysMatchTheDocument: the document's description of a key matches the code.
func TestKeysMatchTheDocument(t *testing.T) {
	t.Parallel()
	schema := openAPIDoc(t).Components.Parameters["key"].Value.Schema.Value
	pattern := regexp.MustCompile(schema.Pattern)
	for _, key := range []string{
		"", " ", "k", "k ", " k", "a b", "!~", "a\tb", "clé", strings.Repeat("k", api.MaxKey), strings.Repeat("k", api.MaxKey+1),
	} {
		documented := pattern.MatchString(key) && uint64(len(key)) >= schema.MinLength && uint64(len(key)) <= *schema.MaxLength
		if err := api.CheckKey("key", key); documented != (err == nil) {
			t.Errorf("key %q: in openapi.yaml %v, but %v", key, documented, err)
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, body := start(t).send(t, http.MethodGet, "/openapi.yaml", ""); code != http.StatusOK || body != string(file) {
		t.Errorf("/openapi.yaml answered %d with %d bytes, want the file's %d", code, len(body), len(file))
	}
}

// TestLongestDeadline: REST accepts the deadlines that plans suggest as feasible.
func TestLongestDeadline(t *testing.T) {
	t.Parallel()
	goal := openAPIDoc(t).Components.Schemas["NewGoal"].Value
	most := goal.Properties["deadline_s"].Value.Max
	if want := time.Duration(plan.LongestDeadline).Seconds(); most == nil || *most != want {
		t.Errorf("the longest deadline is %v s, want %v s", most, want)
	}
}
