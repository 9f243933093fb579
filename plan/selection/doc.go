// Package selection says which resources can do a task and which of them should, by what the task requires, what each
// resource offers, and what that costs (Ha, Turilli, Merzky and Jha, Towards general distributed resource selection).
//
// The words are theirs. A consumable is a thing that is used up, of a type and in a form: a set of attributes, each
// with the values that will do. A requirement is an amount of a consumable, a capability a rate at which a resource
// offers one: how much for one unit of cost, be that a second, money or energy. A capability serves a requirement if
// both are of one type, and for each attribute that the requirement names they share a value. A resource is viable for
// a task if each requirement is served; what it costs then is the sum of amount ÷ rate (equation 2). Of viable
// resources the one of the highest affinity is selected: that of the least cost, say, or of the least sum of cost and
// wait.
//
// The paper sums what matches and pairs by equality. Here a requirement that nothing serves makes no cost of 0 but an
// error, and each is paired with the capability that serves it at the best rate.
//
// It selects and does not schedule: each task by itself, as if there were enough of everything.
package selection
