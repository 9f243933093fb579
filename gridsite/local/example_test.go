package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/local"
)

// A command that fails is a result with an exit status. An error would mean that its outcome is unknown.
func ExampleConn() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "local")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var conn local.Conn
	file := filepath.Join(dir, "greeting")
	if err := conn.Put(ctx, file, 0o600, strings.NewReader("hello\n")); err != nil {
		fmt.Println(err)
		return
	}
	for _, argv := range [][]string{{"cat", file}, {"sh", "-c", "echo no >&2; exit 4"}} {
		result, err := conn.Run(ctx, gridsite.Command{Argv: argv})
		fmt.Printf("%d %q %q %v\n", result.Exit, result.Stdout, result.Stderr, err)
	}
	// Output:
	// 0 "hello\n" "" <nil>
	// 4 "" "no\n" <nil>
}
