package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBenchOverHTTPComparesWithTheFloorsAndDrawsAChart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.svg")
	r := do(t, "bench", "--http", "--preset", "batched", "--seconds", "0.3", "--clients", "4", "--skus", "5", "--spread", "zipf", "--chart", file, "--json")
	var f figures
	if err := json.Unmarshal([]byte(r.out), &f); err != nil || r.status != exitOK {
		t.Fatalf("got %v, %v", r, err)
	}
	if !f.HTTP || f.Spread != spreadZipf || f.Ratios == nil || f.Ratios.Fsync <= 0 || f.Ratios.Empty <= 0 || f.BatchAvg == nil || *f.BatchAvg < 1 {
		t.Errorf("got %s, want ratios to the floors and an average batch", r.out)
	}
	drawn, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer drawn.Close()
	d := xml.NewDecoder(drawn)
	for err == nil {
		_, err = d.Token()
	}
	if err != io.EOF {
		t.Errorf("the chart is no XML: %v", err)
	}
}

func TestAChartHasABarForEveryPresetWithFigures(t *testing.T) {
	one, ten := 1.0, 10.0
	got := string(chart([]figures{{Preset: "fast", Accepted: &ten, P99: &one}, {Preset: "slow", Accepted: &one, P99: &ten}, {Preset: "<broken>", Oversold: 1}}))
	for _, want := range []string{">fast<", ">slow<", "10/s", "10.0 ms", `width="420"`, `width="42"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s in it", got, want)
		}
	}
	if strings.Contains(got, "broken") {
		t.Errorf("a preset without figures is drawn: %s", got)
	}
}

func TestZipfOrdersTheFirstSKUsMostAndEvenAllTheSame(t *testing.T) {
	skus := names("s", 10)
	for _, c := range []struct {
		spread string
		least  int // of 1000 orders, for the first SKU
		most   int
	}{{spreadEven, 100, 100}, {spreadZipf, 300, 900}} {
		b := &benching{spread: c.spread}
		pick, first := b.pick(skus, 0), 0
		for range 1000 {
			if pick() == skus[0] {
				first++
			}
		}
		if first < c.least || first > c.most {
			t.Errorf("%s: the first SKU got %d of 1000, want %d to %d", c.spread, first, c.least, c.most)
		}
	}
}
