package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed all:templates
var templates embed.FS

// shape is what the layout is given; the page in it sees Data only.
type shape struct {
	Path string // of this page
	Now  int64  // Unix ms of the store, which countdowns are against; 0 = not known
	Data any
}

// loadPages parses every page together with the layout and the parts of its
// folder, which are the files whose names begin with an underscore.
func loadPages(funcs template.FuncMap) map[string]*template.Template {
	pages := map[string]*template.Template{}
	files, err := fs.Glob(templates, "templates/*/*.html")
	if err != nil {
		panic(fmt.Sprintf("web: templates: %v", err))
	}
	for _, file := range files {
		dir, base := path.Split(file)
		if strings.HasPrefix(base, "_") {
			continue
		}
		t := template.Must(template.New(base).Funcs(funcs).ParseFS(templates, "templates/*.html"))
		if parts, _ := fs.Glob(templates, dir+"_*.html"); len(parts) > 0 {
			template.Must(t.ParseFS(templates, parts...))
		}
		template.Must(t.ParseFS(templates, file))
		pages[path.Base(dir)+"/"+strings.TrimSuffix(base, ".html")] = t
	}
	return pages
}

// render writes a page whole, or nothing of it.
func (vo *voice) render(w http.ResponseWriter, status int, name string, in shape) error {
	page := vo.pages[name]
	if page == nil {
		return fmt.Errorf("web: there is no page %s", name)
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, "layout", in); err != nil {
		return fmt.Errorf("web: page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // what fails now is a browser that has gone
	return nil
}
