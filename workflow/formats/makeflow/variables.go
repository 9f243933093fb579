package makeflow

import "sort"

// variables are those of a file. A rule sees its own, then those that were defined under its category, then the global
// ones, each as it was before the rule; then the environment. Which variables are exported is known only at the end of
// the file, so every value is kept with the rule before which it was given.
type variables struct {
	given  map[scoped][]assignment
	env    func(name string) (string, bool)
	rule   int    // how many rules there were before this line
	among  string // the category that variables are defined under; "": none
	own    map[string]string
	within bool // a rule that has not ended

	kept int64 // bytes of values that are kept
	used int64 // bytes of values that texts were given
}

// scoped names a variable of a category.
type scoped struct{ category, name string }

// An assignment is the value that a variable has from a rule on.
type assignment struct {
	rule  int
	value string
}

// set gives a variable a value: for the rule that has begun, or from the next rule on.
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

// add adds to a variable, behind a blank: for the rule that has begun to a copy, otherwise to the one that its category
// has, or to the global one.
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

// get returns what a variable is on this line.
func (v *variables) get(name string) (value string, ok bool) {
	if value, ok = v.own[name]; !ok {
		value, ok = v.at(v.rule, v.among, name)
	}
	v.used += int64(len(value)) + 1
	return value, ok
}

// at returns what a variable was before the rule of a number, for rules of a category.
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
