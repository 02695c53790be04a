package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/internal/web"
)

// A page of the shop hears of stock over the API's own stream.
func TestAShopsPageHearsOfItsStock(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	core, err := holdfast.Open(ctx, newStore(t), holdfast.Options{})
	if err != nil {
		t.Fatal(err)
	}
	api := faces(core, httpapi.Options{}, web.Options{Shop: true})
	l, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := httpapi.Server(api, nil)
	go srv.Serve(l)
	t.Cleanup(func() {
		api.Drain()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := core.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := core.PutItems(ctx, []holdfast.ItemInput{{SKU: "tee", Name: "Tee", Price: 100, Currency: "CNY", Stock: 7}}, func() {}); err != nil {
		t.Fatal(err)
	}
	if page := read(ctx, t, address(l)+"/shop/"); !strings.Contains(page, "7 available") {
		t.Errorf("the shop does not show its stock:\n%s", page)
	}
	if res := get(ctx, t, address(l)+"/shop/live", "Origin", "https://evil.example"); res.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site: got %s, want 403", res.Status)
	}
	res := get(ctx, t, address(l)+"/shop/live")
	lines := bufio.NewScanner(res.Body)
	if _, err := core.Adjust(ctx, holdfast.Key{}, holdfast.Adjustment{SKU: "tee", Quantity: -1, Reason: "lost"}); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"available":6`) {
			return
		}
	}
	t.Errorf("the stream ended without the news: %v", lines.Err())
}

func TestClientsBehindATrustedProxyHaveLimitsOfTheirOwn(t *testing.T) {
	p := start(t, nil, "--db", newStore(t), "--addr", "127.0.0.1:0", "--trusted-proxies", "10.0.0.0/8,127.0.0.1")
	status := func(client string) (status int) {
		for range 11 { // one more than may fail
			status = get(t.Context(), t, p.url+"/v1/items", "X-Forwarded-For", client).StatusCode
		}
		return status
	}
	if got := status("198.51.100.1, 10.0.0.2"); got != http.StatusTooManyRequests {
		t.Errorf("one client: got %d, want 429", got)
	}
	if got := get(t.Context(), t, p.url+"/v1/items", "X-Forwarded-For", "198.51.100.2").StatusCode; got != http.StatusUnauthorized {
		t.Errorf("another client: got %d, want 401", got)
	}
}

// get asks for a page; header is name and value, by turns.
func get(ctx context.Context, t *testing.T, url string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func read(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	b, err := io.ReadAll(get(ctx, t, url).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
