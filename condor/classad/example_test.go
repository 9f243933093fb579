package classad_test

import (
	"fmt"

	"github.com/corral-pilot/corral/condor/classad"
)

// The JSON is the output of condor_q -json -attributes ClusterId,ProcId,Owner,Requirements.
func ExampleParseAds() {
	ads, err := classad.ParseAds([]byte(`[{
		"ClusterId": 12, "ProcId": 0, "Owner": "ann",
		"Requirements": "\/Expr(TARGET.Memory >= 2048)\/"
	}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ad := range ads {
		cluster, _ := ad.Int("clusterid")
		owner, ok := ad.Text("Owner")
		fmt.Println(cluster, owner, ok)
		if requirements, ok := ad["Requirements"].(classad.Expr); ok {
			fmt.Println("only HTCondor can evaluate", requirements)
		}
	}
	ad := classad.Ad{"Owner": "ann", "Note": `a "quoted" \ text`, "Limits": []any{int64(1), 0.5, classad.Undefined}}
	fmt.Println(classad.FormatNew(ad))
	fmt.Println("Note =", classad.FormatOld(ad["Note"]))
	// Output:
	// 12 ann true
	// only HTCondor can evaluate TARGET.Memory >= 2048
	// [ Limits = { 1, 0.5, undefined }; Note = "a \"quoted\" \\ text"; Owner = "ann"; ]
	// Note = "a \"quoted\" \ text"
}
