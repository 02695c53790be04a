-- +goose Up

-- What makes this ledger this ledger: its name and the secret that signs
-- cursors and client secrets.
CREATE TABLE identity (
    one        INTEGER NOT NULL PRIMARY KEY CONSTRAINT identity_is_one_row CHECK (one = 1),
    id         TEXT    NOT NULL CONSTRAINT identity_has_an_id CHECK (length(id) > 0),
    secret     BLOB    NOT NULL CONSTRAINT identity_secret_has_32_bytes CHECK (length(secret) = 32)
) STRICT;

-- The end of the journal. Every write moves it on, by compare-and-set.
CREATE TABLE head (
    one    INTEGER NOT NULL PRIMARY KEY CONSTRAINT head_is_one_row CHECK (one = 1),
    seq    INTEGER NOT NULL CONSTRAINT head_seq_counts CHECK (seq >= 0),
    events INTEGER NOT NULL CONSTRAINT head_events_count CHECK (events >= 0),
    at     INTEGER NOT NULL CONSTRAINT head_time_is_positive CHECK (at >= 0),
    hash   BLOB    NOT NULL CONSTRAINT head_hash_has_32_bytes CHECK (length(hash) = 32)
) STRICT;

INSERT INTO head (one, seq, events, at, hash) VALUES (1, 0, 0, 0, zeroblob(32));

-- One row per decided entry, for ever. The index on id is the only one with
-- random keys that an order pays for.
CREATE TABLE journal (
    seq         INTEGER NOT NULL PRIMARY KEY CONSTRAINT journal_seq_counts CHECK (seq >= 1),
    at          INTEGER NOT NULL CONSTRAINT journal_time_is_positive CHECK (at >= 0),
    id          TEXT    NOT NULL CONSTRAINT journal_has_an_id CHECK (length(id) > 0),
    fingerprint BLOB    NOT NULL CONSTRAINT journal_fingerprint_has_32_bytes CHECK (length(fingerprint) = 32),
    code        TEXT    NOT NULL,
    body        TEXT    NOT NULL,
    hash        BLOB    NOT NULL CONSTRAINT journal_hash_has_32_bytes CHECK (length(hash) = 32)
) STRICT;

CREATE UNIQUE INDEX journal_id ON journal (id);

CREATE TABLE postings (
    seq          INTEGER NOT NULL,
    n            INTEGER NOT NULL CONSTRAINT postings_n_counts CHECK (n >= 0),
    from_account TEXT    NOT NULL,
    to_account   TEXT    NOT NULL,
    asset        TEXT    NOT NULL,
    amount       INTEGER NOT NULL CONSTRAINT postings_amount_in_range CHECK (amount BETWEEN 1 AND 9007199254740991),
    hold         TEXT    NOT NULL,
    PRIMARY KEY (seq, n),
    CONSTRAINT postings_move CHECK (from_account <> to_account)
) STRICT, WITHOUT ROWID;

CREATE INDEX postings_from ON postings (from_account, seq, n);
CREATE INDEX postings_to ON postings (to_account, seq, n);

CREATE TABLE events (
    seq     INTEGER NOT NULL PRIMARY KEY CONSTRAINT events_seq_counts CHECK (seq >= 1),
    entry   INTEGER NOT NULL CONSTRAINT events_have_an_entry CHECK (entry >= 1),
    at      INTEGER NOT NULL CONSTRAINT events_time_is_positive CHECK (at >= 0),
    type    TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    body    TEXT    NOT NULL
) STRICT;

CREATE INDEX events_subject ON events (subject, seq);

-- The floor: nobody but the outside world goes below zero.
CREATE TABLE balances (
    account  TEXT    NOT NULL CONSTRAINT balances_have_an_account CHECK (length(account) > 0),
    asset    TEXT    NOT NULL CONSTRAINT balances_have_an_asset CHECK (length(asset) > 0),
    external INTEGER NOT NULL GENERATED ALWAYS AS (substr(account, 1, 1) = '@') VIRTUAL,
    posted   INTEGER NOT NULL,
    held     INTEGER NOT NULL CONSTRAINT balances_held_is_not_negative CHECK (held >= 0),
    version  INTEGER NOT NULL CONSTRAINT balances_version_counts CHECK (version >= 1),
    PRIMARY KEY (account, asset),
    CONSTRAINT balances_are_not_overdrawn CHECK (external = 1 OR posted - held >= 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX balances_asset ON balances (asset, account);

CREATE TABLE holds (
    id           TEXT    NOT NULL PRIMARY KEY CONSTRAINT holds_have_an_id CHECK (length(id) > 0),
    from_account TEXT    NOT NULL,
    to_account   TEXT    NOT NULL,
    asset        TEXT    NOT NULL,
    amount       INTEGER NOT NULL CONSTRAINT holds_amount_in_range CHECK (amount BETWEEN 1 AND 9007199254740991),
    committed    INTEGER NOT NULL CONSTRAINT holds_committed_is_not_negative CHECK (committed >= 0),
    released     INTEGER NOT NULL CONSTRAINT holds_released_is_not_negative CHECK (released >= 0),
    state        TEXT    NOT NULL CONSTRAINT holds_state_is_known CHECK (state IN ('held', 'committed', 'voided', 'expired')),
    until_at     INTEGER NOT NULL CONSTRAINT holds_until_is_positive CHECK (until_at >= 0),
    cap_at       INTEGER NOT NULL CONSTRAINT holds_cap_is_positive CHECK (cap_at >= 0),
    CONSTRAINT holds_move CHECK (from_account <> to_account),
    CONSTRAINT holds_give_no_more_than_they_have CHECK (committed + released <= amount),
    CONSTRAINT holds_are_held_while_something_is_left CHECK ((state = 'held') = (committed + released < amount))
) STRICT, WITHOUT ROWID;

CREATE INDEX holds_open ON holds (from_account, asset, id) WHERE state = 'held';

CREATE TABLE records (
    kind    TEXT    NOT NULL CONSTRAINT records_have_a_kind CHECK (length(kind) > 0),
    id      TEXT    NOT NULL CONSTRAINT records_have_an_id CHECK (length(id) > 0),
    version INTEGER NOT NULL CONSTRAINT records_version_counts CHECK (version >= 1),
    state   TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    ref     TEXT    NOT NULL,
    due     INTEGER NOT NULL CONSTRAINT records_due_is_positive CHECK (due >= 0),
    body    TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX records_id ON records (kind, id);
CREATE INDEX records_state ON records (kind, state, id);
CREATE INDEX records_owner ON records (owner, kind, id) WHERE owner <> '';
CREATE INDEX records_ref ON records (ref, kind, id) WHERE ref <> '';
CREATE INDEX records_due ON records (kind, due, id) WHERE due > 0;

-- History is written once.
-- +goose StatementBegin
CREATE TRIGGER journal_is_append_only_update BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'journal is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER journal_is_append_only_delete BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'journal is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER postings_are_append_only_update BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER postings_are_append_only_delete BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_are_append_only_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_are_append_only_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER head_is_kept BEFORE DELETE ON head
BEGIN SELECT RAISE(ABORT, 'the head of the journal cannot be deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER identity_is_kept_update BEFORE UPDATE ON identity
BEGIN SELECT RAISE(ABORT, 'the identity of a ledger never changes'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER identity_is_kept_delete BEFORE DELETE ON identity
BEGIN SELECT RAISE(ABORT, 'the identity of a ledger never changes'); END;
-- +goose StatementEnd

-- The tables that people expect, over the records.
CREATE VIEW orders AS
SELECT id, state, version,
       body ->> '$.customer'   AS customer,
       body ->> '$.currency'   AS currency,
       body ->> '$.total'      AS total,
       body ->> '$.paid'       AS paid,
       body ->> '$.refunded'   AS refunded,
       body ->> '$.created_at' AS created_at,
       body ->> '$.expires_at' AS expires_at
FROM records WHERE kind = 'order';

CREATE VIEW payments AS
SELECT id, state, version,
       body ->> '$.order'    AS order_id,
       body ->> '$.gateway'  AS gateway,
       body ->> '$.method'   AS method,
       body ->> '$.amount'   AS amount,
       body ->> '$.currency' AS currency,
       body ->> '$.ref'      AS ref
FROM records WHERE kind = 'payment';

CREATE VIEW refunds AS
SELECT id, state, version,
       body ->> '$.order'   AS order_id,
       body ->> '$.payment' AS payment,
       body ->> '$.amount'  AS amount
FROM records WHERE kind = 'refund';

CREATE VIEW items AS
SELECT id, version,
       body ->> '$.sku'      AS sku,
       body ->> '$.name'     AS name,
       body ->> '$.price'    AS price,
       body ->> '$.currency' AS currency
FROM records WHERE kind = 'item';
