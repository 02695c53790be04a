package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// dial opens a WebSocket.
func (s *shop) dial(path string, headers ...string) *websocket.Conn {
	s.t.Helper()
	h := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	conn, _, err := websocket.Dial(s.t.Context(), s.url+path, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func (s *shop) read(conn *websocket.Conn) (m holdfast.Message) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	_, doc, err := conn.Read(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

func TestBothKindsOfStreamSayTheSame(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(oneTee)
	path := "/v1/push?topic=stock/tee&topic=order/" + o.ID
	events, socket := s.follow(path, "Authorization: Bearer "+s.key), s.dial(path, "Authorization: Bearer "+s.key)
	for _, want := range []string{"order.held", "stock.level"} {
		one, _ := events.next()
		other := s.read(socket)
		if one.Type != want || one.ID != other.ID || one.Topic != other.Topic || string(one.Data) != string(other.Data) {
			t.Errorf("got %+v and %+v, want %s twice", one, other, want)
		}
	}
	s.do(http.MethodPost, "/v1/orders/"+o.ID+"/cancel", "").want(200, "")
	again := s.dial(path+"&after=2", "Authorization: Bearer "+s.key)
	if m := s.read(again); m.Type != "order.cancelled" || m.ID != 3 {
		t.Errorf("got %+v, want order.cancelled as 3", m)
	}
}

func TestAStreamTokenOpensItsTopicsForFiveMinutes(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(oneTee)
	var token struct{ Token string }
	s.do(http.MethodPost, "/v1/push/tokens?topic=order/"+o.ID+"&topic=stock/tee", "").want(201, "").into(&token)
	query := "?stream_token=" + url.QueryEscape(token.Token)
	s.follow("/v1/push"+query).want("order.held", "stock.level")
	if m := s.read(s.dial("/v1/push" + query)); m.Type != "order.held" {
		t.Errorf("got %+v", m)
	}
	s.send(http.MethodGet, "/v1/push"+query+"&topic=order/other", "").want(400, "invalid_parameter")
	s.send(http.MethodGet, "/v1/push"+query+"x", "").want(401, "stream_token_invalid")
	s.send(http.MethodGet, "/v1/push?stream_token=", "").want(401, "stream_token_invalid")
	s.send(http.MethodGet, "/v1/orders/"+o.ID+query, "").want(401, "unauthenticated")
}

func TestABuyerHearsHisOwnTopicAndNoDocuments(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	own, other := s.order(oneTee), s.order(oneTee)
	secret := "Client-Secret: " + own.ClientSecret
	s.send(http.MethodGet, "/v1/push?topic=order/"+other.ID, "", secret).want(404, "not_found")
	s.send(http.MethodGet, "/v1/push?topic=stock/tee", "", secret).want(404, "not_found")
	s.send(http.MethodGet, "/v1/push?topic=stock/tee&topic=order/"+own.ID, "", secret).want(403, "forbidden_scope")
	s.send(http.MethodGet, "/v1/push", "", secret).want(403, "forbidden_scope")
	s.send(http.MethodGet, "/v1/push", "").want(401, "unauthenticated")
	f := s.follow("/v1/push?topic=order/"+own.ID, secret)
	f.want("order.held")
	s.do(http.MethodPost, "/v1/orders/"+own.ID+"/payments", `{}`).want(201, "")
	if m := f.want("order.paying", "payment.open"); m.Data != nil {
		t.Errorf("the buyer sees %s", m.Data)
	}
}

func TestPagesOfOtherSitesCannotListen(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, origin := range []string{"https://evil.example", "null"} {
		_, resp, err := websocket.Dial(t.Context(), s.url+"/v1/push", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}, "Authorization": {"Bearer " + s.key}}})
		if err == nil || resp == nil || resp.StatusCode != 403 {
			t.Errorf("%s: got %v, %v", origin, resp, err)
		}
		s.do(http.MethodGet, "/v1/push", "", "Origin: "+origin).want(403, "foreign_origin")
	}
}

func TestDrainEndsWebSockets(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	conn := s.dial("/v1/push", "Authorization: Bearer "+s.key)
	s.read(conn)
	s.api.Drain()
	_, _, err := conn.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v, want going away", err)
	}
}

func TestAWebSocketThatSpeaksIsClosed(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	conn := s.dial("/v1/push", "Authorization: Bearer "+s.key)
	s.read(conn)
	if err := conn.Write(t.Context(), websocket.MessageText, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("got %v, want a policy violation", err)
	}
}
