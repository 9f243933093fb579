package makeflow

import "sort"

// variables holds the variables of a file. For a rule, a variable is looked up first among the rule's own variables,
// then among those of its category, then among the global variables, each with its value before the rule, and finally
// in the environment. Which variables are exported is known only at the end of the file, so every value is stored
// together with the number of the rule before which it was assigned.
type variables struct {
	given  map[scoped][]assignment
	env    func(name string) (string, bool)
	rule   int    // number of rules before the current line
	among  string // the category of assignments; "": none
	own    map[string]string
	within bool // inside an unfinished rule

	kept int64 // bytes of stored values
	used int64 // bytes of values inserted into texts
}

// scoped identifies a variable of a category.
type scoped struct{ category, name string }

// An assignment is the value that a variable has from a certain rule on.
type assignment struct {
	rule  int
	value string
}

// set sets a variable for the current rule or, outside a rule, from the next rule on.
func (v *variables) set(name, value string) {
	if v.within {
		v.kept += int64(len(value))
		if v.own == nil {
			v.own = make(map[string]string)
		}
		v.own[name] = value
		return
	}
	category := v.among
	if name == "CATEGORY" || name == "SYMBOL" {
		category = ""
	}
	v.put(scoped{category, name}, value)
}

// add appends a blank and a value to a variable: inside a rule to a copy of the variable, otherwise to the variable of
// the category or, if the category does not set it, to the global variable.
func (v *variables) add(name, value string) {
	if before, known := v.get(name); known {
		value = before + " " + value
	}
	category := v.among
	if len(v.given[scoped{category, name}]) == 0 {
		category = ""
	}
	if v.within {
		v.set(name, value)
		return
	}
	v.put(scoped{category, name}, value)
}

func (v *variables) put(key scoped, value string) {
	v.kept += int64(len(value))
	all := v.given[key]
	if n := len(all); n > 0 && all[n-1].rule == v.rule {
		v.kept -= int64(len(all[n-1].value))
		all[n-1].value = value
		return
	}
	v.given[key] = append(all, assignment{v.rule, value})
}

// get returns the value of a variable at the current line.
func (v *variables) get(name string) (value string, ok bool) {
	if value, ok = v.own[name]; !ok {
		value, ok = v.at(v.rule, v.among, name)
	}
	v.used += int64(len(value)) + 1
	return value, ok
}

// at returns the value that a variable has before the rule with the given number, if that rule belongs to the given
// category.
func (v *variables) at(rule int, category, name string) (string, bool) {
	keys := []scoped{{category, name}, {"", name}}
	for _, key := range keys {
		all := v.given[key]
		if i := sort.Search(len(all), func(i int) bool { return all[i].rule > rule }); i > 0 {
			return all[i-1].value, true
		}
	}
	if v.env == nil {
		return "", false
	}
	return v.env(name)
}
