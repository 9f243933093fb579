package selection

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
)

// This file converts requirements and capabilities to ClassAds, so that HTCondor's negotiator finds the same resources
// viable as package selection does, and prefers the same ones. The paper (Ha et al.) does not define such a mapping;
// the attributes are Corral's.
//
// A machine has, for each consumable that it offers:
//
//	CorralRate_TYPE            its rate
//	CorralForm_TYPE_ATTRIBUTE  the list of values of each attribute of the form
//
// A job has an expression for its Requirements and one for its Rank, which is the negative cost. A machine that lacks
// an attribute does not match, because the expression is then undefined. Values are compared with "is", which is
// case-sensitive for texts; numbers are always written as reals.
//
// The negotiator compares Rank only between machines with the same NEGOTIATOR_PRE_JOB_RANK.

// Prefixes of the attributes.
const (
	rate = "CorralRate_"
	form = "CorralForm_"
)

// word matches valid types and attributes of forms. They are lower case, because ClassAd attribute names ignore case.
var word = regexp.MustCompile(`^[a-z][a-z0-9]{0,39}$`)

// An Attribute is a line of a machine's ad.
type Attribute struct{ Name, Value string }

// Machine returns the attributes that advertise a machine's capabilities, sorted by name. The error is of kind Invalid
// if a type or an attribute is not a word of lower-case letters and digits, or if two capabilities have the same type.
func Machine(capabilities []Capability) (all []Attribute, err error) {
	seen := map[string]bool{}
	for _, c := range capabilities {
		if seen[c.Type] {
			return nil, corral.Errorf(corral.Invalid,
				"a machine offers %.40q twice: a job could not select one of them", c.Type)
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

// Job returns the expressions for a job's requirements: a condition for its Requirements, and its Rank. Amounts are not
// rounded; see Quantised. Errors are like those of Machine.
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

// anyOf returns an expression that is true for machines with at least one of the values.
func anyOf(kind, attribute string, values []Value) string {
	list := "TARGET." + form + kind + "_" + attribute
	// False or undefined, so that an empty list of values never matches.
	some := []string{"anyCompare(\"is\", " + list + ", undefined)"}
	for _, v := range values {
		some = append(some, "anyCompare(\"is\", "+list+", "+literal(v)+")")
	}
	return strings.Join(some, " || ")
}

// words checks that a type and its attributes may be used in the names of ClassAd attributes.
func words(c Consumable) error {
	if !word.MatchString(c.Type) {
		return corral.Errorf(corral.Invalid, "%.40q must be a word of lower-case letters and digits", c.Type)
	}
	for attribute := range c.Form {
		if !word.MatchString(attribute) {
			return corral.Errorf(corral.Invalid, "%.40q, an attribute of %s, must be a word of lower-case letters "+
				"and digits", attribute, c.Type)
		}
	}
	return nil
}

// literal formats a value; numbers are reals.
func literal(v Value) string {
	s, isText := v.Content()
	if isText {
		return classad.FormatNew(s)
	}
	n, _ := strconv.ParseFloat(s, 64)
	return decimal(n)
}

// decimal formats a number as a real.
func decimal(n float64) string {
	s := strconv.FormatFloat(n, 'e', -1, 64)
	if !strings.Contains(s, ".") { // some parsers reject 1e+02
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return s
}
