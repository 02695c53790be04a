package main

import (
	"bytes"
	"fmt"
	"html/template"
)

// Sizes of a chart, in pixels.
const (
	chartBar   = 26
	chartGap   = 14
	chartLeft  = 130
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

// chart draws accepted/s and p99 by preset. A preset without figures is left out.
func chart(all []figures) []byte {
	most, slowest := 0.0, 0.0
	for _, f := range all {
		if f.Accepted != nil {
			most, slowest = max(most, *f.Accepted), max(slowest, *f.P99)
		}
	}
	var list []chartRow
	y := 40
	title := "orders held per second (violet) and p99 (orange)"
	for _, f := range all {
		if f.Accepted == nil {
			continue
		}
		title = fmt.Sprintf("orders held per second (violet) and p99 (orange); %d clients, %d SKUs", f.Clients, f.SKUs)
		list = append(list, chartRow{Y: y, Label: f.Preset, Width: int(*f.Accepted / most * chartWidth), Text: fmt.Sprintf("%.0f/s", *f.Accepted),
			P99Width: int(*f.P99 / slowest * chartWidth), P99: fmt.Sprintf("%.1f ms", *f.P99)})
		y += chartBar + chartGap
	}
	var b bytes.Buffer
	// A buffer takes everything, and the template fits its data: see the test.
	_ = chartTemplate.Execute(&b, map[string]any{"Title": title, "Rows": list, "Left": chartLeft, "Width": chartLeft + chartWidth + 110, "Height": y + 10})
	return b.Bytes()
}
