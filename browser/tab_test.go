package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed testdata/axe.min.js
var axe string

const (
	patience = 15 * time.Second // for anything to appear
	glance   = 20 * time.Millisecond
)

// chromium is the browser that all walks share, each in a profile of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, "chromium is missing: run scripts/browser")
		os.Exit(1)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Headless}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to run as root otherwise
	}
	ctx, stop := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...))
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		fmt.Fprintln(os.Stderr, "start chromium:", err)
		os.Exit(1)
	}
	chromium = ctx
	code := m.Run()
	if err := chromedp.Cancel(ctx); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "end chromium:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// tab is a browser of one visitor, with cookies of its own.
type tab struct {
	*testing.T
	ctx  context.Context
	shop *shop
	lang string

	mu      sync.Mutex
	wrong   []string // what the console and the network said
	forgive bool     // requests may fail: the network is down
}

// visitor opens a browser that prefers lang.
func (s *shop) visitor(t *testing.T, lang string) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	b := &tab{T: t, ctx: ctx, shop: s, lang: lang}
	must(t, chromedp.Listen(ctx, b.hear))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(t, err)
	agent, err := chromedp.Run(ctx, chromedp.Evaluate[string](`navigator.userAgent`))
	must(t, err)
	_, err = chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: lang})
	must(t, err)
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == "error" || m.Type == "warning" || m.IsException() {
				b.note(m.String()+" "+m.URL, m.Source == "network")
			}
		}
	})
	t.Cleanup(func() {
		stop()
		reading.Wait()
		for _, w := range b.wrong {
			t.Errorf("the browser says: %s", w)
		}
	})
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *tab) note(what string, network bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !network || !b.forgive {
		b.wrong = append(b.wrong, what)
	}
}

// offline says whether failed requests are to be expected.
func (b *tab) offline(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgive = yes
}

// hear notes requests to anything but the shop and the simulators.
func (b *tab) hear(ev any) {
	sent, ok := ev.(*network.EventRequestWillBeSent)
	if !ok {
		return
	}
	u, err := url.Parse(sent.Request.URL)
	if err == nil && (u.Hostname() == "127.0.0.1" || u.Scheme == "data" || u.Scheme == "about") {
		return
	}
	b.note("request to "+sent.Request.URL, false)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v\n%s", err, b.text())
	}
}

// open shows a page of the shop, or of another site.
func (b *tab) open(path string) {
	b.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.shop.url + path
	}
	b.do(chromedp.Navigate(path))
}

func (b *tab) click(css string) {
	b.Helper()
	b.until(fmt.Sprintf(`(e => e && !e.disabled)(document.querySelector(%q))`, css))
	b.do(chromedp.Click(chromedp.CSS(css)))
}

// until waits for a condition of the page, through navigations.
func (b *tab) until(js string) {
	b.Helper()
	over := time.After(patience)
	every := time.NewTicker(glance)
	defer every.Stop()
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+js+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-every.C:
		case <-over:
			b.snap("failed-" + strings.ReplaceAll(b.Name(), "/", "-"))
			b.Fatalf("never came true: %s (%v)\n%s", js, err, b.text())
		}
	}
}

// sees waits until the page shows a text.
func (b *tab) sees(text string) {
	b.Helper()
	b.until(fmt.Sprintf(`document.readyState !== "loading" && document.body.innerText.includes(%q)`, text))
}

func (b *tab) text() string {
	s, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body?.innerText`))
	return s
}

func (b *tab) value(js string) string {
	b.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+js+")"))
	must(b.T, err)
	return s
}

// tabTo presses Tab until the element has the focus, which can be seen, and then
// keys.
func (b *tab) tabTo(css, keys string) {
	b.Helper()
	const most = 60
	for range most {
		b.do(chromedp.KeyEvent(kb.Tab))
		if b.value(fmt.Sprintf(`document.activeElement.matches(%q)`, css)) == "true" {
			if b.value(`getComputedStyle(document.activeElement).outlineStyle`) == "none" {
				b.Errorf("nobody sees that %s has the focus", css)
			}
			b.do(chromedp.KeyEvent(keys))
			return
		}
	}
	b.Fatalf("%d times Tab do not lead to %s\n%s", most, css, b.text())
}

// view is how a page is looked at.
type view struct {
	name   string
	width  int64
	scheme string
}

// views are those of a language. Both languages have both widths and both schemes,
// and between them every page is looked at in all four ways.
var views = map[string][]view{
	en: {{"phone-dark", 360, "dark"}, {"desk-light", 1440, "light"}},
	zh: {{"phone-light", 360, "light"}, {"desk-dark", 1440, "dark"}},
}

// audit looks at the page in every view of the language.
func (b *tab) audit(name string) {
	b.Helper()
	for _, v := range views[b.lang] {
		b.look(name, v)
	}
}

// moving are the elements that would move although the visitor wants no motion.
const moving = `[...document.querySelectorAll("*")].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0.01).map(e => e.tagName + "." + e.className)
	.concat(document.getAnimations().map(a => a.animationName ?? a.transitionProperty))`

// unfold opens the forms of the page, and fold closes those again.
const (
	unfold = `[...document.querySelectorAll(".deed:not([open])")].forEach(d => { d.open = true; d.dataset.was = "folded"; })`
	fold   = `document.querySelectorAll("[data-was=folded]").forEach(d => { d.open = false; delete d.dataset.was; })`
)

// look is a look in one view, at the forms as well: axe-core finds nothing, nothing
// is wider than the screen, nothing moves, and a picture is kept.
func (b *tab) look(name string, v view) {
	b.Helper()
	const height = 900
	b.do(chromedp.EmulateViewport(v.width, height))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: v.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	must(b.T, err)
	title := fmt.Sprintf("%s-%s-%s", name, b.lang, v.name)
	b.value(unfold)
	if wide := b.value(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide != "0" {
		b.Errorf("%s: %s px wider than the screen", title, wide)
	}
	if cut := b.value(`[...document.querySelectorAll(".work .scroll")].filter(e => innerWidth < 640 && e.scrollWidth > e.clientWidth).length`); cut != "0" {
		b.Errorf("%s: %s tables are cut off", title, cut)
	}
	if found := b.value(moving); found != "" {
		b.Errorf("%s: these move: %s", title, found)
	}
	for _, found := range b.axe() {
		b.Errorf("%s: %s", title, found)
	}
	b.value(fold)
	b.snap(title)
}

// axe is what axe-core has against the page. It takes text in the color of its
// background for hidden on purpose; here nothing is.
func (b *tab) axe() (found []string) {
	b.Helper()
	if b.value(`typeof axe`) == "undefined" {
		b.do(chromedp.Evaluate[chromedp.Void](axe + ";0"))
	}
	text := b.promised(`axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(r => JSON.stringify(r.violations.map(v =>
		v.id + ": " + v.help + ": " + v.nodes.map(n => n.html + " " + n.any.map(a => a.message).join("; ")).join(" | ")).concat(
		r.incomplete.flatMap(v => v.nodes).filter(n => n.any.some(a => a.data?.messageKey === "equalRatio")).map(n => "text like its background: " + n.html))))`)
	must(b.T, json.Unmarshal([]byte(text), &found))
	return found
}

// promised waits for the text that js promises.
func (b *tab) promised(js string) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](js, chromedp.EvalAwaitPromise))
	must(b.T, err)
	return text
}

// snap keeps a picture of the page in $HOLDFAST_SCREENSHOTS, or ../screenshots.
func (b *tab) snap(name string) {
	b.Helper()
	dir := os.Getenv("HOLDFAST_SCREENSHOTS")
	if dir == "" {
		dir = "../screenshots"
	}
	must(b.T, os.MkdirAll(dir, 0o755))
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	yes := true
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &yes, OptimizeForSpeed: &yes})
	must(b.T, err)
	must(b.T, os.WriteFile(filepath.Join(dir, name+".png"), picture.Data, 0o644))
}
