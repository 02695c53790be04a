package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/ledger"
)

// feed is an open event stream.
type feed struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Scanner
}

func (s *shop) follow(path string, headers ...string) *feed {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return &feed{s.t, resp, bufio.NewScanner(resp.Body)}
}

// next reads one message; false = the stream ended.
func (f *feed) next() (m holdfast.Message, ok bool) {
	f.t.Helper()
	var id string
	for f.in.Scan() {
		name, value, _ := strings.Cut(f.in.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				f.t.Fatalf("data %q: %v", value, err)
			}
			if id != strconv.FormatInt(m.ID, 10) {
				f.t.Errorf("got id %s, want %d", id, m.ID)
			}
			return m, true
		}
	}
	return m, false
}

func (f *feed) want(kinds ...string) (last holdfast.Message) {
	f.t.Helper()
	for _, kind := range kinds {
		e, ok := f.next()
		if !ok || e.Type != kind {
			f.t.Fatalf("got %q, want %q: %v", e.Type, kind, f.in.Err())
		}
		last = e
	}
	return last
}

func TestOrderIsFollowedAndResumed(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(oneTee)
	f := s.follow("/v1/orders/"+o.ID+"/events", "Client-Secret: "+o.ClientSecret)
	if got := f.resp.Header.Get("Content-Type"); f.resp.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("got %d %s", f.resp.StatusCode, got)
	}
	held := f.want("order.held")
	s.order(oneTee) // another's
	s.do(http.MethodPost, "/v1/orders/"+o.ID+"/cancel", "").want(200, "")
	if e := f.want("order.cancelled"); e.Data != nil {
		t.Errorf("the buyer sees %s", e.Data)
	}
	again := s.follow("/v1/orders/"+o.ID+"/events", "Authorization: Bearer "+s.key, "Last-Event-ID: "+strconv.FormatInt(held.ID, 10))
	again.want("order.cancelled")
	s.do(http.MethodGet, "/v1/orders/nothing/events", "").want(404, "not_found")
}

func TestFeedHasNoGaps(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for range 5 {
		s.order(oneTee)
	}
	f := s.follow("/v1/events?after=1", "Authorization: Bearer "+s.key)
	for want := int64(2); want <= 6; want++ {
		if e, ok := f.next(); !ok || e.ID != want {
			t.Fatalf("got event %d, want %d", e.ID, want)
		}
	}
	var page struct {
		Items []ledger.Event
		After int64
	}
	s.do(http.MethodGet, "/v1/events?format=json&after=2&limit=3", "").want(200, "").into(&page)
	if len(page.Items) != 3 || page.Items[0].Seq != 3 || page.After != 5 {
		t.Errorf("got %+v", page)
	}
	s.do(http.MethodGet, "/v1/events?format=json&after=99", "").want(200, "").into(&page)
	if page.After != 99 {
		t.Errorf("got after %d, want 99", page.After)
	}
	for _, query := range []string{"after=-1", "after=x", "format=xml"} {
		s.do(http.MethodGet, "/v1/events?"+query, "").want(400, "invalid_parameter")
	}
	s.do(http.MethodGet, "/v1/events", "", "Last-Event-ID: x").want(400, "invalid_parameter")
}

func TestDrainEndsStreamsAndReadiness(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	s.send(http.MethodGet, "/readyz", "").want(200, "")
	f := s.follow("/v1/events", "Authorization: Bearer "+s.key)
	f.want("item.updated")
	s.api.Drain()
	if e, ok := f.next(); ok {
		t.Errorf("got %+v after the drain", e)
	}
	if err := f.in.Err(); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
	if a := s.send(http.MethodGet, "/readyz", ""); a.status != 503 || string(a.body) != "{\"ready\":false}\n" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	s.send(http.MethodGet, "/healthz", "").want(200, "")
	s.order(oneTee)
}

func TestStreamsOfOneCallerAreCounted(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	const most = 100
	feeds := make([]*feed, most)
	for i := range feeds {
		feeds[i] = s.follow("/v1/events", "Authorization: Bearer "+s.key)
		feeds[i].want("item.updated")
	}
	s.do(http.MethodGet, "/v1/events", "").want(429, "too_many_streams")
	own := s.order(oneTee)
	s.follow("/v1/orders/"+own.ID+"/events", "Client-Secret: "+own.ClientSecret).want("order.held")
	feeds[0].resp.Body.Close()
	for range 100 {
		f := s.follow("/v1/events", "Authorization: Bearer "+s.key)
		if f.resp.StatusCode == 200 {
			f.want("item.updated")
			return
		}
		f.resp.Body.Close()
		s.order(oneTee) // something happens, so that the server notices who left
	}
	t.Error("the place of a closed stream is not given back")
}

func TestHeadOfAStreamEnds(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	a := s.do(http.MethodHead, "/v1/events", "")
	if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %s", a.status, a.header.Get("Content-Type"))
	}
}

func TestStreamOutlivesTheRequestsDeadlines(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a heartbeat")
	}
	t.Parallel()
	s := openShop(t, httpapi.Options{})
	f := s.follow("/v1/events?after=1", "Authorization: Bearer "+s.key)
	// The heartbeat comes later than ReadTimeout, which must not have ended the stream.
	for f.in.Scan() {
		if strings.HasPrefix(f.in.Text(), ": alive") {
			s.order(oneTee)
			f.want("order.held")
			return
		}
	}
	t.Errorf("the stream ended without a sign of life: %v", f.in.Err())
}

// pipes accepts one connection that holds no byte that is not read.
type pipes struct{ c chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.c
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestReaderThatDoesNotReadIsDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the write deadline")
	}
	t.Parallel()
	s := openShop(t, httpapi.Options{})
	dropped, stopped := make(chan struct{}), make(chan struct{})
	server := httpapi.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(dropped)
		s.api.ServeHTTP(w, r)
	}), nil)
	l := pipes{make(chan net.Conn, 1)}
	go func() {
		defer close(stopped)
		_ = server.Serve(l)
	}()
	client, conn := net.Pipe()
	defer client.Close()
	l.c <- conn
	if _, err := io.WriteString(client, s.head("GET /v1/events HTTP/1.1")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-dropped:
	case <-time.After(30 * time.Second):
		t.Error("the stream is still open")
	}
	close(l.c)
	<-stopped
}
