package selection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Value is a number or a text; a number never equals a text. Values are comparable with ==.
type Value struct {
	number float64
	text   string
	isText bool
}

// Number returns a number; 1 and 1.0 are equal.
func Number(n float64) Value { return Value{number: n} }

// Text returns a text, which is case-sensitive.
func Text(s string) Value { return Value{text: s, isText: true} }

// String formats a text with quotes and a number without.
func (v Value) String() string {
	if v.isText {
		return strconv.Quote(v.text)
	}
	return strconv.FormatFloat(v.number, 'g', -1, 64)
}

// Content returns the text, or the formatted number if isText is false.
func (v Value) Content() (s string, isText bool) {
	if v.isText {
		return v.text, true
	}
	return v.String(), false
}

// MarshalJSON encodes a string or a number.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.isText {
		return json.Marshal(v.text)
	}
	return json.Marshal(v.number)
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (v *Value) UnmarshalJSON(b []byte) error {
	var either any
	if err := json.Unmarshal(b, &either); err != nil {
		return err
	}
	switch x := either.(type) {
	case string:
		*v = Text(x)
	case float64:
		*v = Number(x)
	default:
		return corral.Errorf(corral.Invalid, "%.40s is neither a number nor a text", b)
	}
	return nil
}

// A Consumable is a thing that tasks use and resources offer. Its form maps each attribute to the acceptable values.
type Consumable struct {
	Type string             `json:"type"`
	Form map[string][]Value `json:"form,omitempty"`
}

// key returns a text that is equal for equal consumables, regardless of the order of their values.
func (c Consumable) key() string {
	var parts []string
	for attribute, values := range c.Form {
		var some []string
		for _, v := range values {
			some = append(some, v.String())
		}
		slices.Sort(some)
		parts = append(parts, strconv.Quote(attribute)+"="+strings.Join(slices.Compact(some), ","))
	}
	slices.Sort(parts)
	return strconv.Quote(c.Type) + ":" + strings.Join(parts, ";")
}

// A Requirement is the amount of a consumable that a task uses.
type Requirement struct {
	Consumable
	Amount float64 `json:"amount"`
}

// A Capability is a consumable that a resource offers, with the amount that it offers per unit of cost.
type Capability struct {
	Consumable
	Rate float64 `json:"rate"`
}

// Check returns an error of kind Invalid if the amount is not a positive number.
func (r Requirement) Check() error { return positive("the amount", r.Consumable, r.Amount) }

// Check returns an error of kind Invalid if the rate is not a positive number.
func (c Capability) Check() error { return positive("the rate", c.Consumable, c.Rate) }

// positive checks an amount or a rate.
func positive(what string, c Consumable, n float64) error {
	if !(n > 0) || math.IsInf(n, 1) {
		return corral.Errorf(corral.Invalid, "%s of %.80q is %v: it must be a positive number", what, c.Type, n)
	}
	return nil
}

// Aggregate returns the total requirements of a sequence of instructions, with one entry for each type and form
// (equation 1). The sums do not depend on the order of the amounts. The error is of kind Invalid if an amount is not
// positive.
func Aggregate(instructions ...[]Requirement) ([]Requirement, error) {
	amounts, consumables := map[string][]float64{}, map[string]Consumable{}
	for _, all := range instructions {
		for _, r := range all {
			if err := r.Check(); err != nil {
				return nil, err
			}
			k := r.key()
			amounts[k], consumables[k] = append(amounts[k], r.Amount), r.Consumable
		}
	}
	var sums []Requirement
	for k, some := range amounts {
		slices.Sort(some)
		sum := 0.0
		for _, n := range some {
			sum += n
		}
		if err := positive("the sum", consumables[k], sum); err != nil {
			return nil, err
		}
		sums = append(sums, Requirement{consumables[k], sum})
	}
	slices.SortFunc(sums, func(a, b Requirement) int { return cmp.Compare(a.key(), b.key()) })
	return sums, nil
}

// Serves returns the reason why a capability does not serve a requirement, or "" if it does (algorithm 1). Additional
// attributes of the capability do not matter.
func (c Capability) Serves(r Requirement) (why string) {
	if c.Type != r.Type {
		return fmt.Sprintf("it is %s, not %s", c.Type, r.Type)
	}
	for _, attribute := range slices.Sorted(keys(r.Form)) {
		offered, ok := c.Form[attribute]
		if !ok {
			return fmt.Sprintf("its %s is not known", attribute)
		}
		if !slices.ContainsFunc(r.Form[attribute], func(v Value) bool { return slices.Contains(offered, v) }) {
			return fmt.Sprintf("its %s is %s, not %s", attribute, either(offered), either(r.Form[attribute]))
		}
	}
	return ""
}

func keys(form map[string][]Value) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for attribute := range form {
			if !yield(attribute) {
				return
			}
		}
	}
}

// either formats a list of values.
func either(values []Value) string {
	var all []string
	for _, v := range values {
		all = append(all, v.String())
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, " or ")
}
