// Package selection determines which resources can run a task and which of them should, from the task's requirements,
// the resources' offers, and the cost (Ha, Turilli, Merzky and Jha, Towards general distributed resource selection).
//
// The terms are those of the paper. A consumable is a thing that is used up; it has a type and a form, which is a set
// of attributes with their acceptable values. A requirement is an amount of a consumable. A capability is the rate at
// which a resource offers a consumable: the amount per unit of cost, which may be a second, money or energy. A
// capability serves a requirement if both have the same type and share a value for each attribute that the requirement
// names. A resource is viable for a task if it serves each requirement; its cost is then the sum of amount ÷ rate
// (equation 2). The viable resource with the highest affinity is selected, for example the one with the lowest cost, or
// with the lowest sum of cost and wait.
//
// Bill returns the cost of a task at a resource, and Select the resource with the highest affinity. Machine and Job
// write capabilities and requirements as attributes and expressions of HTCondor, whose matchmaker then selects in the
// same way. Factor and Drift compare past runs with their predictions.
//
// The paper sums the costs over all pairs of a requirement and a capability that match by equality. Here a requirement
// that no capability serves is an error, not a cost of 0, and each requirement is paired with the capability that
// serves it at the best rate.
//
// The package selects, but does not schedule: it considers each task separately, as if resources were unlimited. Only
// Spread takes the number of places into account.
package selection
