package corral

import "time"

// TokenID identifies a token of the API.
type TokenID int64

// A Role limits the objects that a token's requests can reach: the user's own, or those of all users.
type Role string

const (
	RoleUser          Role = "user"
	RoleAdministrator Role = "administrator"
)

// Roles lists all roles.
var Roles = []Role{RoleUser, RoleAdministrator}

// A Grant permits a user actions that affect corrald's own host or other users' sites. Administrators need no grants.
type Grant string

const (
	GrantLocal     Grant = "local"      // sites with the contact local:, whose jobs run as corrald's user
	GrantHostPaths Grant = "host-paths" // folders and files on corrald's host, as in source_dir and dir
	GrantPackages  Grant = "packages"   // worker packages and mirrors, which the sites of all users use
)

// Grants lists all grants.
var Grants = []Grant{GrantLocal, GrantHostPaths, GrantPackages}

// A TokenState specifies whether a token is valid. An expired token remains VALID, because its expiry time is checked
// separately.
type TokenState string

const (
	TokenValid   TokenState = "VALID"
	TokenRevoked TokenState = "REVOKED" // permanently
)

// TokenStates lists all states in their order of life.
var TokenStates = []TokenState{TokenValid, TokenRevoked}

// A Token authenticates requests to a central corrald. Only the person who created the token knows its text: corrald
// stores a digest, and receives the text only with requests.
type Token struct {
	ID    TokenID `json:"id"`
	Name  string  `json:"name"`  // its purpose; unique among the owner's tokens that are not REVOKED
	Owner string  `json:"owner"` // the user on whose behalf its requests act
	Role  Role    `json:"role"`

	// Scopes restrict the actions of its requests. A scope is a noun such as runs, a noun followed by :read, or read
	// for all reading. Without scopes, the token permits all actions that its role permits.
	Scopes []string `json:"scopes,omitempty"`
	Grants []Grant  `json:"grants,omitempty"`

	// Parent is the token that created this one; absent if it was created over corrald's own socket. Revoking a token
	// also revokes the tokens created with it.
	Parent TokenID `json:"parent_id,omitempty"`

	State     TokenState `json:"state"`
	Reason    string     `json:"reason,omitempty"`
	ExpiresAt time.Time  `json:"expires_at,omitzero"` // absent: it does not expire
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`

	Digest string `json:"-"` // sha256:HEX of its text
}

// Expired reports whether the token has expired at now.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }
