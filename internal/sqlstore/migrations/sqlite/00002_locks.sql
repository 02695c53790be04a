-- +goose Up

-- A row is a mutex on a balance: whoever inserts it has the balance, until it
-- deletes the row or its lease is over. Only the strategy lockrow uses it.
CREATE TABLE locks (
    account  TEXT    NOT NULL,
    asset    TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    number   INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    PRIMARY KEY (account, asset)
) STRICT, WITHOUT ROWID;
