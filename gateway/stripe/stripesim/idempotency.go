package stripesim

import (
	"net/http"
	"time"
)

const (
	maxKeyLen    = 255
	keyRetention = 24 * time.Hour
	lateCall     = 10 * time.Minute
)

// stored is the first answer under an idempotency key. It is replayed for
// keyRetention, a 500 included; after that the key is new again, and a repeat
// does everything a second time.
type stored struct {
	fingerprint string // method, path and parameters
	requestID   string
	reply       reply
	inFlight    bool
}

// reply is what goes back to the caller.
type reply struct {
	status   int
	body     []byte
	original string // the first request's id, when this is a replay
}

func (a reply) write(w http.ResponseWriter) {
	if a.original != "" {
		w.Header().Set("Idempotent-Replayed", "true")
		w.Header().Set("Original-Request", a.original)
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

func keyInUse() *apiError {
	return &apiError{
		status: 409, typ: "idempotency_error", code: "idempotency_key_in_use", unexecuted: true,
		message: "There is currently another in-progress request using this Idempotency Key.",
	}
}

// answer lets happen to a call what the dial has for it. held is not nil when a
// slow answer keeps the key in use; it is to be released.
func (s *Sim) answer(c *call, e endpoint) (a reply, held *stored) {
	c.now = s.enter()
	defer s.mu.Unlock()
	c.plan = s.plan(c)
	if fail := turnedAway(c.plan.before); fail != nil {
		return fail.reply(), nil
	}
	if c.plan.late {
		arrival := c.now.Add(lateCall)
		s.at(arrival, func() {
			c.now = arrival
			s.run(c, e)
		})
	}
	if c.plan.cut {
		return reply{}, nil
	}
	return s.run(c, e)
}

// run executes the call, or replays what its key has stored.
func (s *Sim) run(c *call, e endpoint) (a reply, held *stored) {
	fingerprint := c.method + " " + c.path + "?" + c.form.encode()
	if first := s.keys[c.key]; first != nil {
		return first.replay(fingerprint), nil
	}
	a, executed := s.execute(c, e)
	if c.key == "" || !executed {
		return a, nil
	}
	first := &stored{fingerprint, c.requestID, a, c.plan.slow > 0}
	s.keys[c.key] = first
	s.at(c.now.Add(keyRetention), func() { delete(s.keys, c.key) })
	return a, first
}

func (first *stored) replay(fingerprint string) reply {
	if first.fingerprint != fingerprint {
		fail := apiError{status: 400, typ: "idempotency_error", message: "Keys for idempotent requests can only be used with the same parameters and endpoint they were first used with."}
		return fail.reply()
	}
	if first.inFlight {
		return keyInUse().reply()
	}
	a := first.reply
	a.original = first.requestID
	return a
}

// execute runs the endpoint once. executed is false when it refused the
// parameters before it began.
func (s *Sim) execute(c *call, e endpoint) (a reply, executed bool) {
	if c.plan.stored == Stored500 {
		return internalError().reply(), true
	}
	if c.plan.paid && (c.name == "checkout.expire" || c.name == "intent.cancel") {
		// The buyer may be too late or the reference wrong: then nothing happens.
		_ = s.attempt(c.id, paid, c.now, origin{})
	}
	o, fail := e.handle(s, c)
	if fail != nil && fail.unexecuted {
		return fail.reply(), false
	}
	if c.plan.stored == Stored500AfterEffect {
		return internalError().reply(), true
	}
	if fail != nil {
		return fail.reply(), true
	}
	for _, path := range c.form.list("expand") {
		s.expand(o, path)
	}
	return reply{status: http.StatusOK, body: encode(o)}, true
}

func (s *Sim) release(held *stored) {
	if held == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held.inFlight = false
}
