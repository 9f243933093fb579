package gridsite_test

import (
	"fmt"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/local"
)

// A program lists the transports that it links; a contact selects one of them.
func ExampleBackends_Dial() {
	backends := gridsite.Backends{Transports: map[string]gridsite.Dialer{
		"local": func(owner, contact string) (gridsite.Conn, error) { return local.Conn{}, nil },
	}}
	for _, contact := range []string{"local:", "ssh://ann@login.example.org", "gsissh://login.example.org"} {
		conn, err := backends.Dial("ann", contact)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s %T\n", contact, conn)
		_ = conn.Close()
	}
	// Output:
	// local: local.Conn
	// contact: this program has no transport ssh
	// contact: "gsissh://login.example.org": want local: or ssh://[user@]host[:port]
}
