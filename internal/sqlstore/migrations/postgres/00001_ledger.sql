-- +goose Up

-- What makes this ledger this ledger: its name and the secret that signs
-- cursors and client secrets.
CREATE TABLE identity (
    one    BIGINT           NOT NULL PRIMARY KEY CONSTRAINT identity_is_one_row CHECK (one = 1),
    id     TEXT COLLATE "C" NOT NULL CONSTRAINT identity_has_an_id CHECK (length(id) > 0),
    secret BYTEA            NOT NULL CONSTRAINT identity_secret_has_32_bytes CHECK (octet_length(secret) = 32)
);

-- The end of the journal. Every write moves it on, by compare-and-set.
CREATE TABLE head (
    one    BIGINT NOT NULL PRIMARY KEY CONSTRAINT head_is_one_row CHECK (one = 1),
    seq    BIGINT NOT NULL CONSTRAINT head_seq_counts CHECK (seq >= 0),
    events BIGINT NOT NULL CONSTRAINT head_events_count CHECK (events >= 0),
    at     BIGINT NOT NULL CONSTRAINT head_time_is_positive CHECK (at >= 0),
    hash   BYTEA  NOT NULL CONSTRAINT head_hash_has_32_bytes CHECK (octet_length(hash) = 32)
) WITH (fillfactor = 50);

INSERT INTO head (one, seq, events, at, hash) VALUES (1, 0, 0, 0, decode(repeat('00', 32), 'hex'));

-- One row per decided entry, for ever. The index on id is the only one with
-- random keys that an order pays for.
CREATE TABLE journal (
    seq         BIGINT           NOT NULL PRIMARY KEY CONSTRAINT journal_seq_counts CHECK (seq >= 1),
    at          BIGINT           NOT NULL CONSTRAINT journal_time_is_positive CHECK (at >= 0),
    id          TEXT COLLATE "C" NOT NULL CONSTRAINT journal_has_an_id CHECK (length(id) > 0),
    fingerprint BYTEA            NOT NULL CONSTRAINT journal_fingerprint_has_32_bytes CHECK (octet_length(fingerprint) = 32),
    code        TEXT COLLATE "C" NOT NULL,
    body        TEXT             NOT NULL,
    hash        BYTEA            NOT NULL CONSTRAINT journal_hash_has_32_bytes CHECK (octet_length(hash) = 32)
);

CREATE UNIQUE INDEX journal_id ON journal (id);

CREATE TABLE postings (
    seq          BIGINT           NOT NULL,
    n            BIGINT           NOT NULL CONSTRAINT postings_n_counts CHECK (n >= 0),
    from_account TEXT COLLATE "C" NOT NULL,
    to_account   TEXT COLLATE "C" NOT NULL,
    asset        TEXT COLLATE "C" NOT NULL,
    amount       BIGINT           NOT NULL CONSTRAINT postings_amount_in_range CHECK (amount BETWEEN 1 AND 9007199254740991),
    hold         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (seq, n),
    CONSTRAINT postings_move CHECK (from_account <> to_account)
);

CREATE INDEX postings_from ON postings (from_account, seq, n);
CREATE INDEX postings_to ON postings (to_account, seq, n);

CREATE TABLE events (
    seq     BIGINT           NOT NULL PRIMARY KEY CONSTRAINT events_seq_counts CHECK (seq >= 1),
    entry   BIGINT           NOT NULL CONSTRAINT events_have_an_entry CHECK (entry >= 1),
    at      BIGINT           NOT NULL CONSTRAINT events_time_is_positive CHECK (at >= 0),
    type    TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    body    TEXT             NOT NULL
);

CREATE INDEX events_subject ON events (subject, seq);

-- The floor: nobody but the outside world goes below zero.
CREATE TABLE balances (
    account  TEXT COLLATE "C" NOT NULL CONSTRAINT balances_have_an_account CHECK (length(account) > 0),
    asset    TEXT COLLATE "C" NOT NULL CONSTRAINT balances_have_an_asset CHECK (length(asset) > 0),
    external INTEGER          NOT NULL GENERATED ALWAYS AS (CASE WHEN left(account, 1) = '@' THEN 1 ELSE 0 END) STORED,
    posted   BIGINT           NOT NULL,
    held     BIGINT           NOT NULL CONSTRAINT balances_held_is_not_negative CHECK (held >= 0),
    version  BIGINT           NOT NULL CONSTRAINT balances_version_counts CHECK (version >= 1),
    PRIMARY KEY (account, asset),
    CONSTRAINT balances_are_not_overdrawn CHECK (external = 1 OR posted - held >= 0)
) WITH (fillfactor = 50);

CREATE INDEX balances_asset ON balances (asset, account);

CREATE TABLE holds (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY CONSTRAINT holds_have_an_id CHECK (length(id) > 0),
    from_account TEXT COLLATE "C" NOT NULL,
    to_account   TEXT COLLATE "C" NOT NULL,
    asset        TEXT COLLATE "C" NOT NULL,
    amount       BIGINT           NOT NULL CONSTRAINT holds_amount_in_range CHECK (amount BETWEEN 1 AND 9007199254740991),
    committed    BIGINT           NOT NULL CONSTRAINT holds_committed_is_not_negative CHECK (committed >= 0),
    released     BIGINT           NOT NULL CONSTRAINT holds_released_is_not_negative CHECK (released >= 0),
    state        TEXT COLLATE "C" NOT NULL CONSTRAINT holds_state_is_known CHECK (state IN ('held', 'committed', 'voided', 'expired')),
    until_at     BIGINT           NOT NULL CONSTRAINT holds_until_is_positive CHECK (until_at >= 0),
    cap_at       BIGINT           NOT NULL CONSTRAINT holds_cap_is_positive CHECK (cap_at >= 0),
    CONSTRAINT holds_move CHECK (from_account <> to_account),
    CONSTRAINT holds_give_no_more_than_they_have CHECK (committed + released <= amount),
    CONSTRAINT holds_are_held_while_something_is_left CHECK ((state = 'held') = (committed + released < amount))
);

CREATE INDEX holds_open ON holds (from_account, asset, id) WHERE state = 'held';

CREATE TABLE records (
    kind    TEXT COLLATE "C" NOT NULL CONSTRAINT records_have_a_kind CHECK (length(kind) > 0),
    id      TEXT COLLATE "C" NOT NULL CONSTRAINT records_have_an_id CHECK (length(id) > 0),
    version BIGINT           NOT NULL CONSTRAINT records_version_counts CHECK (version >= 1),
    state   TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    ref     TEXT COLLATE "C" NOT NULL,
    due     BIGINT           NOT NULL CONSTRAINT records_due_is_positive CHECK (due >= 0),
    body    TEXT             NOT NULL
);

CREATE UNIQUE INDEX records_id ON records (kind, id);
CREATE INDEX records_state ON records (kind, state, id);
CREATE INDEX records_owner ON records (owner, kind, id) WHERE owner <> '';
CREATE INDEX records_ref ON records (ref, kind, id) WHERE ref <> '';
CREATE INDEX records_due ON records (kind, due, id) WHERE due > 0;

-- History is written once.
-- +goose StatementBegin
CREATE FUNCTION holdfast_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION USING ERRCODE = '45000', MESSAGE = TG_ARGV[0]; END $$;
-- +goose StatementEnd
CREATE TRIGGER journal_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_refuse('journal is append-only');
CREATE TRIGGER postings_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON postings
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_refuse('postings are append-only');
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_refuse('events are append-only');
CREATE TRIGGER head_is_kept BEFORE DELETE OR TRUNCATE ON head
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_refuse('the head of the journal cannot be deleted');
CREATE TRIGGER identity_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON identity
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_refuse('the identity of a ledger never changes');

-- The tables that people expect, over the records.
CREATE VIEW orders AS
SELECT id, state, version,
       (NULLIF(body, '')::json ->> 'customer') AS customer,
       (NULLIF(body, '')::json ->> 'currency') AS currency,
       (NULLIF(body, '')::json ->> 'total')::bigint AS total,
       (NULLIF(body, '')::json ->> 'paid')::bigint AS paid,
       (NULLIF(body, '')::json ->> 'refunded')::bigint AS refunded,
       (NULLIF(body, '')::json ->> 'created_at') AS created_at,
       (NULLIF(body, '')::json ->> 'expires_at') AS expires_at
FROM records WHERE kind = 'order';

CREATE VIEW payments AS
SELECT id, state, version,
       (NULLIF(body, '')::json ->> 'order') AS order_id,
       (NULLIF(body, '')::json ->> 'gateway') AS gateway,
       (NULLIF(body, '')::json ->> 'method') AS method,
       (NULLIF(body, '')::json ->> 'amount')::bigint AS amount,
       (NULLIF(body, '')::json ->> 'currency') AS currency,
       (NULLIF(body, '')::json ->> 'ref') AS ref
FROM records WHERE kind = 'payment';

CREATE VIEW refunds AS
SELECT id, state, version,
       (NULLIF(body, '')::json ->> 'order') AS order_id,
       (NULLIF(body, '')::json ->> 'payment') AS payment,
       (NULLIF(body, '')::json ->> 'amount')::bigint AS amount
FROM records WHERE kind = 'refund';

CREATE VIEW items AS
SELECT id, version,
       (NULLIF(body, '')::json ->> 'sku') AS sku,
       (NULLIF(body, '')::json ->> 'name') AS name,
       (NULLIF(body, '')::json ->> 'price')::bigint AS price,
       (NULLIF(body, '')::json ->> 'currency') AS currency
FROM records WHERE kind = 'item';
