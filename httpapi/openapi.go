package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

// document is the OpenAPI document before the first route. Its schemas are made
// from the Go types that handlers read and write.
func document(version string) *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[holdfast.Time](), reflect.TypeFor[time.Time]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Holdfast", Version: version,
			Description: "Checkout that does not oversell. Amounts are integers in minor units of their currency. " +
				"Every request that changes something carries an Idempotency-Key of its own: sent again with the same key and the same body, " +
				"it is answered as before (Idempotent-Replayed: true) and nothing happens twice. Refusals are application/problem+json with a stable code.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Components: &huma.Components{
			Schemas: schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key":   {Type: "http", Scheme: "bearer", Description: "An API key, hf_..."},
				"buyer": {Type: "apiKey", In: "header", Name: "Client-Secret", Description: "The client_secret of one order or ticket, for the buyer's page"},
			},
		},
	}
}

// schemaName keeps the ledger's words apart from the API's.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if t.PkgPath() == reflect.TypeFor[ledger.Event]().PkgPath() {
		return "Ledger" + name
	}
	return name
}

// written is the finished document as JSON.
func (a *API) written() ([]byte, error) {
	for name, s := range a.doc.Components.Schemas.Map() {
		if !strings.HasSuffix(name, "Body") {
			s.AdditionalProperties = nil // answers may gain members; requests are read strictly
		}
		for _, p := range s.Properties {
			if p.Type == huma.TypeArray {
				p.Nullable = false // an empty list is [], both ways
			}
		}
	}
	return json.Marshal(a.doc)
}

// describe adds a route with its body and its answer to the document.
func (a *API) describe(rt *route, in, out reflect.Type) {
	op := a.operation(rt)
	if in != reflect.TypeFor[none]() {
		op.RequestBody = &huma.RequestBody{Required: true, Content: a.content("application/json", in)}
	}
	answer := &huma.Response{Description: http.StatusText(rt.status)}
	if out != reflect.TypeFor[none]() {
		answer.Content = a.content("application/json", out)
	}
	op.Responses[strconv.Itoa(rt.status)] = answer
	for status, like := range rt.other {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: a.content("application/json", reflect.TypeOf(like))}
	}
	for _, status := range rt.also {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: answer.Content}
	}
	a.doc.AddOperation(op)
}

// describeStream adds a route that answers with events.
func (a *API) describeStream(rt *route) {
	op := a.operation(rt)
	content := map[string]*huma.MediaType{"text/event-stream": {Schema: stringSchema()}}
	if parameter(rt.query, "format") != nil {
		content["application/json"] = a.content("application/json", reflect.TypeFor[eventsPage]())["application/json"]
	}
	a.content("application/json", reflect.TypeFor[holdfast.Message]()) // what data holds
	op.Responses["200"] = &huma.Response{Description: "id is the number of the event, data a Message as JSON", Content: content}
	a.doc.AddOperation(op)
}

// describeRaw adds a route whose body and answer are somebody else's.
func (a *API) describeRaw(rt *route) {
	op := a.operation(rt)
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"*/*": {}}}
	op.Responses["200"] = &huma.Response{Description: "Taken"}
	a.doc.AddOperation(op)
}

func (a *API) operation(rt *route) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.name, Tags: []string{rt.tag},
		Summary: rt.summary, Description: rt.about,
		Responses: map[string]*huma.Response{
			"default": {Description: "Refused, or the outcome is unknown", Content: a.content("application/problem+json", reflect.TypeFor[Problem]())},
		},
	}
	for _, name := range rt.ids {
		form := "^[A-Za-z0-9_-]{1,64}$"
		if name == "ticket" {
			form = `^[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{16,128}$`
		}
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: name, In: "path", Required: true,
			Schema: &huma.Schema{Type: huma.TypeString, Pattern: form},
		})
	}
	op.Parameters = append(op.Parameters, rt.query...)
	op.Parameters = append(op.Parameters, rt.header...)
	if rt.keyed {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "Idempotency-Key", In: "header", Required: true, Description: "Makes the request happen once",
			Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[A-Za-z0-9_-]{16,128}$"},
		})
	}
	if rt.scope != "" {
		op.Security = append(op.Security, map[string][]string{"key": {rt.scope}})
	}
	if rt.order != nil || rt.ticket || rt.push {
		op.Security = append(op.Security, map[string][]string{"buyer": {}})
	}
	return op
}

func (a *API) content(media string, t reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: a.doc.Components.Schemas.Schema(t, true, t.Name())}}
}

func stringSchema() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

func enumSchema(values ...string) *huma.Schema {
	s := stringSchema()
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return s
}

// pageQuery are the parameters of a list.
func pageQuery() []*huma.Param {
	least, most := 1.0, float64(MaxLimit)
	return []*huma.Param{
		{Name: "limit", In: "query", Description: "Rows; absent = 50", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}},
		{Name: "cursor", In: "query", Description: "next_cursor of the page before", Schema: stringSchema()},
	}
}
