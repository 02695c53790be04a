package main

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
)

// Sizes of a chart, in pixels.
const (
	chartBar   = 26
	chartGap   = 14
	chartLeft  = 270 // of the labels
	chartWidth = 420 // of the longest bar
)

type chartRow struct {
	Y, Width, P99Width int
	Label, Text, P99   string
}

var chartTemplate = template.Must(template.New("chart").Parse(`<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="{{.Height}}" font-family="sans-serif" font-size="13">
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="22" font-size="15" font-weight="bold">{{.Title}}</text>
{{range .Rows}}<text x="10" y="{{.Y}}" dy="17">{{.Label}}</text>
<rect x="{{$.Left}}" y="{{.Y}}" width="{{.Width}}" height="14" fill="#4b3fd6"/>
<rect x="{{$.Left}}" y="{{.Y}}" width="{{.P99Width}}" height="9" transform="translate(0 16)" fill="#d6803f"/>
<text x="{{$.Left}}" dx="{{.Width}}" y="{{.Y}}" dy="12">&#160;{{.Text}}</text>
<text x="{{$.Left}}" dx="{{.P99Width}}" y="{{.Y}}" dy="25" font-size="11">&#160;{{.P99}}</text>
{{end}}</svg>
`))

// chart draws accepted/s and p99. A contender without figures is left out.
func chart(all []figures) []byte {
	most, slowest := 0.0, 0.0
	for _, f := range all {
		if f.Accepted != nil {
			most, slowest = max(most, *f.Accepted), max(slowest, *f.P99)
		}
	}
	var list []chartRow
	y := 40
	for _, f := range all {
		if f.Accepted == nil {
			continue
		}
		list = append(list, chartRow{Y: y, Label: label(f, all), Width: int(*f.Accepted / most * chartWidth), Text: fmt.Sprintf("%.0f/s", *f.Accepted),
			P99Width: int(*f.P99 / slowest * chartWidth), P99: fmt.Sprintf("%.1f ms", *f.P99)})
		y += chartBar + chartGap
	}
	return fill(chartTemplate, map[string]any{"Title": "orders held per second (violet) and p99 (orange)", "Rows": list,
		"Left": chartLeft, "Width": chartLeft + chartWidth + 110, "Height": y + 10})
}

// label is the preset, and what else parts f from others.
func label(f figures, all []figures) string {
	parts := []string{f.Preset}
	for _, part := range []func(figures) string{
		func(f figures) string { return f.Server },
		func(f figures) string { return fmt.Sprintf("%d clients", f.Clients) },
		func(f figures) string { return fmt.Sprintf("%d SKUs", f.SKUs) },
		func(f figures) string { return fmt.Sprintf("after %d", f.Seed) },
	} {
		for _, other := range all {
			if part(other) != part(f) {
				parts = append(parts, part(f))
				break
			}
		}
	}
	return strings.Join(parts, ", ")
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Holdfast: orders held per second</title>
<style>body{font:15px sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}td,th{padding:.3em .7em;border-bottom:1px solid #ccc;text-align:right}svg{max-width:100%}</style>
<h1>Orders held per second</h1>
{{.Chart}}
<table><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr>
{{range .Body}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{range .Lines}}<p>{{.}}</p>
{{end}}</html>
`))

// page is the chart with the table of figures and the machine, in one file.
func page(all []figures, floor *floors) []byte {
	head, body := benchTable(all)
	// The chart is made of escaped text.
	return fill(pageTemplate, map[string]any{"Chart": template.HTML(chart(all)), "Head": head, "Body": body,
		"Lines": notes(all, floor)})
}

// fill executes a template. A buffer takes everything, and the templates fit
// their data: see the tests.
func fill(t *template.Template, data map[string]any) []byte {
	var b bytes.Buffer
	_ = t.Execute(&b, data)
	return b.Bytes()
}
