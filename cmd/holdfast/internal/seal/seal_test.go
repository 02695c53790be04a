package seal

import (
	"errors"
	"strings"
	"testing"
)

func keys(t *testing.T, text ...string) Keys {
	t.Helper()
	k, err := Parse(strings.Join(text, ","))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newKey(t *testing.T, id string) string {
	t.Helper()
	k, err := New(id)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestASealedSecretOpensUnderItsKeyAlone(t *testing.T) {
	a, b := newKey(t, "a"), newKey(t, "b")
	const secret = "sk_live_canary"
	sealed := keys(t, a).Seal(secret)
	if strings.Contains(sealed, "canary") || !Sealed(sealed) {
		t.Fatalf("got %q", sealed)
	}
	if again := keys(t, a).Seal(secret); again == sealed {
		t.Error("the same secret was sealed to the same text twice: the nonce is not random")
	}
	for _, k := range []Keys{keys(t, a), keys(t, b, a)} {
		if got, err := k.Open(sealed + "\n"); err != nil || got != secret {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := keys(t, b).Open(sealed); !errors.Is(err, ErrKeyUnknown) {
		t.Errorf("under another key: got %v, want %v", err, ErrKeyUnknown)
	}
	other := "a" + strings.TrimPrefix(b, "b")
	if _, err := keys(t, other).Open(sealed); !errors.Is(err, ErrForged) {
		t.Errorf("under another key of that name: got %v, want %v", err, ErrForged)
	}
}

// Every byte of a sealed secret counts, the name of its key included.
func TestAChangedByteIsNoticed(t *testing.T) {
	raw := newKey(t, "aa")
	k := keys(t, raw, "ab"+strings.TrimPrefix(raw, "aa"))
	sealed := k.Seal("secret")
	for i := len(Mark); i < len(sealed); i++ {
		for _, c := range "bA:" {
			bad := sealed[:i] + string(c) + sealed[i+1:]
			if bad == sealed {
				continue
			}
			if got, err := k.Open(bad); err == nil {
				t.Errorf("byte %d as %q: opened as %q", i, c, got)
			}
		}
	}
}

func TestKeysThatAreNoneAreRefusedWithoutShowingThem(t *testing.T) {
	good := newKey(t, "a")
	for _, bad := range []string{"", ",", "canary", "a:canary", "a:Y2FuYXJ5", good + "," + good, "a b:" + good, ":" + strings.TrimPrefix(good, "a:")} {
		_, err := Parse(bad)
		if err == nil {
			t.Errorf("%q was taken", bad)
			continue
		}
		if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), strings.TrimPrefix(good, "a:")) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if _, err := New("a:b"); err == nil {
		t.Error("a name with a colon was taken")
	}
}
