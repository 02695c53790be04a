package main

import (
	"net/http"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/internal/web"
)

// faces are the API of an open store and, behind it, the pages for people.
func faces(core *holdfast.Holdfast, o httpapi.Options, pages web.Options) *httpapi.API {
	var api *httpapi.API
	pages.Stream = func(w http.ResponseWriter, r *http.Request, caller string, topics []string) {
		api.Stream(w, r, httpapi.Streaming{Caller: caller, Topics: topics, After: holdfast.FromNow})
	}
	pages.Logger = o.Logger
	o.Pages = web.New(core, pages)
	api = httpapi.New(core, o)
	return api
}
