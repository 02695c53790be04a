package main

import (
	"github.com/vbauerster/cupwriter"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bar shows how far something is. A nil bar shows nothing.
type bar struct {
	all  *mpb.Progress
	line *mpb.Bar
}

// progress starts a bar; nil when stderr is no terminal. total 0 = not known yet.
func (h *host) progress(name string, total int64) *bar {
	if !h.terminal() {
		return nil
	}
	all := mpb.New(mpb.WithOutput(h.err))
	line := all.AddBar(total,
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "), decor.Elapsed(decor.ET_STYLE_GO)),
	)
	return &bar{all, line}
}

func (b *bar) set(done, total int64) {
	if b == nil {
		return
	}
	b.line.SetTotal(total, false)
	b.line.SetCurrent(done)
}

// end leaves the bar as it is and waits until it is written.
func (b *bar) end() {
	if b == nil {
		return
	}
	b.line.Abort(false)
	b.all.Wait()
}

// terminal says whether a person is looking at stderr.
func (h *host) terminal() bool { return cupwriter.New(h.err, false).IsTerminal() }
