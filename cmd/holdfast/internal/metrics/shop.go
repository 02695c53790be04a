package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-pay/holdfast"
)

// healthTime bounds the questions to the store; the other figures are in memory.
const healthTime = 5 * time.Second

// shop is a prometheus.Collector of the core's figures.
type shop struct {
	core    *holdfast.Holdfast
	version string
	all     map[string]*prometheus.Desc
}

// described are all figures: name, what it is, and labels.
var described = []struct {
	name, help string
	labels     []string
}{
	{"info", "1, and what is running.", []string{"version", "store", "durability"}},
	{"up", "Whether the store answers.", nil},
	{"journal_lines", "Lines of the journal.", nil},
	{"tasks_overdue", "Tasks that should have run by now; at most one page is counted.", nil},
	{"tasks_stuck", "Tasks that were given up, for a person to look at; at most one page is counted.", nil},

	{"orders_total", "Orders by what became of them: held, replayed, unknown, or the code of the refusal.", []string{"outcome"}},

	{"store_queries_total", "Queries outside of writing transactions.", nil},
	{"store_decisions_total", "Batches and entries that the store was asked to decide.", nil},
	{"store_transactions_total", "Transactions begun for them.", nil},
	{"batch_entries", "Group commits by their entries.", nil},

	{"queue_workers", "Workers that serve the line.", nil},
	{"queue_waiting", "Entries in the line.", nil},
	{"queue_partitions", "SKUs for which somebody waits.", nil},
	{"queue_oldest_seconds", "Age of the oldest entry in the line.", nil},
	{"queue_drain_seconds", "Time to serve all that wait, at the present rate.", nil},
	{"queue_rate", "Entries decided a second, smoothed.", nil},
	{"queue_commit_seconds", "Mean time of a commit, or the age of one that hangs.", nil},
	{"queue_entries_total", "Entries by what the line did with them.", []string{"did"}},
	{"queue_commit_entries", "The line's commits by their entries.", nil},

	{"gate_entries_total", "Entries by what the gate did with them; sold_out cost neither counter nor store.", []string{"did"}},
	{"gate_resyncs_total", "Looks of the gate at the store.", nil},
	{"gate_failures_total", "Failures of the gate's counter, or of a look at the store.", nil},
}

func newShop(core *holdfast.Holdfast, version string) *shop {
	s := &shop{core: core, version: version, all: map[string]*prometheus.Desc{}}
	for _, d := range described {
		s.all[d.name] = prometheus.NewDesc("holdfast_"+d.name, d.help, d.labels, nil)
	}
	return s
}

// Describe implements prometheus.Collector.
func (s *shop) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s.all {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *shop) Collect(out chan<- prometheus.Metric) {
	is := sheet{s.all, out}
	s.health(is)
	stats := s.core.Stats()
	for outcome, n := range stats.Orders {
		is.counter("orders_total", n, outcome)
	}
	is.counter("store_queries_total", stats.Queries)
	is.counter("store_decisions_total", stats.Decisions)
	is.counter("store_transactions_total", stats.Transactions)
	if stats.Sizes != nil {
		is.sizes("batch_entries", stats.Sizes, stats.Entries)
	}
	if q := stats.Queue; q != nil {
		is.gauge("queue_workers", float64(q.Workers))
		is.gauge("queue_waiting", float64(q.Waiting))
		is.gauge("queue_partitions", float64(q.Partitions))
		is.gauge("queue_oldest_seconds", q.Oldest.Seconds())
		is.gauge("queue_drain_seconds", q.Drain.Seconds())
		is.gauge("queue_rate", q.Rate)
		is.gauge("queue_commit_seconds", q.Commit.Seconds())
		for did, n := range map[string]int64{
			"accepted": q.Accepted, "repeated": q.Repeats, "full": q.Full, "sold_out": q.SoldOut, "straight": q.Straight,
			"served": q.Served, "gave_up": q.GaveUp, "failed": q.Failed, "lost": q.Lost,
		} {
			is.counter("queue_entries_total", n, did)
		}
		is.sizes("queue_commit_entries", q.Batches[:], q.Served)
	}
	if g := stats.Gate; g != nil {
		for did, n := range map[string]int64{
			"straight": g.Straight, "through": g.Through, "repeated": g.Repeats, "blind": g.Blind, "refused": g.Refused,
			"sold_out": g.SoldOut, "turned_away": g.TurnedAway, "returned": g.Returned,
		} {
			is.counter("gate_entries_total", n, did)
		}
		is.counter("gate_resyncs_total", g.Resyncs)
		is.counter("gate_failures_total", g.Failures)
	}
}

func (s *shop) health(is sheet) {
	ctx, cancel := context.WithTimeout(context.Background(), healthTime)
	defer cancel()
	h, err := s.core.Health(ctx)
	if err != nil {
		is.gauge("up", 0)
		return
	}
	is.gauge("up", 1)
	is.gauge("info", 1, s.version, h.Store, h.Durability)
	is.gauge("journal_lines", float64(h.Entries))
	is.gauge("tasks_overdue", float64(h.TasksOverdue))
	is.gauge("tasks_stuck", float64(h.TasksStuck))
}

// sheet is what the figures of one look are written on.
type sheet struct {
	all map[string]*prometheus.Desc
	out chan<- prometheus.Metric
}

func (s sheet) gauge(name string, v float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(s.all[name], prometheus.GaugeValue, v, labels...)
}

func (s sheet) counter(name string, n int64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(s.all[name], prometheus.CounterValue, float64(n), labels...)
}

// sizes writes a histogram: classes[i] are those of 2^(i-1) to 2^i - 1 entries, the
// last those of more as well.
func (s sheet) sizes(name string, classes []int64, entries int64) {
	count, buckets := uint64(0), map[float64]uint64{}
	for i, n := range classes {
		count += uint64(n)
		if i < len(classes)-1 {
			buckets[float64(int64(1)<<i-1)] = count
		}
	}
	s.out <- prometheus.MustNewConstHistogram(s.all[name], count, float64(entries), buckets)
}
