package holdfast

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Role is what a person may do in the console. Each includes those before it.
type Role string

const (
	RoleViewer   Role = "viewer"   // sees everything but secrets
	RoleOperator Role = "operator" // changes stock, orders, payouts, accounts and tasks
	RoleAdmin    Role = "admin"    // staff and API keys
)

// roles, the least one first.
var roles = []Role{RoleViewer, RoleOperator, RoleAdmin}

// Allows says whether somebody with this role may do what needs another. The
// zero Role allows nothing, and nothing else needs it.
func (r Role) Allows(need Role) bool {
	n := slices.Index(roles, need)
	return n >= 0 && slices.Index(roles, r) >= n
}

// Staff is a person who may sign in to the console.
type Staff struct {
	Name      string `json:"name"` // [a-z0-9._-]{1,32}; the id
	Version   int64  `json:"version"`
	Role      Role   `json:"role"`
	Disabled  bool   `json:"disabled,omitempty"`
	CreatedAt Time   `json:"created_at"`
}

// Actor is the person in the audit log.
func (s Staff) Actor(reason string) Actor {
	return Actor{ID: "staff/" + s.Name, Name: s.Name, Reason: reason}
}

// member is Staff as it is stored.
type member struct {
	Staff
	Hash  string `json:"hash"`  // argon2id of the password
	Epoch int64  `json:"epoch"` // sessions of an earlier one are over
}

const (
	kindStaff   = "staff"
	kindSession = "session"
	kindFirst   = "staff-first" // its one record says that there has been somebody
	firstID     = "first"
)

// Limits of passwords, in characters.
const (
	MinPassword = 10
	MaxPassword = 128
)

// hashParams are those that OWASP recommends for the least memory (KiB). What
// hashers hash at once is all the memory that signing in can take.
var hashParams = argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

const hashers = 4 // passwords that are hashed at once

// nobody's password is compared with when there is no such person, so that the
// time of an answer does not tell who there is. It has the cost of hashParams.
const nobody = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5LXdhcy1oZXJlIQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

var staffForm = regexp.MustCompile(`^[a-z0-9._-]{1,32}$`)

// hash runs f when there is room for it.
func (h *Holdfast) hash(ctx context.Context, f func() error) error {
	select {
	case h.hashing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("holdfast: wait to hash a password: %w", ctx.Err())
	}
	defer func() { <-h.hashing }()
	return f()
}

// StaffInput is what a caller says of a person.
type StaffInput struct {
	Name     string // [a-z0-9._-]{1,32}
	Password string // MinPassword..MaxPassword characters; "" = as it is
	Role     Role
	Disabled bool
}

func (in StaffInput) check() error {
	if !staffForm.MatchString(in.Name) {
		return reject(CodeInvalidID, "name: 1 to 32 of a-z 0-9 . _ -")
	}
	if !slices.Contains(roles, in.Role) {
		return reject(CodeInvalidField, "role: one of %v", roles)
	}
	if n := utf8.RuneCountInString(in.Password); in.Password != "" && (n < MinPassword || n > MaxPassword || !utf8.ValidString(in.Password)) {
		return reject(CodeInvalidField, "password: %d to %d characters", MinPassword, MaxPassword)
	}
	return nil
}

// PutStaff adds a person, or changes one, once for key. A change ends all of the
// person's sessions. key.Print must not give the password away: it is stored.
func (h *Holdfast) PutStaff(ctx context.Context, key Key, in StaffInput) (Staff, error) {
	if a, ok, err := replayed[Staff](ctx, h, key); ok || err != nil {
		return a.Value, err
	}
	return h.putStaff(ctx, key, in, nil)
}

func (h *Holdfast) putStaff(ctx context.Context, key Key, in StaffInput, more []ledger.Record) (Staff, error) {
	if err := in.check(); err != nil {
		return Staff{}, err
	}
	m, err := document[member](ctx, h, kindStaff, in.Name)
	var missing *Rejection
	if err != nil && !errors.As(err, &missing) {
		return Staff{}, err
	}
	if m.Version == 0 {
		if in.Password == "" {
			return Staff{}, reject(CodeInvalidField, "password: %d to %d characters", MinPassword, MaxPassword)
		}
		if m.CreatedAt, err = h.now(ctx); err != nil {
			return Staff{}, err
		}
		m.Name = in.Name
	}
	m.Role, m.Disabled = in.Role, in.Disabled
	m.Version++
	m.Epoch++
	if in.Password != "" {
		if err := h.hash(ctx, func() (err error) {
			m.Hash, err = argon2id.CreateHash(norm.NFKC.String(in.Password), &hashParams)
			return err
		}); err != nil {
			return Staff{}, fmt.Errorf("holdfast: put staff %s: %w", in.Name, err)
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return Staff{}, fmt.Errorf("holdfast: put staff %s: %w", in.Name, err)
	}
	records := append([]ledger.Record{{Kind: kindStaff, ID: m.Name, Version: m.Version, State: string(m.Role), Body: body}}, more...)
	return m.Staff, h.putRecords(ctx, key, records...)
}

// putRecords writes documents that must be at the version before, once for key.
func (h *Holdfast) putRecords(ctx context.Context, key Key, records ...ledger.Record) error {
	res, ok, err := h.fresh(ctx, ledger.Entry{ID: key.entry(), Fingerprint: key.Print, Records: records})
	if err == nil && !ok {
		return reject(CodeStale, "%s %s was changed meanwhile", res.Record.Kind, records[0].Ref)
	}
	return err
}

// StaffMembers lists the people who may sign in, at most one page of them.
func (h *Holdfast) StaffMembers(ctx context.Context) ([]Staff, error) {
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kindStaff})
	if err != nil {
		return nil, fmt.Errorf("holdfast: list staff: %w", err)
	}
	return documents[Staff](rs)
}

// firstFor is how long a token of FirstRun can be used.
const firstFor = time.Hour

const firstBytes = 8 + 20 // of the token's time and digest

// FirstRun is a token with which the first person can be added, for an hour and
// once; "" = there is somebody. It is not stored: every process can make
// one, and who uses one uses up all.
func (h *Holdfast) FirstRun(ctx context.Context) (string, error) {
	if somebody, err := h.somebody(ctx); somebody || err != nil {
		return "", err
	}
	now, err := h.now(ctx)
	if err != nil {
		return "", err
	}
	return letters(h.firstToken(now.Add(firstFor))), nil
}

// somebody says whether there are people who may sign in.
func (h *Holdfast) somebody(ctx context.Context) (bool, error) {
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kindStaff, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("holdfast: look for staff: %w", err)
	}
	return len(rs) > 0, nil
}

func (h *Holdfast) firstToken(until Time) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(until))
	return append(b, h.MAC("first run", string(b))...)[:firstBytes]
}

// FirstStaff adds the first person, an admin. false = the token is not, or no
// longer, of any use.
func (h *Holdfast) FirstStaff(ctx context.Context, token, name, password string) (bool, error) {
	b, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(strings.TrimSpace(token)))
	if err != nil || len(b) != firstBytes {
		return false, nil
	}
	now, err := h.now(ctx)
	if err != nil {
		return false, err
	}
	until := Time(binary.BigEndian.Uint64(b))
	if !hmac.Equal(b, h.firstToken(until)) || now >= until {
		return false, nil
	}
	if somebody, err := h.somebody(ctx); somebody || err != nil {
		return false, err
	}
	in := StaffInput{Name: name, Password: password, Role: RoleAdmin}
	ctx = By(ctx, Staff{Name: name}.Actor(""))
	_, err = h.putStaff(ctx, Key{}, in, []ledger.Record{{Kind: kindFirst, ID: firstID, Version: 1}})
	var r *Rejection
	if errors.As(err, &r) && r.Code == CodeStale {
		return false, nil
	}
	return err == nil, err
}

// Times of a session.
const (
	SessionIdle = 30 * time.Minute // without a request
	SessionMost = 12 * time.Hour   // in all
	seenEvery   = time.Minute      // how exactly it is known when the last request was
)

// session is a person who has signed in. Its record's id is the digest of the
// secret that the browser has.
type session struct {
	Staff     string `json:"staff"`
	Version   int64  `json:"version"`
	Epoch     int64  `json:"epoch"` // member.Epoch at the time
	CreatedAt Time   `json:"created_at"`
	SeenAt    Time   `json:"seen_at"`
	EndedAt   Time   `json:"ended_at,omitzero"`
}

func (h *Holdfast) putSession(ctx context.Context, id string, s session) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("holdfast: session of %s: %w", s.Staff, err)
	}
	return h.putRecords(ctx, Key{}, ledger.Record{Kind: kindSession, ID: id, Version: s.Version, State: s.Staff, Body: body})
}

// SignIn begins a session. false = unknown, disabled or another password; all
// three take the same time. The caller limits how often somebody may try.
func (h *Holdfast) SignIn(ctx context.Context, name, password string) (secret string, who Staff, ok bool, err error) {
	m, err := h.memberBy(ctx, name, password)
	if err != nil || m.Name == "" {
		return "", Staff{}, false, err
	}
	secret = "hfc_" + strings.ToLower(rand.Text())
	s := session{Staff: m.Name, Version: 1, Epoch: m.Epoch}
	if s.CreatedAt, err = h.now(ctx); err != nil {
		return "", Staff{}, false, err
	}
	s.SeenAt = s.CreatedAt
	err = h.putSession(By(ctx, m.Actor("")), digest(secret), s)
	return secret, m.Staff, err == nil, err
}

// memberBy finds the person whose name and password these are; the zero member =
// there is none.
func (h *Holdfast) memberBy(ctx context.Context, name, password string) (member, error) {
	m := member{Hash: nobody}
	if staffForm.MatchString(name) {
		found, err := document[member](ctx, h, kindStaff, name)
		var missing *Rejection
		if err != nil && !errors.As(err, &missing) {
			return member{}, err
		}
		if err == nil {
			m = found
		}
	}
	if utf8.RuneCountInString(password) > MaxPassword {
		password = ""
	}
	same := false
	err := h.hash(ctx, func() (err error) {
		same, err = argon2id.ComparePasswordAndHash(norm.NFKC.String(password), m.Hash)
		return err
	})
	if err != nil {
		return member{}, fmt.Errorf("holdfast: compare a password: %w", err)
	}
	if !same || m.Disabled {
		return member{}, nil
	}
	return m, nil
}

// Session finds who has signed in with a secret; false = nobody, or not any more.
// use says that this is a request of theirs, from which the session's idle time
// counts anew.
func (h *Holdfast) Session(ctx context.Context, secret string, use bool) (Staff, bool, error) {
	id := digest(secret)
	s, err := document[session](ctx, h, kindSession, id)
	var missing *Rejection
	if errors.As(err, &missing) {
		return Staff{}, false, nil
	}
	if err != nil {
		return Staff{}, false, err
	}
	m, err := document[member](ctx, h, kindStaff, s.Staff)
	if err != nil {
		return Staff{}, false, err
	}
	now, err := h.now(ctx)
	if err != nil {
		return Staff{}, false, err
	}
	if s.EndedAt != 0 || s.Epoch != m.Epoch || m.Disabled || now >= s.SeenAt.Add(SessionIdle) || now >= s.CreatedAt.Add(SessionMost) {
		return Staff{}, false, nil
	}
	if use && now >= s.SeenAt.Add(seenEvery) {
		s.SeenAt = now
		s.Version++
		var faster *Rejection // another request of the same browser was
		if err := h.putSession(ctx, id, s); err != nil && !errors.As(err, &faster) {
			return Staff{}, false, err
		}
	}
	return m.Staff, true, nil
}

// SignOut ends a session, everywhere. Ending it again changes nothing.
func (h *Holdfast) SignOut(ctx context.Context, secret string) error {
	for range maxConflict {
		s, err := document[session](ctx, h, kindSession, digest(secret))
		var missing *Rejection
		if errors.As(err, &missing) || (err == nil && s.EndedAt != 0) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.EndedAt, err = h.now(ctx); err != nil {
			return err
		}
		s.Version++
		err = h.putSession(By(ctx, Staff{Name: s.Staff}.Actor("")), digest(secret), s)
		if !errors.As(err, &missing) {
			return err
		}
	}
	return fmt.Errorf("holdfast: sign out: %d conflicts", maxConflict)
}

// ChangePassword lets a person choose another password and ends all of the
// person's sessions. false = the old one is wrong.
func (h *Holdfast) ChangePassword(ctx context.Context, name, old, password string) (bool, error) {
	m, err := h.memberBy(ctx, name, old)
	if err != nil || m.Name == "" {
		return false, err
	}
	if password == "" {
		return false, reject(CodeInvalidField, "password: %d to %d characters", MinPassword, MaxPassword)
	}
	_, err = h.PutStaff(By(ctx, m.Actor("")), Key{}, StaffInput{Name: name, Password: password, Role: m.Role})
	return err == nil, err
}
