package dial

import (
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed pages/*.html
var shared embed.FS

// Pages reads a simulator's templates. They may use "style", for the head; and
// "dial", which needs .Dial (Rows) and .T with the words dial, dialHelp and
// apply, and whose script also makes every button with data-post post there.
func Pages(own fs.FS, pattern string) *template.Template {
	return template.Must(template.Must(template.ParseFS(shared, "pages/*.html")).ParseFS(own, pattern))
}

// Language is what ?lang= says, else the browser's first choice of zh and en,
// else en.
func Language(r *http.Request) string {
	if lang := r.URL.Query().Get("lang"); lang == "en" || lang == "zh" {
		return lang
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		main, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if main == "en" || main == "zh" {
			return main
		}
	}
	return "en"
}

// Render answers with one page. data must have every field that it asks for.
func Render(w http.ResponseWriter, pages *template.Template, name string, data any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	// What is left of errors here is a browser that has gone.
	_ = pages.ExecuteTemplate(w, name, data)
}
