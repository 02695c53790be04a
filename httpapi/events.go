package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of event streams.
const (
	heartbeat  = 15 * time.Second // between two signs of life
	slowReader = 10 * time.Second // after which a client that does not read is dropped
	maxStreams = 100              // at once, of one API key or one buyer's order
)

const reconnect = "retry: 2000\n\n" // ms, for EventSource

func (a *API) events() {
	resume := &huma.Param{Name: "Last-Event-ID", In: "header", Description: "Go on behind this event", Schema: stringSchema()}
	after := &huma.Param{Name: "after", In: "query", Description: "Like Last-Event-ID", Schema: &huma.Schema{Type: huma.TypeInteger}}
	a.stream(route{
		method: http.MethodGet, path: "/v1/orders/{id}/events", name: "followOrder", tag: "Events", scope: holdfast.ScopeRead, order: itself,
		summary: "Follow an order", about: "A buyer sees what happened and when, without the documents.",
		query: []*huma.Param{after}, header: []*huma.Param{resume},
	})
	a.stream(route{
		method: http.MethodGet, path: "/v1/events", name: "followEvents", tag: "Events", scope: holdfast.ScopeRead,
		summary: "Follow everything that happens", about: "Events are numbered without gaps and never change. format=json answers one page instead of a stream.",
		query:  append(pageQuery()[:1:1], after, &huma.Param{Name: "format", In: "query", Schema: enumSchema("sse", "json")}),
		header: []*huma.Param{resume},
	})
}

// stream adds an endpoint that answers with server sent events.
func (a *API) stream(rt route) {
	rt.prepare()
	a.describeStream(&rt)
	a.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := bounded(r)
		defer cancel()
		c := call{api: a, w: w, r: r, status: rt.status}
		if err := c.admit(ctx, &rt); err != nil {
			a.fail(w, r, err)
			return
		}
		if err := c.follow(ctx); err != nil {
			a.fail(w, r, err)
		}
	})
}

// follow sends events until the client leaves, reads too slowly, or the server
// drains. An error means that nothing was sent yet; until then, ctx bounds the
// wait.
func (c *call) follow(ctx context.Context) error {
	after, err := c.resumeAt()
	if err != nil {
		return err
	}
	subject := c.id("id")
	if subject != "" {
		if _, err := c.api.core.Order(ctx, subject); err != nil {
			return err
		}
	}
	if c.query.Get("format") == "json" {
		return c.eventPage(ctx, after)
	}
	open, done, err := c.api.streams.open(c.r.Context(), c.who.id)
	if err != nil {
		return err
	}
	defer done()
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := eventWriter{w: c.w, control: http.NewResponseController(c.w), bare: c.who.buyer}
	if out.write([]byte(reconnect)) != nil {
		return nil // gone already, or HEAD
	}
	for out.beat(open, c.api.core, subject, &after) {
	}
	return nil
}

// resumeAt is the number of the last event that the client has.
func (c *call) resumeAt() (int64, error) {
	s := c.r.Header.Get("Last-Event-ID")
	if s == "" {
		s = c.query.Get("after")
	}
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse(codeInvalidParameter, "Last-Event-ID and after are numbers of events")
	}
	return n, nil
}

// eventsPage is one page of the feed.
type eventsPage struct {
	Items []ledger.Event `json:"items"`
	After int64          `json:"after" doc:"Pass it as after for the next page"`
}

func (c *call) eventPage(ctx context.Context, after int64) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	rows, err := c.api.core.Ledger().Events(ctx, ledger.EventQuery{After: after, Limit: limit})
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		after = rows[len(rows)-1].Seq
	}
	c.answer(eventsPage{Items: list(rows), After: after})
	return nil
}

// eventWriter writes events to one client.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	bare    bool // without bodies
	buf     []byte
}

// beat sends what comes within a heartbeat, and says whether to go on.
func (o *eventWriter) beat(ctx context.Context, core *holdfast.Holdfast, subject string, after *int64) bool {
	turn, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	sent := false
	var broken error
	err := core.Follow(turn, subject, *after, func(e ledger.Event) error {
		if broken = o.event(e); broken == nil {
			*after, sent = e.Seq, true
		}
		return broken
	})
	if broken != nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && turn.Err() == nil {
		return false
	}
	return sent || o.write([]byte(": alive\n\n")) == nil
}

func (o *eventWriter) event(e ledger.Event) error {
	if o.bare {
		e.Body = nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	b := append(o.buf[:0], "id: "...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, "\nevent: "...)
	b = append(b, e.Type...)
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	o.buf = append(b, "\n\n"...)
	return o.write(o.buf)
}

func (o *eventWriter) write(b []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(slowReader)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(b); err != nil {
		return err
	}
	return o.control.Flush()
}

// streams counts the open streams of each caller, and ends them all at once.
type streams struct {
	ctx  context.Context
	stop context.CancelFunc
	mu   sync.Mutex
	of   map[string]int
}

func (s *streams) init() {
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.of = map[string]int{}
}

// open counts one more stream of id. Its context ends with parent's and with
// stop; done gives its place back.
func (s *streams) open(parent context.Context, id string) (ctx context.Context, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[id] >= maxStreams {
		return nil, nil, &refusal{code: codeTooManyStreams, detail: "too many open streams", retry: maxRetrySeconds}
	}
	s.of[id]++
	ctx, cancel := context.WithCancel(parent)
	unhook := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		unhook()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[id]--; s.of[id] == 0 {
			delete(s.of, id)
		}
	}, nil
}
