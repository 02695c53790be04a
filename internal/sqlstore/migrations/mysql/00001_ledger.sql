-- +goose NO TRANSACTION
-- +goose Up

-- MySQL commits after every statement, so each can be run again: a migration
-- that was killed half-way goes on where it stopped. Keys are VARBINARY, since
-- every collation that all versions have takes 'abc ' for 'abc'.

-- What makes this ledger this ledger: its name and the secret that signs
-- cursors and client secrets.
CREATE TABLE IF NOT EXISTS identity (
    one    BIGINT         NOT NULL PRIMARY KEY,
    id     VARBINARY(128) NOT NULL,
    secret VARBINARY(32)  NOT NULL,
    CONSTRAINT identity_is_one_row CHECK (one = 1),
    CONSTRAINT identity_has_an_id CHECK (LENGTH(id) > 0),
    CONSTRAINT identity_secret_has_32_bytes CHECK (LENGTH(secret) = 32)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The end of the journal. Every write moves it on, by compare-and-set.
CREATE TABLE IF NOT EXISTS head (
    one    BIGINT        NOT NULL PRIMARY KEY,
    seq    BIGINT        NOT NULL,
    events BIGINT        NOT NULL,
    at     BIGINT        NOT NULL,
    hash   VARBINARY(32) NOT NULL,
    CONSTRAINT head_is_one_row CHECK (one = 1),
    CONSTRAINT head_seq_counts CHECK (seq >= 0),
    CONSTRAINT head_events_count CHECK (events >= 0),
    CONSTRAINT head_time_is_positive CHECK (at >= 0),
    CONSTRAINT head_hash_has_32_bytes CHECK (LENGTH(hash) = 32)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO head (one, seq, events, at, hash) VALUES (1, 0, 0, 0, REPEAT(CHAR(0), 32));

-- One row per decided entry, for ever. The index on id is the only one with
-- random keys that an order pays for.
CREATE TABLE IF NOT EXISTS journal (
    seq         BIGINT         NOT NULL PRIMARY KEY,
    at          BIGINT         NOT NULL,
    id          VARBINARY(255) NOT NULL,
    fingerprint VARBINARY(32)  NOT NULL,
    code        VARBINARY(64)  NOT NULL,
    body        LONGTEXT       NOT NULL,
    hash        VARBINARY(32)  NOT NULL,
    CONSTRAINT journal_seq_counts CHECK (seq >= 1),
    CONSTRAINT journal_time_is_positive CHECK (at >= 0),
    CONSTRAINT journal_has_an_id CHECK (LENGTH(id) > 0),
    CONSTRAINT journal_fingerprint_has_32_bytes CHECK (LENGTH(fingerprint) = 32),
    CONSTRAINT journal_hash_has_32_bytes CHECK (LENGTH(hash) = 32),
    UNIQUE KEY journal_id (id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS postings (
    seq          BIGINT         NOT NULL,
    n            BIGINT         NOT NULL,
    from_account VARBINARY(128) NOT NULL,
    to_account   VARBINARY(128) NOT NULL,
    asset        VARBINARY(128) NOT NULL,
    amount       BIGINT         NOT NULL,
    hold         VARBINARY(128) NOT NULL,
    PRIMARY KEY (seq, n),
    CONSTRAINT postings_move CHECK (from_account <> to_account),
    CONSTRAINT postings_n_counts CHECK (n >= 0),
    CONSTRAINT postings_amount_in_range CHECK (amount BETWEEN 1 AND 9007199254740991),
    KEY postings_from (from_account, seq, n),
    KEY postings_to (to_account, seq, n)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS events (
    seq     BIGINT         NOT NULL PRIMARY KEY,
    entry   BIGINT         NOT NULL,
    at      BIGINT         NOT NULL,
    type    VARBINARY(128) NOT NULL,
    subject VARBINARY(128) NOT NULL,
    body    MEDIUMTEXT     NOT NULL,
    CONSTRAINT events_seq_counts CHECK (seq >= 1),
    CONSTRAINT events_have_an_entry CHECK (entry >= 1),
    CONSTRAINT events_time_is_positive CHECK (at >= 0),
    KEY events_subject (subject, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The floor: nobody but the outside world goes below zero.
CREATE TABLE IF NOT EXISTS balances (
    account  VARBINARY(128) NOT NULL,
    asset    VARBINARY(128) NOT NULL,
    external TINYINT AS (LEFT(account, 1) = '@') VIRTUAL,
    posted   BIGINT         NOT NULL,
    held     BIGINT         NOT NULL,
    version  BIGINT         NOT NULL,
    PRIMARY KEY (account, asset),
    CONSTRAINT balances_are_not_overdrawn CHECK (external = 1 OR posted - held >= 0),
    CONSTRAINT balances_have_an_account CHECK (LENGTH(account) > 0),
    CONSTRAINT balances_have_an_asset CHECK (LENGTH(asset) > 0),
    CONSTRAINT balances_held_is_not_negative CHECK (held >= 0),
    CONSTRAINT balances_version_counts CHECK (version >= 1),
    KEY balances_asset (asset, account)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS holds (
    id           VARBINARY(128) NOT NULL PRIMARY KEY,
    from_account VARBINARY(128) NOT NULL,
    to_account   VARBINARY(128) NOT NULL,
    asset        VARBINARY(128) NOT NULL,
    amount       BIGINT         NOT NULL,
    committed    BIGINT         NOT NULL,
    released     BIGINT         NOT NULL,
    state        VARBINARY(16)  NOT NULL,
    until_at     BIGINT         NOT NULL,
    cap_at       BIGINT         NOT NULL,
    CONSTRAINT holds_move CHECK (from_account <> to_account),
    CONSTRAINT holds_give_no_more_than_they_have CHECK (committed + released <= amount),
    CONSTRAINT holds_are_held_while_something_is_left CHECK ((state = 'held') = (committed + released < amount)),
    CONSTRAINT holds_have_an_id CHECK (LENGTH(id) > 0),
    CONSTRAINT holds_amount_in_range CHECK (amount BETWEEN 1 AND 9007199254740991),
    CONSTRAINT holds_committed_is_not_negative CHECK (committed >= 0),
    CONSTRAINT holds_released_is_not_negative CHECK (released >= 0),
    CONSTRAINT holds_state_is_known CHECK (state IN ('held', 'committed', 'voided', 'expired')),
    CONSTRAINT holds_until_is_positive CHECK (until_at >= 0),
    CONSTRAINT holds_cap_is_positive CHECK (cap_at >= 0),
    KEY holds_open (from_account, asset, state, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS records (
    kind    VARBINARY(128) NOT NULL,
    id      VARBINARY(128) NOT NULL,
    version BIGINT         NOT NULL,
    state   VARBINARY(255) NOT NULL,
    owner   VARBINARY(255) NOT NULL,
    ref     VARBINARY(255) NOT NULL,
    due     BIGINT         NOT NULL,
    body    MEDIUMTEXT     NOT NULL,
    CONSTRAINT records_have_a_kind CHECK (LENGTH(kind) > 0),
    CONSTRAINT records_have_an_id CHECK (LENGTH(id) > 0),
    CONSTRAINT records_version_counts CHECK (version >= 1),
    CONSTRAINT records_due_is_positive CHECK (due >= 0),
    PRIMARY KEY (kind, id),
    KEY records_state (kind, state, id),
    KEY records_owner (owner, kind, id),
    KEY records_ref (ref, kind, id),
    KEY records_due (kind, due, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- History is written once.
DROP TRIGGER IF EXISTS journal_is_append_only_update;
-- +goose StatementBegin
CREATE TRIGGER journal_is_append_only_update BEFORE UPDATE ON journal FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'journal is append-only';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS journal_is_append_only_delete;
-- +goose StatementBegin
CREATE TRIGGER journal_is_append_only_delete BEFORE DELETE ON journal FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'journal is append-only';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS postings_are_append_only_update;
-- +goose StatementBegin
CREATE TRIGGER postings_are_append_only_update BEFORE UPDATE ON postings FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'postings are append-only';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS postings_are_append_only_delete;
-- +goose StatementBegin
CREATE TRIGGER postings_are_append_only_delete BEFORE DELETE ON postings FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'postings are append-only';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS events_are_append_only_update;
-- +goose StatementBegin
CREATE TRIGGER events_are_append_only_update BEFORE UPDATE ON events FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events are append-only';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS events_are_append_only_delete;
-- +goose StatementBegin
CREATE TRIGGER events_are_append_only_delete BEFORE DELETE ON events FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events are append-only';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS head_is_kept;
-- +goose StatementBegin
CREATE TRIGGER head_is_kept BEFORE DELETE ON head FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the head of the journal cannot be deleted';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS identity_is_kept_update;
-- +goose StatementBegin
CREATE TRIGGER identity_is_kept_update BEFORE UPDATE ON identity FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the identity of a ledger never changes';
-- +goose StatementEnd
DROP TRIGGER IF EXISTS identity_is_kept_delete;
-- +goose StatementBegin
CREATE TRIGGER identity_is_kept_delete BEFORE DELETE ON identity FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the identity of a ledger never changes';
-- +goose StatementEnd

-- The tables that people expect, over the records.
CREATE OR REPLACE VIEW orders AS
SELECT CONVERT(id USING utf8mb4) AS id, CONVERT(state USING utf8mb4) AS state, version,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.customer')) AS customer,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.currency')) AS currency,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.total') AS SIGNED) AS total,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.paid') AS SIGNED) AS paid,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.refunded') AS SIGNED) AS refunded,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.created_at')) AS created_at,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.expires_at')) AS expires_at
FROM records WHERE kind = 'order';

CREATE OR REPLACE VIEW payments AS
SELECT CONVERT(id USING utf8mb4) AS id, CONVERT(state USING utf8mb4) AS state, version,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.order')) AS order_id,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.gateway')) AS gateway,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.method')) AS method,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.amount') AS SIGNED) AS amount,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.currency')) AS currency,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.ref')) AS ref
FROM records WHERE kind = 'payment';

CREATE OR REPLACE VIEW refunds AS
SELECT CONVERT(id USING utf8mb4) AS id, CONVERT(state USING utf8mb4) AS state, version,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.order')) AS order_id,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.payment')) AS payment,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.amount') AS SIGNED) AS amount
FROM records WHERE kind = 'refund';

CREATE OR REPLACE VIEW items AS
SELECT CONVERT(id USING utf8mb4) AS id, version,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.sku')) AS sku,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.name')) AS name,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.price') AS SIGNED) AS price,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.currency')) AS currency
FROM records WHERE kind = 'item';
