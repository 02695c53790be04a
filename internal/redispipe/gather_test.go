package redispipe

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
)

// turns is a gather whose turns wait for the test, and notes what each ran.
func turns() (g *gather, ran *[][]string, next chan error) {
	ran, next = &[][]string{}, make(chan error)
	g = &gather{run: func(_ context.Context, takings []pipeline.Taking) ([]pipeline.Verdict, error) {
		var ops []string
		verdicts := make([]pipeline.Verdict, len(takings))
		for i, t := range takings {
			ops = append(ops, t.Op)
			verdicts[i].Left = int64(t.Op[0])
		}
		*ran = append(*ran, ops)
		return verdicts, <-next
	}}
	return g, ran, next
}

type outcome struct {
	verdicts []pipeline.Verdict
	err      error
}

// ask starts a caller and returns when it waits.
func (g *gather) ask(ctx context.Context, op string) *outcome {
	o := &outcome{}
	go func() { o.verdicts, o.err = g.take(ctx, []pipeline.Taking{{Op: op}}) }()
	synctest.Wait()
	return o
}

func (o *outcome) is(t *testing.T, op string) {
	t.Helper()
	if o.err != nil || len(o.verdicts) != 1 || o.verdicts[0].Left != int64(op[0]) {
		t.Errorf("got %+v, %v, want the verdict of %s", o.verdicts, o.err, op)
	}
}

func TestCallersWhoComeAtOnceShareATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ran, next := turns()
		a, b, c := g.ask(t.Context(), "a"), g.ask(t.Context(), "b"), g.ask(t.Context(), "c")
		next <- nil
		synctest.Wait()
		d := g.ask(t.Context(), "d")
		next <- nil
		synctest.Wait()
		next <- nil
		synctest.Wait()
		for op, o := range map[string]*outcome{"a": a, "b": b, "c": c, "d": d} {
			o.is(t, op)
		}
		if !slices.EqualFunc(*ran, [][]string{{"a"}, {"b", "c"}, {"d"}}, slices.Equal) {
			t.Errorf("got turns %q", *ran)
		}
	})
}

func TestACallerWhoLeavesDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ran, next := turns()
		ctx, leave := context.WithCancel(t.Context())
		a, b, c := g.ask(ctx, "a"), g.ask(ctx, "b"), g.ask(t.Context(), "c")
		leave() // a leads, b waits
		synctest.Wait()
		if !errors.Is(b.err, context.Canceled) {
			t.Errorf("got %v, want %v", b.err, context.Canceled)
		}
		next <- nil
		synctest.Wait()
		next <- nil
		synctest.Wait()
		a.is(t, "a")
		c.is(t, "c")
		if !slices.EqualFunc(*ran, [][]string{{"a"}, {"c"}}, slices.Equal) {
			t.Errorf("got turns %q", *ran)
		}
	})
}

func TestATurnThatFailsIsAnErrorOfItsCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, next := turns()
		a, b := g.ask(t.Context(), "a"), g.ask(t.Context(), "b")
		lost := errors.New("lost")
		next <- lost
		synctest.Wait()
		next <- nil
		synctest.Wait()
		if !errors.Is(a.err, lost) {
			t.Errorf("got %v, want %v", a.err, lost)
		}
		b.is(t, "b")
	})
}
