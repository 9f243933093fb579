package plan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/corral-pilot/corral"
)

// Decode returns the plan that a row of corrald has as its document. The document never changes: what a caller has
// decoded stays true of later rows of the same plan.
func Decode(row corral.Plan) (*Plan, error) {
	p := new(Plan)
	if err := json.Unmarshal(row.Document, p); err != nil {
		return nil, fmt.Errorf("reading plan %d: %w", row.ID, err)
	}
	return p, nil
}

// Encode writes the plan into a row, as its document with the digest.
func (p *Plan) Encode(row *corral.Plan) error {
	document, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	row.Document, row.Digest = document, fmt.Sprintf("sha256:%x", sha256.Sum256(document))
	return nil
}
