package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// benched runs a bench and reads its lines.
func benched(t *testing.T, args ...string) []figures {
	t.Helper()
	r := do(t, append([]string{"bench", "--seconds", "0.2", "--json"}, args...)...)
	if r.status != exitOK {
		t.Fatalf("got %v, want status %d", r, exitOK)
	}
	var all []figures
	for line := range strings.Lines(r.out) {
		var f figures
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if !f.ok() || f.Accepted == nil || f.Ratios == nil {
			t.Errorf("got %s, want figures", line)
		}
		all = append(all, f)
	}
	return all
}

func TestBenchOverHTTPComparesWithTheFloorsAndDrawsAChart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.svg")
	f := benched(t, "--http", "--preset", "batched", "--clients", "4", "--skus", "5", "--spread", "zipf", "--chart", file)[0]
	if !f.HTTP || f.Spread != spreadZipf || *f.Ratios.Fsync <= 0 || *f.Ratios.Empty <= 0 || *f.Ratios.RefusedEmpty <= 0 || f.BatchAvg == nil || *f.BatchAvg < 1 {
		t.Errorf("got %+v, want ratios to the floors and an average batch", f)
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

func TestBenchComparesWithTheTextbook(t *testing.T) {
	all := benched(t, "--preset", "batched,textbook", "--clients", "8")
	if len(all) != 2 || all[1].Preset != textbookPreset || all[1].Pool != 1 || *all[1].Ratios.Textbook != 1 || all[1].SQLTx != nil {
		t.Fatalf("got %+v, want the textbook beside batched", all)
	}
	f := all[0]
	if *f.Ratios.Textbook != thousandth(*f.Accepted / *all[1].Accepted) || f.Ratios.TextbookP99 == nil {
		t.Errorf("got %+v, want %v divided by %v", f.Ratios, *f.Accepted, *all[1].Accepted)
	}
	if *f.TriesAvg < 1 || *f.SQLTx <= 0 || *f.SQLTx > 1 || f.CPU == nil {
		t.Errorf("got %v tries and %v transactions an order, want group commit", *f.TriesAvg, *f.SQLTx)
	}
}

func TestBenchMeasuresEverythingWithEverything(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "kept.db")
	file := filepath.Join(t.TempDir(), "report.html")
	all := benched(t, "--store", store, "--preset", "batched,conditional", "--clients", "1,2", "--skus", "1,3", "--seed", "0,250", "--chart", file, "--seconds", "0.1")
	var got []string
	for _, f := range all {
		got = append(got, label(f, all))
	}
	slices.Sort(got)
	if got = slices.Compact(got); len(all) != 16 || len(got) != 16 || got[0] != "batched, 1 clients, 1 SKUs, after 0" {
		t.Errorf("got %d lines, %q, want 16 different ones", len(all), got)
	}
	if r := do(t, "verify", "--db", store); r.status != exitOK {
		t.Errorf("the store that was given is not kept: %v", r)
	}
	report, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(report), "http://www.w3.org/2000/svg", "")
	if !strings.Contains(text, "<svg") || !strings.Contains(text, "<td>conditional</td>") || !strings.Contains(text, "Machine:") || strings.Contains(text, "://") {
		t.Errorf("the report lacks chart, table or machine, or needs the network:\n%s", text)
	}
}

func TestBenchPlacesManyOrdersInOneRequest(t *testing.T) {
	for _, way := range [][]string{{"--http"}, {}} {
		f := benched(t, append(way, "--preset", "batched", "--bulk", "7", "--clients", "2", "--skus", "2")...)[0]
		if f.Bulk != 7 || f.SQLTx == nil || *f.SQLTx > 0.5 || *f.Refused <= 0 {
			t.Errorf("%v: got %+v, want 7 orders a request", way, f)
		}
	}
}

func TestBenchAsksForPayouts(t *testing.T) {
	for _, way := range []string{"--http", "--skus=3"} {
		all := benched(t, way, "--payouts", "--preset", "batched", "--clients", "4")
		if f := all[0]; !f.Payouts || *f.Accepted <= 0 || *f.Refused <= 0 {
			t.Errorf("%s: got %+v, want payouts that are held and refused", way, f)
		}
	}
}

func TestBenchStartsRequestsAtARate(t *testing.T) {
	f := benched(t, "--preset", "batched", "--rate", "100", "--clients", "16")[0]
	if f.Rate != 100 || *f.Accepted > 300 {
		t.Errorf("got %+v, want about 100 a second", f)
	}
}

func TestBenchRefusesWhatCannotBeMeant(t *testing.T) {
	for _, line := range []string{"--bulk 0", "--bulk 101", "--rate -1", "--seed -1", "--clients 1,5000", "--skus 100001", "--chart x.png",
		"--preset textbook --http", "--preset textbook --bulk 2", "--spread odd",
		"--payouts --bulk 2", "--payouts --seed 0,1"} {
		if r := do(t, append([]string{"bench"}, strings.Fields(line)...)...); r.status != exitUsage {
			t.Errorf("%s: got %v, want status %d", line, r, exitUsage)
		}
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

func TestATableShowsWhatIsWrongAndHidesTheFigures(t *testing.T) {
	ten := 10.0
	head, body := benchTable([]figures{{Preset: "good", Accepted: &ten}, {Preset: "bad", Oversold: 3}})
	at := slices.Index(head, any("oversold"))
	if at < 0 || body[0][at] != "" || body[1][at] != "3" || body[1][slices.Index(head, any("accepted/s"))] != "" {
		t.Errorf("got %v, %v, want 3 oversold and no figures of it", head, body)
	}
	if slices.Contains(head, any("undersold")) {
		t.Errorf("got %v, want no column of nothing", head)
	}
}

func TestTheBestPoolIsTheTextbook(t *testing.T) {
	one, ten := 1.0, 10.0
	entry := func(pool int, accepted *float64) *contender {
		t := heat{store: "s", preset: textbookPreset, pool: pool, clients: 64}
		return &contender{heat: t, figures: figures{Preset: t.preset, Pool: pool, Accepted: accepted}}
	}
	for _, c := range []struct {
		of   []*contender
		pool int
	}{
		{[]*contender{entry(8, &one), entry(16, &ten), entry(64, &one)}, 16},
		{[]*contender{entry(8, &ten), entry(16, nil), entry(64, &ten)}, 16}, // that one sold wrongly is said
	} {
		if got := best(c.of); len(got) != 1 || got[0].Pool != c.pool {
			t.Errorf("got %+v, want %d connections", got, c.pool)
		}
	}
}

func TestStreamsHearOfTheStockAndAreMeasured(t *testing.T) {
	r := do(t, "bench", "--streams", "3", "--json")
	var f streamFigures
	if err := json.Unmarshal([]byte(r.out), &f); err != nil || r.status != exitOK {
		t.Fatalf("got %v, want figures: %v", r, err)
	}
	if f.Streams != 3 || f.Changes != streamChanges || f.MedianMS <= 0 || f.AllMS < f.MedianMS {
		t.Errorf("got %+v", f)
	}
}
