package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// typeOf describes a type in a table cell: a link, or its kind with its bounds.
func (p *page) typeOf(ref *openapi3.SchemaRef) string {
	schema := ref.Value
	switch {
	case strings.HasPrefix(ref.Ref, schemaPrefix):
		name := strings.TrimPrefix(ref.Ref, schemaPrefix)
		return fmt.Sprintf("[`%s`](#%s)", name, anchor(name))
	case len(schema.AllOf) == 1: // a link with its own text
		return p.typeOf(schema.AllOf[0])
	}
	var b strings.Builder
	switch {
	case len(schema.Enum) > 0:
		b.WriteString(oneOf(schema.Enum))
	case schema.Items != nil:
		fmt.Fprintf(&b, "array of %s%s", p.typeOf(schema.Items), sizeOf(schema.MinItems, schema.MaxItems, "items"))
	case schema.AdditionalProperties.Schema != nil:
		fmt.Fprintf(&b, "object of %s", p.typeOf(schema.AdditionalProperties.Schema))
	default:
		b.WriteString(strings.Join(schema.Type.Slice(), " or "))
	}
	if schema.Format == "date-time" || schema.Format == "uri" || schema.Format == "byte" {
		fmt.Fprintf(&b, " (%s)", schema.Format)
	}
	b.WriteString(rangeOf(schema))
	if schema.Default != nil {
		fmt.Fprintf(&b, ", default `%v`", schema.Default)
	}
	if schema.Nullable {
		b.WriteString(", or null")
	}
	return b.String()
}

// kindOf introduces the description of a type without fields.
func kindOf(schema *openapi3.Schema) string {
	if len(schema.Enum) > 0 {
		return "One of"
	}
	return "Type"
}

// oneOf lists the values of an enumeration.
func oneOf(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("`%v`", v)
		if v == "" {
			words[i] = "`\"\"`"
		}
	}
	return strings.Join(words, ", ")
}

// rangeOf describes the bounds of a number, or of a text.
func rangeOf(schema *openapi3.Schema) string {
	var b strings.Builder
	switch lo, hi := schema.Min, schema.Max; {
	case lo != nil && hi != nil:
		fmt.Fprintf(&b, ", %.0f to %.0f", *lo, *hi)
	case lo != nil:
		fmt.Fprintf(&b, ", at least %.0f", *lo)
	}
	b.WriteString(sizeOf(schema.MinLength, schema.MaxLength, "characters"))
	if schema.Pattern != "" {
		fmt.Fprintf(&b, ", `%s`", cell(schema.Pattern))
	}
	return b.String()
}

// sizeOf describes the bounds of a size.
func sizeOf(lo uint64, hi *uint64, unit string) string {
	switch {
	case hi != nil && lo > 0:
		return fmt.Sprintf(", %d to %d %s", lo, *hi, unit)
	case hi != nil:
		return fmt.Sprintf(", up to %d %s", *hi, unit)
	case lo > 0:
		return fmt.Sprintf(", at least %d %s", lo, unit)
	}
	return ""
}

// cell returns a text for a table cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(strings.TrimSpace(first), ".")
}

var notInAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchor returns the fragment that links to a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

var (
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	mark      = regexp.MustCompile(`<a id="([^"]+)">`)
	code      = regexp.MustCompile("`[^`\n]*`")
	reference = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
)

// anchorsOf returns the number of occurrences of each anchor in a text.
func anchorsOf(text string) map[string]int {
	anchors := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchors[anchor(m[1])]++
	}
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		anchors[m[1]]++
	}
	return anchors
}

// checkLinks finds broken links, and headings with the same anchor.
func (p *page) checkLinks(t *testing.T) {
	t.Helper()
	anchors := anchorsOf(p.String())
	for name, n := range anchors {
		if n > 1 {
			t.Errorf("docs/api.md: %d headings have the anchor #%s", n, name)
		}
	}
	for _, m := range reference.FindAllStringSubmatch(code.ReplaceAllString(p.String(), ""), -1) {
		switch file, at := m[1], m[2]; file {
		case "":
			if anchors[at] == 0 {
				t.Errorf("docs/api.md: no heading has the anchor #%s", at)
			}
		case "api-examples.md": // written from its headings
		default:
			if _, err := os.Stat(filepath.Join(filepath.Dir(pageFile), file)); err != nil {
				t.Errorf("docs/api.md: %v", err)
			}
		}
	}
}

// checkTexts finds operations, types and fields without a description, and types that no operation uses.
func (p *page) checkTexts(t *testing.T) {
	t.Helper()
	found := map[string]bool{}
	for path, item := range p.doc.Paths.Map() {
		for method, op := range item.Operations() {
			known := slices.ContainsFunc(p.doc.Tags, func(tag *openapi3.Tag) bool { return slices.Contains(op.Tags, tag.Name) })
			if len(op.Tags) != 1 || !known || op.Summary == "" {
				t.Errorf("%s %s has the tags %v and the summary %q, want one known tag and a summary", method, path, op.Tags, op.Summary)
			}
			p.typesOf(route{Operation: op}, found)
		}
	}
	for name, ref := range p.doc.Components.Schemas {
		if !found[name] {
			t.Errorf("schema %s: no operation uses it", name)
		}
		if ref.Value.Description == "" {
			t.Errorf("schema %s has no description", name)
		}
		for field, property := range ref.Value.Properties {
			if property.Value.Description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
}
