package stripesim

import "time"

// thing is anything that the API shows.
type thing interface {
	ident() string
	since() time.Time
	object() object
}

// object is the wire form of a thing.
type object map[string]any

// table keeps things by id and in the order of their creation.
type table[T thing] struct {
	byID  map[string]T
	order []T
}

func (t *table[T]) add(v T) {
	if t.byID == nil {
		t.byID = map[string]T{}
	}
	t.byID[v.ident()] = v
	t.order = append(t.order, v)
}

// get returns the thing of that id, or a refusal that names the parameter.
func (t *table[T]) get(id, kind, param string) (T, *apiError) {
	v, ok := t.byID[id]
	if !ok {
		return v, &apiError{status: 404, typ: invalidRequest, code: "resource_missing", param: param, message: "No such " + kind + ": '" + id + "'"}
	}
	return v, nil
}
