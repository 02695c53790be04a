package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// assetRoot is where assets are, each under the hash of what it holds: so a
// browser may keep it for ever.
const (
	assetRoot  = "/web/assets/"
	assetCache = "public, max-age=31536000, immutable"
)

// mediaOf says which files of static are assets.
var mediaOf = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

type asset struct {
	url        string
	media      string
	raw, small []byte // small is raw with gzip
}

// assets are all of them, by name in names and by hashed name in files.
type assets struct {
	names, files map[string]*asset
}

func loadAssets() assets {
	all := assets{map[string]*asset{}, map[string]*asset{}}
	err := fs.WalkDir(static, "static", func(p string, d fs.DirEntry, err error) error {
		media := mediaOf[path.Ext(p)]
		if err != nil || d.IsDir() || media == "" {
			return err
		}
		raw, err := fs.ReadFile(static, p)
		if err != nil {
			return err
		}
		sum, ext := sha256.Sum256(raw), path.Ext(p)
		file := strings.TrimSuffix(path.Base(p), ext) + "." + hex.EncodeToString(sum[:8]) + ext
		a := &asset{assetRoot + file, media, raw, compressed(raw)}
		all.names[path.Base(p)], all.files[file] = a, a
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("web: assets: %v", err))
	}
	return all
}

func compressed(raw []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(fmt.Sprintf("web: gzip: %v", err))
	}
	_, _ = z.Write(raw) // a bytes.Buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// url is where an asset is; a name that does not exist fails the page.
func (all assets) url(name string) (string, error) {
	a := all.names[name]
	if a == nil {
		return "", fmt.Errorf("no asset %s", name)
	}
	return a.url, nil
}

func (all assets) serve(w http.ResponseWriter, r *http.Request) {
	a := all.files[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.media)
	h.Set("Cache-Control", assetCache)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(a.small)
		return
	}
	_, _ = w.Write(a.raw)
}
