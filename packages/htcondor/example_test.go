package htcondor_test

import (
	"fmt"
	"os"

	"github.com/corral-pilot/corral/packages/htcondor"
)

// The package for workers is built from the HTCondor that Debian's packages have installed on this machine.
func ExampleFind() {
	installed, err := htcondor.Find("/usr")
	if err != nil {
		fmt.Println(err) // NotFound: get an installation with Debian.Unpack
		return
	}
	archive, err := os.Create("htcondor-" + installed.Version + ".tar.gz")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer archive.Close()
	p, err := installed.Pack(archive, htcondor.Worker)
	fmt.Println(p.Name, p.Digest, err)
}
