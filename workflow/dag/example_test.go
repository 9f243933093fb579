package dag_test

import (
	"fmt"

	"github.com/corral-pilot/corral/workflow/dag"
)

func ExampleGraph_Levels() {
	g, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Levels())
	// Output: [0 1 1 2]
}

func ExampleNew_cycle() {
	_, err := dag.New(3, [][2]int{{0, 1}, {1, 2}, {2, 0}})
	fmt.Println(err)
	// Output: cycle: 0 -> 1 -> 2 -> 0
}
