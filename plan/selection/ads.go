package selection

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
)

// This file writes requirements and capabilities as ClassAds, so that HTCondor's negotiator finds the same resources
// viable as package selection does, and prefers the same ones. The paper (Ha et al.) has no such mapping; the
// attributes are ours.
//
// A machine has, for each consumable that it offers:
//
//	CorralRate_TYPE            its rate
//	CorralForm_TYPE_ATTRIBUTE  a list of values, for each attribute of the form
//
// and a job an expression for its Requirements and one for its Rank, which is the cost with a minus. A machine that
// lacks an attribute is not matched: the expression is undefined. Values are compared by "is": a text by its capitals,
// too, and numbers, which are all written as reals.
//
// The negotiator looks at Rank only between machines for which its own NEGOTIATOR_PRE_JOB_RANK is the same.

// Prefixes of the attributes.
const (
	rate = "CorralRate_"
	form = "CorralForm_"
)

// word is what a type and an attribute of a form have to be. Capitals do not tell attributes of ads apart.
var word = regexp.MustCompile(`^[a-z][a-z0-9]{0,39}$`)

// An Attribute is a line of a machine's ad.
type Attribute struct{ Name, Value string }

// Machine returns what a machine advertises of its capabilities, sorted by name. Types and attributes that are no words
// of letters and digits are an error of kind Invalid, and so are two capabilities of one type.
func Machine(capabilities []Capability) (all []Attribute, err error) {
	seen := map[string]bool{}
	for _, c := range capabilities {
		if seen[c.Type] {
			return nil, corral.Errorf(corral.Invalid,
				"a machine offers %.40q twice: a job could not tell which to ask for", c.Type)
		}
		seen[c.Type] = true
		if err := c.Check(); err != nil {
			return nil, err
		}
		if err := words(c.Consumable); err != nil {
			return nil, err
		}
		all = append(all, Attribute{rate + c.Type, decimal(c.Rate)})
		for attribute, values := range c.Form {
			var list []string
			for _, v := range values {
				list = append(list, literal(v))
			}
			all = append(all, Attribute{form + c.Type + "_" + attribute, "{ " + strings.Join(list, ", ") + " }"})
		}
	}
	slices.SortFunc(all, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Job returns the expressions of a job that requires something: what its Requirements have to hold of a machine, and
// its Rank. Amounts are taken as they are: see selection.Quantised. Errors are as of Machine.
func Job(task []Requirement) (requirements, rank string, err error) {
	var all, costs []string
	for _, r := range task {
		if err := r.Check(); err != nil {
			return "", "", err
		}
		if err := words(r.Consumable); err != nil {
			return "", "", err
		}
		all = append(all, "TARGET."+rate+r.Type+" > 0.0")
		var attributes []string
		for attribute := range r.Form {
			attributes = append(attributes, attribute)
		}
		slices.Sort(attributes)
		for _, attribute := range attributes {
			all = append(all, "("+anyOf(r.Type, attribute, r.Form[attribute])+")")
		}
		costs = append(costs, decimal(r.Amount)+" / TARGET."+rate+r.Type)
	}
	if len(all) == 0 {
		return "true", "0.0", nil
	}
	return strings.Join(all, " && "), "-(" + strings.Join(costs, " + ") + ")", nil
}

// anyOf is true of a machine that has one of some values.
func anyOf(kind, attribute string, values []Value) string {
	list := "TARGET." + form + kind + "_" + attribute
	some := []string{"anyCompare(\"is\", " + list + ", undefined)"} // of no value it is false, or undefined
	for _, v := range values {
		some = append(some, "anyCompare(\"is\", "+list+", "+literal(v)+")")
	}
	return strings.Join(some, " || ")
}

// words refuses a type and attributes that cannot be part of a name.
func words(c Consumable) error {
	if !word.MatchString(c.Type) {
		return corral.Errorf(corral.Invalid, "%.40q is no word of small letters and digits", c.Type)
	}
	for attribute := range c.Form {
		if !word.MatchString(attribute) {
			return corral.Errorf(corral.Invalid, "%.40q, an attribute of %s, is no word of small letters and digits",
				attribute, c.Type)
		}
	}
	return nil
}

// literal writes a value; numbers are reals.
func literal(v Value) string {
	s, isText := v.Content()
	if isText {
		return classad.FormatNew(s)
	}
	n, _ := strconv.ParseFloat(s, 64)
	return decimal(n)
}

// decimal writes a number as a real.
func decimal(n float64) string {
	s := strconv.FormatFloat(n, 'e', -1, 64)
	if !strings.Contains(s, ".") { // 1e+02 is an error to some parsers
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return s
}
