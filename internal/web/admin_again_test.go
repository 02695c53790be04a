package web

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

// plainly is a Sealer that keeps secrets as they are.
type plainly struct{}

func (plainly) Seal(s string) string          { return s }
func (plainly) Open(s string) (string, error) { return s, nil }

// again sends a form twice, as a browser does on reload: what is shown first, and
// where the second leads.
func (c *console) again(path, key string, fields ...string) (shown, to string) {
	c.Helper()
	fields = append([]string{"key", key}, fields...)
	first, second := c.post(path, fields...), c.post(path, fields...)
	if first.Code >= http.StatusBadRequest || second.Code != http.StatusSeeOther {
		c.Fatalf("%s: got %d, then %d\n%s", path, first.Code, second.Code, second.Body)
	}
	return first.Body.String(), second.Header().Get("Location")
}

func TestAFormThatIsSentTwiceMakesOneSecret(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	secret := regexp.MustCompile(`hf_[0-9a-v]{52}|whsec_[\w/=&#;]+`)
	count := map[string]func() (int, error){
		"/admin/keys":     func() (int, error) { all, err := c.core.Keys(t.Context()); return len(all), err },
		"/admin/webhooks": func() (int, error) { all, err := c.core.Endpoints(t.Context()); return len(all), err },
	}
	for path, fields := range map[string][]string{
		"/admin/keys":     {"name", "shop", "scope", "read", "days", "0"},
		"/admin/webhooks": {"url", "https://shop.example/hook", "types", "order.*"},
	} {
		key := strings.Repeat(strings.ToUpper(path[7:8]), len(formKey))
		shown, to := c.again(path, key, fields...)
		if !secret.MatchString(shown) {
			t.Errorf("%s: no secret is shown:\n%s", path, shown)
		}
		page := c.get(to).Body.String()
		if secret.MatchString(page) || !strings.Contains(page, "nothing was made a second time") {
			t.Errorf("%s leads to %s:\n%s", path, to, page)
		}
		if n, err := count[path](); n != 1 || err != nil {
			t.Errorf("%s: got %d, %v, want 1", path, n, err)
		}
		fields[1] += "-other"
		if w := c.post(path, append([]string{"key", key}, fields...)...); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: another form with the same key: got %d, want 422", path, w.Code)
		}
	}
}

func TestAPersonIsPutOnceForAFormThatIsSentTwice(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	form := []string{"name", "vera", "role", "viewer", "password", secretWord}
	c.again("/admin/staff", formKey, form...)
	secret, _, ok, err := c.core.SignIn(t.Context(), "vera", secretWord)
	if err != nil || !ok {
		t.Fatalf("vera cannot sign in: %v", err)
	}
	c.post("/admin/staff", append([]string{"key", formKey}, form...)...)
	if _, ok, err := c.core.Session(t.Context(), secret, false); err != nil || !ok {
		t.Errorf("the same form again ended her session (%v)", err)
	}
	form[5] += " another"
	if w := c.post("/admin/staff", append([]string{"key", formKey}, form...)...); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("another password with the same key: got %d, want 422", w.Code)
	}
}

func TestADeliveryIsReplayedOnceForAFormThatIsSentTwice(t *testing.T) {
	c := openConsole(t)
	c.signIn("operator")
	e, _, err := c.core.CreateEndpoint(t.Context(), holdfast.Key{}, holdfast.EndpointInput{URL: "https://shop.example/hook", Types: []string{"order.*"}})
	c.must(err)
	c.again("/admin/webhooks/"+e.ID+"/replay", formKey, "event", "1", "reason", "they lost it")
	if all, err := c.core.Deliveries(t.Context(), e.ID, ""); len(all) != 1 || err != nil {
		t.Errorf("got %d deliveries, %v, want 1", len(all), err)
	}
}

func TestWhatIsStoredOfAFormDoesNotLetItsPasswordBeGuessed(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	form := url.Values{"name": {"vera"}, "role": {"viewer"}, "password": {secretWord}}
	c.post("/admin/staff", "key", formKey, "name", "vera", "role", "viewer", "password", secretWord)
	lines, err := c.core.Ledger().Lines(t.Context(), ledger.LineQuery{ID: "k/staff:admin/" + formKey})
	if err != nil || len(lines) != 1 {
		t.Fatalf("got %d lines, %v", len(lines), err)
	}
	guess := sha256.Sum256([]byte("/admin/staff?" + form.Encode()))
	if lines[0].Fingerprint == sha256.Sum256(guess[:]) {
		t.Error("whoever reads the journal can try passwords on the fingerprint")
	}
}
