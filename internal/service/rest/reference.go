package rest

import (
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/request"
)

// Referred finds the object that a reference names: by id if it is a number, otherwise by name. The NotFound error
// for a missing object names the place of the reference in the request.
func Referred[ID ~int64, T any](place, ref string,
	byID func(ID) (T, error), byName func(string) (T, error)) (T, error) {
	if !request.IsID(ref) {
		v, err := byName(ref)
		return v, Missing(place, err)
	}
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil { // it exceeds all ids
		var none T
		return none, corral.ErrorAt(corral.NotFound, place, "%s is not an id", ref)
	}
	v, err := byID(ID(id))
	return v, Missing(place, err)
}

// Numbered finds the object whose id is in the path.
func Numbered[ID ~int64, T any](c *Call, byID func(ID) (T, error)) (v T, err error) {
	id, err := IDOf[ID](c)
	if err != nil {
		return v, err
	}
	v, err = byID(id)
	return v, Missing("id", err)
}

// IDOf reads the id in the path.
func IDOf[ID ~int64](c *Call) (ID, error) {
	n, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || n < 1 {
		return 0, corral.ErrorAt(corral.NotFound, "id", "%q is not an id", c.Param("id"))
	}
	return ID(n), nil
}
