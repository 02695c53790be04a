package web

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	placeholder = regexp.MustCompile(`\{[a-z_]*\}`)
	// usedKey is a text that a template or a handler names; one that ends in a dot
	// or in %s stands for all that begin so.
	usedKey = regexp.MustCompile(`"((?:` + keyRoots + `)\.[a-z0-9_.%]*)"`)
)

// keyRoots are what keys begin with.
const keyRoots = `web|error|shop|pay|order|admin`

func TestEveryLanguageSaysTheSame(t *testing.T) {
	first := loadWords(languages[0])
	for _, lang := range languages[1:] {
		words := loadWords(lang)
		for key, text := range first {
			other, ok := words[key]
			if !ok || strings.TrimSpace(other) == "" {
				t.Errorf("%s has no %s", lang, key)
				continue
			}
			want, got := placeholder.FindAllString(text, -1), placeholder.FindAllString(other, -1)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(slices.Compact(want), slices.Compact(got)) {
				t.Errorf("%s in %s has %v, want %v", key, lang, got, want)
			}
		}
		for key := range words {
			if _, ok := first[key]; !ok {
				t.Errorf("%s has %s, which %s has not", lang, key, languages[0])
			}
		}
	}
}

func TestEveryTextIsUsedAndEveryUsedTextIsThere(t *testing.T) {
	words := loadWords(languages[0])
	exact, begins := map[string]bool{}, []string{}
	files := loadAssets().names
	for _, key := range namedKeys(t) {
		if files[key] != nil {
			continue
		}
		if head, _, dynamic := strings.Cut(key, "%"); dynamic || strings.HasSuffix(key, ".") {
			begins = append(begins, head)
			continue
		}
		exact[key] = true
		if _, ok := words[key]; !ok {
			t.Errorf("%s is used and not there", key)
		}
	}
	for key := range words {
		if !exact[key] && !slices.ContainsFunc(begins, func(head string) bool { return strings.HasPrefix(key, head) }) {
			t.Errorf("%s is not used", key)
		}
	}
}

func namedKeys(t *testing.T) (keys []string) {
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(p)
		if err != nil || d.IsDir() || ext != ".html" && ext != ".go" || strings.HasSuffix(p, "_test.go") {
			return err
		}
		b, err := os.ReadFile(p)
		for _, m := range usedKey.FindAllStringSubmatch(string(b), -1) {
			keys = append(keys, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// inline is what the policy refuses: a script, a style, a handler in the markup.
var inline = regexp.MustCompile(`(?i)<script(?:[^>]*)?>\s*[^<\s]|<style|\sstyle=|\son[a-z]+=|javascript:`)

func TestTemplatesHaveNothingInline(t *testing.T) {
	err := fs.WalkDir(templates, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := templates.ReadFile(p)
		if m := inline.Find(b); m != nil {
			t.Errorf("%s has %q", p, m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAmountsAreWrittenAsReadersDo(t *testing.T) {
	voices := loadVoices(loadAssets())
	for _, c := range []struct {
		lang, currency, want string
		minor                int64
	}{
		{"en", "USD", "$1,234.50", 123450}, {"zh", "CNY", "¥19.90", 1990}, {"en", "CNY", "CN¥19.90", 1990}, {"zh", "JPY", "JP¥1,200", 1200},
	} {
		got, err := voices[c.lang].amount(c.minor, c.currency)
		if err != nil || got != c.want {
			t.Errorf("%d %s in %s: got %q (%v), want %q", c.minor, c.currency, c.lang, got, err, c.want)
		}
	}
}
