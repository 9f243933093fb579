package execution

// A Lack is a need of some tasks that no worker of an offer can meet.
type Lack struct {
	Tasks []int  // their indices, ascending
	What  string // in half a sentence: "needs 65536 MiB; the largest worker here has 2048 MiB"
}

// Lacks compares the needs of each task of a workflow with an offer, before any of them is released. Tasks that were
// done before need nothing. The lacks are in the order of their first tasks.
func Lacks(s Spec, offer Offer) []Lack {
	few := offer.distinct()
	known := make(map[need]string) // :: need → what is lacking; "": nothing
	number := make(map[string]int) // :: what → its index in lacks
	var lacks []Lack
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.Done {
			continue
		}
		n := need{t.Needs(), t.Estimate}
		what, ok := known[n]
		if !ok {
			if !few.takes(n) {
				what = few.lack(n)
			}
			known[n] = what
		}
		if what == "" {
			continue
		}
		k, ok := number[what]
		if !ok {
			k = len(lacks)
			number[what], lacks = k, append(lacks, Lack{What: what})
		}
		lacks[k].Tasks = append(lacks[k].Tasks, i)
	}
	return lacks
}
