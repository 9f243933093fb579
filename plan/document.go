package plan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/corral-pilot/corral"
)

// Decode returns the plan that is stored as the document of a row of corrald. The document never changes, so a decoded
// plan remains valid for rows of the same plan that are read later.
func Decode(row corral.Plan) (*Plan, error) {
	p := new(Plan)
	if err := json.Unmarshal(row.Document, p); err != nil {
		return nil, fmt.Errorf("reading plan %d: %w", row.ID, err)
	}
	return p, nil
}

// Encode stores the plan in a row: as its document, together with the digest of the document.
func (p *Plan) Encode(row *corral.Plan) error {
	document, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	row.Document, row.Digest = document, fmt.Sprintf("sha256:%x", sha256.Sum256(document))
	return nil
}
