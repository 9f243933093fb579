package corral

import "time"

// TokenID identifies a token of the API.
type TokenID int64

// A Role says how far the requests of a token reach: a user's own objects, or everybody's.
type Role string

const (
	RoleUser          Role = "user"
	RoleAdministrator Role = "administrator"
)

// Roles lists all roles.
var Roles = []Role{RoleUser, RoleAdministrator}

// A Grant lets a user do what touches corrald's own host, or what everybody's sites run. Administrators need none.
type Grant string

const (
	GrantLocal     Grant = "local"      // sites with the contact local:, whose jobs run as corrald's user
	GrantHostPaths Grant = "host-paths" // folders and files on corrald's host: source_dir, dir and their like
	GrantPackages  Grant = "packages"   // worker packages and mirrors, which the sites of all users take
)

// Grants lists all grants.
var Grants = []Grant{GrantLocal, GrantHostPaths, GrantPackages}

// A TokenState says whether a token is good; one that has expired stays VALID, since time alone ends it.
type TokenState string

const (
	TokenValid   TokenState = "VALID"
	TokenRevoked TokenState = "REVOKED" // for good
)

// TokenStates lists all states in their order of life.
var TokenStates = []TokenState{TokenValid, TokenRevoked}

// A Token lets somebody ask a central corrald. Its text is known to whoever made it and to nobody else: corrald keeps a
// digest, and is sent the text only with requests.
type Token struct {
	ID    TokenID `json:"id"`
	Name  string  `json:"name"`  // what it is for; unique among those of its owner that are not REVOKED
	Owner string  `json:"owner"` // as whom its requests act
	Role  Role    `json:"role"`

	// Scopes narrow what its requests may do: a noun such as runs, one with :read behind it, or read for all reading;
	// none: all that the role may.
	Scopes []string `json:"scopes,omitempty"`
	Grants []Grant  `json:"grants,omitempty"`

	// Parent is the token with which this one was made; absent: it was made at corrald's own socket. Revoking a token
	// revokes those made with it.
	Parent TokenID `json:"parent_id,omitempty"`

	State     TokenState `json:"state"`
	Reason    string     `json:"reason,omitempty"`
	ExpiresAt time.Time  `json:"expires_at,omitzero"` // absent: it does not expire
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`

	Digest string `json:"-"` // sha256:HEX of its text
}

// Expired reports whether the token's time is over.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }
