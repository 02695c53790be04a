package dial

import (
	"container/heap"
	"context"
	"time"
)

// Agenda holds things that fall due at a time; equal times keep their order.
// The zero value is empty. It is not safe for concurrent use.
type Agenda[T any] struct {
	heap timeHeap[T]
	seq  uint64
}

// Add puts v on the agenda.
func (a *Agenda[T]) Add(at time.Time, v T) {
	a.seq++
	heap.Push(&a.heap, item[T]{at, a.seq, v})
}

// Due takes out the next thing that is due at now; false when none is.
func (a *Agenda[T]) Due(now time.Time) (v T, ok bool) {
	at, ok := a.Next()
	if !ok || at.After(now) {
		return v, false
	}
	return heap.Pop(&a.heap).(item[T]).v, true
}

// Next says when the next thing falls due; false when there is none.
func (a *Agenda[T]) Next() (time.Time, bool) {
	if len(a.heap) == 0 {
		return time.Time{}, false
	}
	return a.heap[0].at, true
}

// Serve does what is due until ctx ends. In between it sleeps for as long as idle
// says, or until the channel that wake gave before is closed: so nothing that
// comes while do is running is slept through.
func Serve(ctx context.Context, wake func() <-chan struct{}, do func(), idle func() time.Duration) {
	for ctx.Err() == nil {
		woken := wake()
		do()
		timer := time.NewTimer(idle())
		select {
		case <-woken:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
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
