package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

func (a *API) events() {
	resume := &huma.Param{Name: "Last-Event-ID", In: "header", Description: "Go on behind this event", Schema: stringSchema()}
	after := &huma.Param{Name: "after", In: "query", Description: "Like Last-Event-ID; now = only what happens from now on", Schema: stringSchema()}
	a.stream(route{
		method: http.MethodGet, path: "/v1/orders/{id}/events", name: "followOrder", tag: "Events", scope: holdfast.ScopeRead, order: itself,
		summary: "Follow an order", about: "The stream of the topic order/{id}. A buyer sees what happened and when, without the documents.",
		query: []*huma.Param{after}, header: []*huma.Param{resume},
	}, func(c *call) []string { return []string{holdfast.TopicOrder + "/" + c.id("id")} })
	a.stream(route{
		method: http.MethodGet, path: "/v1/events", name: "followEvents", tag: "Events", scope: holdfast.ScopeRead,
		summary: "Follow everything that happens", about: "Events are numbered without gaps and never change. format=json answers one page instead of a stream.",
		query:  append(pageQuery()[:1:1], after, &huma.Param{Name: "format", In: "query", Schema: enumSchema("sse", "json")}),
		header: []*huma.Param{resume},
	}, func(*call) []string { return nil })
	a.push(after, resume)
}

// stream adds an endpoint that answers with a stream of topics.
func (a *API) stream(rt route, topics func(*call) []string) {
	rt.prepare()
	a.describeStream(&rt)
	a.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := bounded(r)
		defer cancel()
		c := call{api: a, w: w, r: r, status: rt.status}
		err := c.admit(ctx, &rt)
		if err == nil && c.query.Get("format") == "json" {
			err = c.eventPage(ctx)
		} else if err == nil {
			s := Streaming{Caller: c.who.id, Topics: topics(&c)}
			if c.who.buyer {
				s.View = forBuyers
			}
			err = a.serveStream(ctx, w, r, s)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// forBuyers leaves out what events are about: it is the shop's.
func forBuyers(m *holdfast.Message) bool {
	if kindOf(m.Topic) == holdfast.TopicOrder {
		m.Data = nil
	}
	return true
}

// eventsPage is one page of the feed.
type eventsPage struct {
	Items []ledger.Event `json:"items"`
	After int64          `json:"after" doc:"Pass it as after for the next page"`
}

func (c *call) eventPage(ctx context.Context) error {
	after, err := resumeAt(c.r, 0)
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	rows, err := c.api.core.Ledger().Events(ctx, ledger.EventQuery{After: after, Limit: limit})
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		after = rows[len(rows)-1].Seq
	}
	c.answer(eventsPage{Items: list(rows), After: after})
	return nil
}
