package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"

	"github.com/holdfast-pay/holdfast"
)

//go:embed lang
var catalogues embed.FS

// languages are those that there are catalogues of; the first is for visitors
// who want none of them.
var languages = []string{"en", "zh"}

const languageCookie = "holdfast_language"

// voice speaks one language.
type voice struct {
	Lang  string
	words map[string]string
	money *currency.Formatter
	pages map[string]*template.Template
}

func loadVoices(all assets) map[string]*voice {
	voices := map[string]*voice{}
	for _, lang := range languages {
		vo := &voice{Lang: lang, words: loadWords(lang), money: currency.NewFormatter(currency.NewLocale(lang))}
		vo.pages = loadPages(template.FuncMap{
			"lang": func() string { return lang }, "has": func(key string) bool { return vo.words[key] != "" }, "asset": all.url, "t": vo.say, "money": vo.amount, "name": vo.name,
			"seconds": func(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) },
		})
		voices[lang] = vo
	}
	return voices
}

// loadWords reads all catalogues of a language as one.
func loadWords(lang string) map[string]string {
	words := map[string]string{}
	files, err := fs.Glob(catalogues, "lang/"+lang+"/*.json")
	for _, file := range files {
		var part map[string]string
		b, readErr := catalogues.ReadFile(file)
		if err = readErr; err == nil {
			err = json.Unmarshal(b, &part)
		}
		if err != nil {
			break
		}
		maps.Copy(words, part)
	}
	if err != nil {
		panic(fmt.Sprintf("web: catalogue of %s: %v", lang, err))
	}
	return words
}

// say is the text of a key. args are name and value, by turns: each {name} in
// the text becomes its value.
func (vo *voice) say(key string, args ...any) (string, error) {
	text, ok := vo.words[key]
	if !ok || len(args)%2 != 0 {
		return "", fmt.Errorf("no text %q in %s with %d args", key, vo.Lang, len(args))
	}
	if len(args) == 0 {
		return text, nil
	}
	pairs := make([]string, len(args))
	for i, a := range args {
		if pairs[i] = fmt.Sprint(a); i%2 == 0 {
			pairs[i] = "{" + pairs[i] + "}"
		}
	}
	return strings.NewReplacer(pairs...).Replace(text), nil
}

// amount is minor units as the language writes them.
func (vo *voice) amount(minor int64, code string) (string, error) {
	a, err := currency.NewAmountFromInt64(minor, code)
	if err != nil {
		return "", fmt.Errorf("amount of %s: %w", code, err)
	}
	return vo.money.Format(a), nil
}

// name is an item's in the language, or its own.
func (vo *voice) name(item holdfast.Item) string {
	if n := item.Names[vo.Lang]; n != "" {
		return n
	}
	return item.Name
}

// languageOf is what the visitor has chosen, else what the browser prefers.
func languageOf(r *http.Request) string {
	if c, err := r.Cookie(languageCookie); err == nil && slices.Contains(languages, c.Value) {
		return c.Value
	}
	tags, _, _ := language.ParseAcceptLanguage(r.Header.Get("Accept-Language")) // none, if it is not of the form
	for _, tag := range tags {
		if base, _ := tag.Base(); slices.Contains(languages, base.String()) {
			return base.String()
		}
	}
	return languages[0]
}

// languageAge is how long a choice is remembered, in seconds.
const languageAge = 365 * 24 * 60 * 60

func chooseLanguage(v *visit) error {
	lang, back := v.r.PostFormValue("lang"), v.r.PostFormValue("back")
	if !slices.Contains(languages, lang) || !local(back) {
		return errForm
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: languageCookie, Value: lang, Path: "/", MaxAge: languageAge, HttpOnly: true, Secure: v.secure(), SameSite: http.SameSiteLaxMode,
	})
	return v.goTo(back)
}

// secure says whether browsers come over TLS.
func (s *site) secure() bool { return strings.HasPrefix(s.o.URL, "https://") }
