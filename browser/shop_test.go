package browser

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/internal/web"
)

// shop is a whole shop on loopback, with the simulators of its gateways. Its
// clock can be put forward.
type shop struct {
	*testing.T
	core    *holdfast.Holdfast
	pages   http.Handler
	file    string // the store's
	url     string
	sims    map[string]string // URLs of the simulators, by gateway
	wechat  *wechatpaysim.Sim
	ahead   atomic.Int64 // ns that the clock is ahead
	quiet   atomic.Bool  // the gateways send nothing
	line    *line        // to the shop
	running sync.WaitGroup
}

func (s *shop) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// later puts the clock of the shop and of the gateways forward.
func (s *shop) later(d time.Duration) { s.ahead.Add(int64(d)) }

// simulator is the part of them that sends.
type simulator interface {
	http.Handler
	Deliver(ctx context.Context) (sent int)
}

const (
	holdFor = 5 * time.Minute
	payFor  = 5 * time.Minute
	pin     = 20 * time.Minute
	tick    = 20 * time.Millisecond // between two deliveries of a simulator
)

func openShop(t *testing.T, items ...holdfast.ItemInput) *shop {
	t.Helper()
	s := &shop{T: t, sims: map[string]string{}}
	ctx, stop := context.WithCancel(context.Background())
	l := s.listen()
	s.line, s.url = &line{Listener: l}, "http://"+l.Addr().String()
	gateways := s.gateways(ctx)
	gateways["purse"] = purse{}
	var err error
	s.file = t.TempDir() + "/shop.db"
	s.core, err = holdfast.Open(ctx, "sqlite:"+s.file, holdfast.Options{
		Preset: "queued", Gateways: gateways, HoldFor: holdFor, PayFor: payFor, Pin: pin, Poll: time.Second, Sweep: 100 * time.Millisecond, Clock: s.now,
		Sealer: openBook{}, PrivateEndpoints: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.core.PutItems(ctx, items, func() {}); err != nil {
		t.Fatal(err)
	}
	var api *httpapi.API
	s.pages = web.New(s.core, web.Options{
		URL: s.url, Shop: true, Admin: true, Sandboxes: s.dials(),
		Stream: func(w http.ResponseWriter, r *http.Request, caller string, topics []string) {
			api.Stream(w, r, httpapi.Streaming{Caller: caller, Topics: topics, After: holdfast.FromNow})
		},
	})
	api = httpapi.New(s.core, httpapi.Options{Pages: s.pages})
	srv := s.serve(s.line, api)
	t.Cleanup(func() {
		api.Drain()
		stop()
		_ = srv.Close()
		s.running.Wait()
		if rep, err := s.core.Verify(context.Background(), nil); err != nil || !rep.OK() {
			t.Errorf("verify: %v %v", rep, err)
		}
		if err := s.core.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// dials are the addresses of the simulators' pages for people, by gateway.
func (s *shop) dials() map[string]string {
	all := map[string]string{}
	for name, url := range s.sims {
		all[name] = url + "/_sim/"
	}
	return all
}

// write changes the store behind the shop's back.
func (s *shop) write(statement string) {
	s.Helper()
	db, err := sql.Open("sqlite3", "file:"+s.file)
	must(s.T, err)
	_, err = db.ExecContext(s.Context(), statement)
	must(s.T, errors.Join(err, db.Close()))
}

// lock lets nobody write to the store until it is freed.
func (s *shop) lock() (free func()) {
	s.Helper()
	db, err := sql.Open("sqlite3", "file:"+s.file)
	must(s.T, err)
	conn, err := db.Conn(s.Context())
	must(s.T, err)
	_, err = conn.ExecContext(s.Context(), "BEGIN IMMEDIATE")
	must(s.T, err)
	return func() {
		_, err := conn.ExecContext(s.Context(), "ROLLBACK")
		must(s.T, errors.Join(err, conn.Close(), db.Close()))
	}
}

func (s *shop) gateways(ctx context.Context) map[string]gateway.Gateway {
	s.Helper()
	put := func(name string, make func(url, notify string) (simulator, gateway.Gateway, error)) gateway.Gateway {
		l := s.listen()
		url := "http://" + l.Addr().String()
		sim, gw, err := make(url, s.url+"/webhooks/"+name)
		if err != nil {
			s.Fatal(err)
		}
		s.sims[name] = url
		srv := s.serve(l, sim)
		s.running.Go(func() {
			defer srv.Close()
			for every := time.NewTicker(tick); ctx.Err() == nil; {
				select {
				case <-every.C:
					if !s.quiet.Load() {
						sim.Deliver(ctx)
					}
				case <-ctx.Done():
				}
			}
		})
		return gw
	}
	return map[string]gateway.Gateway{
		"stripe": put("stripe", func(url, notify string) (simulator, gateway.Gateway, error) {
			gw, err := stripe.New(stripe.Options{SecretKey: stripesim.DefaultSecretKey, WebhookSecrets: []string{stripesim.DefaultWebhookSecret}, BaseURL: url, Now: s.now})
			return stripesim.New(stripesim.Config{Now: s.now, WebhookURL: notify}), gw, err
		}),
		"alipay": put("alipay", func(url, notify string) (simulator, gateway.Gateway, error) {
			sim, err := alipaysim.New(alipaysim.Config{Now: s.now})
			if err != nil {
				return nil, nil, err
			}
			gw, err := alipay.New(alipay.Options{AppID: alipaysim.DefaultAppID, SellerID: alipaysim.DefaultSellerID, PrivateKey: alipaysim.DefaultAppKey,
				PublicKey: alipaysim.DefaultPublicKey, BaseURL: url + "/gateway.do", NotifyURL: notify, Now: s.now})
			return sim, gw, err
		}),
		"wechatpay": put("wechatpay", func(url, notify string) (simulator, gateway.Gateway, error) {
			gw, err := wechatpay.New(wechatpay.Options{MerchantID: wechatpaysim.MerchantID, AppID: wechatpaysim.AppID, MerchantSerial: wechatpaysim.MerchantSerial,
				MerchantKey: wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile), APIv3Key: wechatpaysim.APIv3Key,
				PublicKeyID: wechatpaysim.PublicKeyID, PublicKey: wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile), NotifyURL: notify, BaseURL: url, Now: s.now})
			s.wechat = wechatpaysim.New(wechatpaysim.Config{Now: s.now})
			return s.wechat, gw, err
		}),
	}
}

func (s *shop) listen() net.Listener {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	return l
}

func (s *shop) serve(l net.Listener, h http.Handler) *http.Server {
	srv := httpapi.Server(h, nil)
	s.running.Go(func() { _ = srv.Serve(l) })
	return srv
}

// line is the network between the browsers and the shop. It can be cut.
type line struct {
	net.Listener
	mu   sync.Mutex
	down bool
	open []net.Conn
}

// Accept implements net.Listener.
func (l *line) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = c.Close()
	}
	l.open = append(l.open, c)
	return c, nil
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}
