package credential_test

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/corral-pilot/corral/credential"
)

// A token that pilots carry must outlive them, so a site with it accepts jobs of one hour but not of six.
func ExampleRefuses() {
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	claims := fmt.Sprintf(`{"sub": "ann", "exp": %d}`, now.Add(3*time.Hour).Unix())
	encode := base64.RawURLEncoding.EncodeToString
	jwt := encode([]byte(`{"alg": "ES256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))

	token, err := credential.Parse("/home/ann/.condor/token", []byte(jwt))
	if err != nil {
		fmt.Println(err)
		return
	}
	token.Carried = true
	fmt.Println(token)
	for _, walltime := range []time.Duration{time.Hour, 6 * time.Hour} {
		why := credential.Refuses(now, []credential.Credential{token}, walltime)
		fmt.Printf("%s: refused %t\n", walltime, why != "")
	}
	// Output:
	// token /home/ann/.condor/token (ann)
	// 1h0m0s: refused false
	// 6h0m0s: refused true
}
