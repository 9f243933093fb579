package transfer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/condor/transfer"
)

// HTCondor starts a plugin with the requests of a job in one file, and reads the results in another.
func ExamplePlugin_Command() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "content of ", r.URL.Path)
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	in, out, input := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "input.dat")
	request := fmt.Sprintf("[ Url = %q; LocalFileName = %q ]\n", server.URL+"/input.dat", input)
	if err := os.WriteFile(in, []byte(request), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	if err := transfer.Default.Command(ctx, []string{"-infile", in, "-outfile", out}, os.Stdout); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(input)
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// content of /input.dat <nil>
}
