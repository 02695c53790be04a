package httpapi

import (
	"errors"
	"net/http"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
)

// webhooks takes the notifications of the gateways. They are authentic by their
// signature over the raw bytes, so nothing of a body is read before the gateway
// has verified it.
func (a *API) webhooks() {
	rt := route{
		method: http.MethodPost, path: "/webhooks/{gateway}", name: "notify", tag: "Webhooks",
		summary: "A gateway's notification", about: "In the gateway's own form and with its own signature; answered in its own form.",
	}
	rt.prepare()
	a.describeRaw(&rt)
	a.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		if err := a.notify(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
}

func (a *API) notify(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := bounded(r)
	defer cancel()
	name := r.PathValue("gateway")
	if !word(name, 1, MaxID) {
		return errNotFound
	}
	doc, err := readBody(w, r, MaxWebhook, nil)
	if err != nil {
		return err
	}
	err = a.core.Notify(ctx, name, r.Header, doc)
	var no *holdfast.Rejection
	switch {
	case err == nil:
		a.core.Acknowledge(name, w, true)
		return nil
	case errors.As(err, &no) && no.Code == holdfast.CodeGatewayUnknown:
		return errNotFound
	case errors.Is(err, gateway.ErrSignatureMissing):
		return refuse(codeSignatureMissing, "no signature")
	case errors.Is(err, gateway.ErrSignatureInvalid):
		return refuse(codeSignatureInvalid, "the signature does not fit these bytes")
	case errors.Is(err, gateway.ErrTimestamp):
		return refuse(codeTimestamp, "too old, or from the future")
	case errors.Is(err, gateway.ErrMalformed):
		return refuse(codeMalformedWebhook, "authentic, but not of the published form")
	}
	a.log.ErrorContext(ctx, "notification not processed", "gateway", name, "request_id", w.Header().Get("Request-Id"), "err", err)
	return refuse(codeWebhookUnavailable, "send it again")
}
