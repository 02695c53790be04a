package stripesim

import (
	"container/heap"
	"time"
)

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

// schedule holds things that fall due at a time; equal times keep their order.
type schedule[T any] struct {
	heap timeHeap[T]
	seq  uint64
}

func (s *schedule[T]) add(at time.Time, v T) {
	s.seq++
	heap.Push(&s.heap, item[T]{at, s.seq, v})
}

// due takes out the next thing that is due at now.
func (s *schedule[T]) due(now time.Time) (v T, ok bool) {
	at, ok := s.next()
	if !ok || at.After(now) {
		return v, false
	}
	return heap.Pop(&s.heap).(item[T]).v, true
}

func (s *schedule[T]) next() (time.Time, bool) {
	if len(s.heap) == 0 {
		return time.Time{}, false
	}
	return s.heap[0].at, true
}

type item[T any] struct {
	at  time.Time
	seq uint64
	v   T
}

type timeHeap[T any] []item[T]

func (h timeHeap[T]) Len() int      { return len(h) }
func (h timeHeap[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h timeHeap[T]) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}
func (h *timeHeap[T]) Push(x any) { *h = append(*h, x.(item[T])) }
func (h *timeHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = item[T]{}
	*h = old[:len(old)-1]
	return last
}
