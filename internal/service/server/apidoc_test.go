package server_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	gocmp "github.com/google/go-cmp/cmp"
)

const (
	pageFile     = "../../../docs/api.md"
	headFile     = "testdata/api-head.md" // the rules for all operations
	schemaPrefix = "#/components/schemas/"
	paramPrefix  = "#/components/parameters/"
)

// TestAPIDoc keeps docs/api.md equal to the page generated from api-head.md and openapi.yaml.
func TestAPIDoc(t *testing.T) {
	t.Parallel()
	loader := openapi3.NewLoader()
	loader.IncludeOrigin = true // line numbers, by which the page keeps the order of the file
	doc := must(loader.LoadFromData(must(os.ReadFile("openapi.yaml"))(t)))(t)
	p := &page{doc: doc, examples: string(must(os.ReadFile(examplesFile))(t))}
	p.WriteString(string(must(os.ReadFile(headFile))(t)))
	p.write()
	p.checkLinks(t)
	p.checkTexts(t)
	if *update {
		if err := os.WriteFile(pageFile, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(p.String(), string(must(os.ReadFile(pageFile))(t))); diff != "" {
		t.Errorf("docs/api.md is out of date; run go test ./internal/service/server -run APIDoc -update (-openapi.yaml +page):\n%s", diff)
	}
}

// A page is docs/api.md while it is being written.
type page struct {
	strings.Builder
	doc      *openapi3.T
	examples string
}

// A route is an operation with its method and its path.
type route struct {
	*openapi3.Operation
	method, path string
	item         *openapi3.PathItem
}

func (o route) title() string { return fmt.Sprintf("`%s %s`", o.method, o.path) }

// operations returns the operations with a tag, in the order of the file.
func (p *page) operations(tag string) []route {
	var all []route
	for path, item := range p.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if slices.Contains(op.Tags, tag) {
				all = append(all, route{op, method, path, item})
			}
		}
	}
	slices.SortFunc(all, func(a, b route) int { return a.Origin.Key.Line - b.Origin.Key.Line })
	return all
}

// write adds a section for each tag, with its operations and the types that only they use, then the shared parameters
// and types.
func (p *page) write() {
	users := map[string][]string{} // name of a type → the tags that use it
	for _, tag := range p.doc.Tags {
		found := map[string]bool{}
		for _, op := range p.operations(tag.Name) {
			p.typesOf(op, found)
		}
		for name := range found {
			users[name] = append(users[name], tag.Name)
		}
	}
	var common []string
	own := map[string][]string{} // tag → its types
	for name, tags := range users {
		if len(tags) == 1 {
			own[tags[0]] = append(own[tags[0]], name)
		} else {
			common = append(common, name)
		}
	}
	for _, tag := range p.doc.Tags {
		fmt.Fprintf(p, "\n## %s\n\n%s\n", tag.Name, strings.TrimSpace(tag.Description))
		for _, op := range p.operations(tag.Name) {
			p.writeOperation(op)
		}
		p.writeTypes(own[tag.Name])
	}
	p.writeParameters()
	fmt.Fprint(p, "\n## Common types\n\nTypes of fields in several of the sections above.\n")
	p.writeTypes(common)
}

// typesOf adds the names of the types in an operation's body and answers to found.
func (p *page) typesOf(op route, found map[string]bool) {
	contents := []openapi3.Content{}
	if op.RequestBody != nil {
		contents = append(contents, op.RequestBody.Value.Content)
	}
	for _, answer := range op.Responses.Map() {
		contents = append(contents, answer.Value.Content)
	}
	for _, content := range contents {
		for _, media := range content {
			p.typesIn(media.Schema, found)
		}
	}
	for _, param := range op.Parameters {
		p.typesIn(param.Value.Schema, found)
	}
	if strings.Contains(op.Responses.Default().Ref, "Problem") {
		found["Problem"] = true
	}
}

func (p *page) typesIn(ref *openapi3.SchemaRef, found map[string]bool) {
	if ref == nil {
		return
	}
	if name := strings.TrimPrefix(ref.Ref, schemaPrefix); name != "" {
		if found[name] {
			return
		}
		found[name] = true
	}
	p.typesIn(ref.Value.Items, found)
	p.typesIn(ref.Value.AdditionalProperties.Schema, found)
	for _, part := range ref.Value.AllOf {
		p.typesIn(part, found)
	}
	for _, field := range ref.Value.Properties {
		p.typesIn(field, found)
	}
}

func (p *page) writeOperation(op route) {
	fmt.Fprintf(p, "\n### %s\n\n%s.", op.title(), op.Summary)
	if text := strings.TrimSpace(op.Description); text != "" {
		fmt.Fprintf(p, " %s", text)
	}
	fmt.Fprint(p, "\n\n")
	var shared []string
	var own []*openapi3.Parameter
	for _, param := range slices.Concat(op.item.Parameters, op.Parameters) {
		switch name := strings.TrimPrefix(param.Ref, paramPrefix); {
		case name == "key": // common to all changes: documented once
		case name != "":
			shared = append(shared, fmt.Sprintf("[`%s`](#parameters)", param.Value.Name))
		default:
			own = append(own, param.Value)
		}
	}
	if len(shared) > 0 {
		fmt.Fprintf(p, "- Parameters: %s\n", strings.Join(shared, ", "))
	}
	if op.RequestBody != nil {
		fmt.Fprintf(p, "- Body: %s\n", p.media(op.RequestBody.Value.Content, op.RequestBody.Value.Description))
	}
	answers := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		if status != "default" {
			answer := answers[status].Value
			fmt.Fprintf(p, "- Answer: %s, %s\n", status, p.media(answer.Content, *answer.Description))
		}
	}
	if strings.Contains(p.examples, "\n### "+op.title()+"\n") {
		fmt.Fprintf(p, "- [Example](api-examples.md#%s)\n", anchor(op.title()))
	}
	if len(own) > 0 {
		fmt.Fprint(p, "\n| parameter | in | type | description |\n|---|---|---|---|\n")
		for _, param := range own {
			fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", param.Name, param.In, p.typeOf(param.Schema), cell(param.Description))
		}
	}
}

// media describes a body: its type, or its format if it is not JSON.
func (p *page) media(content openapi3.Content, text string) string {
	for kind, media := range content {
		what := p.typeOf(media.Schema)
		if items := p.itemsOf(media.Schema); items != nil {
			what = "a list of " + p.typeOf(items)
		} else if kind != "application/json" {
			what = "`" + kind + "`"
		}
		if media.Schema.Ref == "" || strings.HasPrefix(text, "At most") {
			what += ": " + text
		}
		return what
	}
	return text
}

// itemsOf returns the type of a list's items, or nil if the schema is not a list's.
func (p *page) itemsOf(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	if items := ref.Value.Properties["items"]; strings.HasSuffix(ref.Ref, "List") && items != nil {
		return items.Value.Items
	}
	return nil
}

// writeParameters describes the parameters that several operations have.
func (p *page) writeParameters() {
	fmt.Fprint(p, "\n## Parameters\n\nParameters of several operations.\n\n| parameter | in | type | description |\n|---|---|---|---|\n")
	params := p.doc.Components.Parameters
	for _, name := range slices.SortedFunc(maps.Keys(params), func(a, b string) int {
		return params[a].Value.Origin.Key.Line - params[b].Value.Origin.Key.Line
	}) {
		param := params[name].Value
		fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", param.Name, param.In, p.typeOf(param.Schema), cell(param.Description))
	}
}

// writeTypes describes types, in the order of the file.
func (p *page) writeTypes(names []string) {
	schemas := p.doc.Components.Schemas
	slices.SortFunc(names, func(a, b string) int { return schemas[a].Value.Origin.Key.Line - schemas[b].Value.Origin.Key.Line })
	for _, name := range names {
		ref := schemas[name]
		if p.itemsOf(&openapi3.SchemaRef{Ref: name, Value: ref.Value}) != nil {
			continue
		}
		fmt.Fprintf(p, "\n#### `%s`\n\n%s\n", name, strings.TrimSpace(ref.Value.Description))
		if len(ref.Value.Properties) == 0 {
			fmt.Fprintf(p, "\n%s: %s.\n", kindOf(ref.Value), p.typeOf(ref))
			continue
		}
		fmt.Fprint(p, "\n| field | type | required | description |\n|---|---|---|---|\n")
		for _, field := range fieldsOf(ref.Value) {
			schema := ref.Value.Properties[field]
			required := ""
			if slices.Contains(ref.Value.Required, field) {
				required = "yes"
			}
			text := schema.Value.Description
			if schema.Ref != "" {
				text = firstSentence(text)
			}
			fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", field, p.typeOf(schema), required, cell(text))
		}
	}
}

// fieldsOf returns the names of a schema's properties in the order of the file.
func fieldsOf(schema *openapi3.Schema) []string {
	line := func(field string) int {
		ref := schema.Properties[field]
		if ref.Origin != nil && ref.Origin.Key != nil {
			return ref.Origin.Key.Line
		}
		return ref.Value.Origin.Key.Line
	}
	return slices.SortedFunc(maps.Keys(schema.Properties), func(a, b string) int {
		return cmp.Or(line(a)-line(b), strings.Compare(a, b))
	})
}
