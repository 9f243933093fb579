package selection_test

import (
	"fmt"
	"math"

	"github.com/corral-pilot/corral/bench/selection"
)

// A task needs 6 × 10¹² cycles of an x86_64 processor and reads 10⁹ bytes. The second machine computes more slowly, but
// reads faster; the third has another instruction set.
func Example() {
	cycles := func(isa string) selection.Consumable {
		return selection.Consumable{Type: "cycles", Form: map[string][]selection.Value{"isa": {selection.Text(isa)}}}
	}
	bytes := selection.Consumable{Type: "bytes"}
	task := []selection.Requirement{{Consumable: cycles("x86_64"), Amount: 6e12}, {Consumable: bytes, Amount: 1e9}}
	resources := [][]selection.Capability{
		{{Consumable: cycles("x86_64"), Rate: 3e9}, {Consumable: bytes, Rate: 1e6}},
		{{Consumable: cycles("x86_64"), Rate: 2.5e9}, {Consumable: bytes, Rate: 5e6}},
		{{Consumable: cycles("arm64"), Rate: 4e9}, {Consumable: bytes, Rate: 5e6}},
	}
	affinities := make([]float64, len(resources))
	for i, r := range resources {
		bill, err := selection.Bill(r, task)
		if err != nil {
			fmt.Println(i, err)
			affinities[i] = math.Inf(-1)
			continue
		}
		affinities[i] = -selection.Cost(bill)
		fmt.Println(i, selection.Cost(bill), "s")
	}
	fmt.Println("selected:", selection.Select(affinities))
	// Output:
	// 0 3000 s
	// 1 2600 s
	// 2 cycles: its isa is "arm64", not "x86_64"
	// selected: 1
}
