package packages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/packages"
)

// A package is built, chosen for a site's platform, and unpacked there.
func Example() {
	dir, err := os.MkdirTemp("", "packages")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	archive, err := os.Create(filepath.Join(dir, "hello.tar.gz"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer archive.Close()
	header := packages.Header{What: "hello", Version: "1.0"}
	header.Platform = corral.Platform{OS: "linux", Arch: "x86_64", Libc: packages.Static}
	files := fstest.MapFS{"bin/hello": {Data: []byte("#!/bin/sh\necho hello\n"), Mode: 0o755}}
	built, err := packages.Build(archive, header, files)
	if err != nil {
		fmt.Println(err)
		return
	}
	site := corral.Platform{OS: "linux", Arch: "x86_64", Libc: "glibc2.36"}
	chosen, err := packages.Choose(site, []packages.Package{built})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := packages.Unpack(archive.Name(), chosen, filepath.Join(dir, "hello")); err != nil {
		fmt.Println(err)
		return
	}
	script, err := os.ReadFile(filepath.Join(dir, "hello", "bin", "hello"))
	fmt.Printf("%s: %q, %v\n", chosen.Name, script, err)
	// Output:
	// hello-1.0-x86_64-linux-static: "#!/bin/sh\necho hello\n", <nil>
}
