package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-pay/holdfast"
)

// Limits of streams.
const (
	heartbeat  = 15 * time.Second // between two signs of life
	slowReader = 10 * time.Second // after which a client that does not read is dropped
	maxStreams = 100              // at once, of one API key, one buyer's order, or one Streaming.Caller
	allStreams = 20_000           // at once, of everybody
	// streamLife is how long a stream lasts, at least: whoever has it comes back
	// behind the last message, and is let in anew or not. Half as much is added by
	// chance, so that those who came together do not come back together.
	streamLife = time.Hour
)

const reconnect = "retry: 2000\n\n" // ms, for EventSource

// Streaming is a stream for somebody who may listen to its topics.
type Streaming struct {
	Caller string   // whose streams are counted together
	Topics []string // see holdfast.Listen; none = every event
	// After is behind which event it begins when the request does not say so by
	// Last-Event-ID or after: 0 = the first, holdfast.FromNow.
	After int64
	// View may change a message before it is sent, but not what Data points to;
	// false leaves it out. nil = all messages as they are.
	View func(*holdfast.Message) bool
}

// Stream answers with a stream: a WebSocket if r asks for one, otherwise server
// sent events; the same messages either way. It returns when the client has
// left, reads too slowly, or has to be let in anew, and on Drain. The caller has
// authorised the request; that it comes from a page of another site is refused
// here.
func (a *API) Stream(w http.ResponseWriter, r *http.Request, s Streaming) {
	ctx, cancel := bounded(r)
	defer cancel()
	if err := a.serveStream(ctx, w, r, s); err != nil {
		a.fail(w, r, err)
	}
}

// wire is a stream's way to its client.
type wire interface {
	send(id int64, message []byte) error
	beat() error // a sign of life
	end()        // says that the client may come back, if it is there
}

// serveStream is Stream. An error means that nothing was sent yet; until then,
// ctx bounds the wait.
func (a *API) serveStream(ctx context.Context, w http.ResponseWriter, r *http.Request, s Streaming) error {
	if a.foreign(r) {
		return refuse(codeForeignOrigin, "browsers may only call from this origin")
	}
	after, err := resumeAt(r, s.After)
	if err != nil {
		return err
	}
	open, done, err := a.streams.open(r.Context(), s.Caller)
	if err != nil {
		return err
	}
	defer done()
	l, err := a.core.Listen(ctx, s.Topics, after)
	if err != nil {
		return err
	}
	defer l.Close()
	var out wire
	if asksForWebSocket(r) {
		out, open, err = openWebSocket(open, w, r)
	} else {
		out, err = openEvents(w)
	}
	if err == nil {
		a.pump(open, l, out, s.View)
	}
	return nil // whatever went wrong was said, or there is nobody to say it to
}

// pump sends what the listener hears until one of the two ends.
func (a *API) pump(open context.Context, l *holdfast.Listener, out wire, view func(*holdfast.Message) bool) {
	defer out.end()
	last := time.Now()
	for {
		turn, cancel := context.WithDeadline(open, last.Add(heartbeat))
		m, err := l.Next(turn)
		cancel()
		switch {
		case open.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			err = out.beat()
		case err != nil:
			a.log.ErrorContext(open, "stream ended", "err", err)
			return
		case view != nil && !view(&m):
			continue
		default:
			var message []byte
			if message, err = json.Marshal(m); err == nil {
				err = out.send(m.ID, message)
			}
		}
		if err != nil {
			return // the client has left, or is too slow
		}
		last = time.Now()
	}
}

// resumeAt is the number of the last event that the client has.
func resumeAt(r *http.Request, otherwise int64) (int64, error) {
	s := r.Header.Get("Last-Event-ID")
	if s == "" {
		s = r.URL.Query().Get("after")
	}
	switch s {
	case "":
		return otherwise, nil
	case "now":
		return holdfast.FromNow, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse(codeInvalidParameter, "Last-Event-ID and after are numbers of events; after may be now")
	}
	return n, nil
}

// events are server sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
}

func openEvents(w http.ResponseWriter) (*events, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out := &events{w: w, control: http.NewResponseController(w)}
	return out, out.write([]byte(reconnect)) // fails if it is gone already, or HEAD
}

func (o *events) send(id int64, message []byte) error {
	b := append(o.buf[:0], "id: "...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, "\ndata: "...)
	b = append(b, message...)
	o.buf = append(b, "\n\n"...)
	return o.write(o.buf)
}

func (o *events) beat() error { return o.write([]byte(": alive\n\n")) }

func (o *events) end() {}

func (o *events) write(b []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(slowReader)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(b); err != nil {
		return err
	}
	return o.control.Flush()
}

// socket is a WebSocket. Its client has nothing to say: a message of it ends it.
type socket struct {
	conn  *websocket.Conn
	there context.Context // ends with the connection
}

func asksForWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// openWebSocket shakes hands, or answers why not. The context ends with the
// connection.
func openWebSocket(ctx context.Context, w http.ResponseWriter, r *http.Request) (*socket, context.Context, error) {
	// serveStream has checked the origin, by the rules of every other request here.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil, ctx, err
	}
	// Reading goes on when ctx ends, and so does the message that is being sent, or
	// the connection would be cut before the client can be told.
	there := conn.CloseRead(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(there, cancel)
	return &socket{conn, there}, ctx, nil
}

func (o *socket) send(_ int64, message []byte) error {
	ctx, cancel := context.WithTimeout(o.there, slowReader)
	defer cancel()
	return o.conn.Write(ctx, websocket.MessageText, message)
}

func (o *socket) beat() error {
	ctx, cancel := context.WithTimeout(o.there, slowReader)
	defer cancel()
	return o.conn.Ping(ctx)
}

func (o *socket) end() {
	// The client has left if this fails.
	_ = o.conn.Close(websocket.StatusGoingAway, "come back")
}

// streams counts the open streams of each caller, and ends them all at once.
type streams struct {
	ctx  context.Context
	stop context.CancelFunc
	mu   sync.Mutex
	of   map[string]int
	all  int
}

func (s *streams) init() {
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.of = map[string]int{}
}

// open counts one more stream of id. Its context ends with parent's, with stop,
// and after streamLife; done gives its place back.
func (s *streams) open(parent context.Context, id string) (ctx context.Context, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[id] >= maxStreams || s.all >= allStreams {
		return nil, nil, &refusal{code: codeTooManyStreams, detail: "too many open streams", retry: maxRetrySeconds}
	}
	s.of[id]++
	s.all++
	ctx, cancel := context.WithTimeout(parent, streamLife+rand.N(streamLife/2))
	unhook := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		unhook()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[id]--; s.of[id] == 0 {
			delete(s.of, id)
		}
	}, nil
}
