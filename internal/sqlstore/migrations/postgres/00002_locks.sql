-- +goose Up

-- A row is a mutex on a balance: whoever inserts it has the balance, until it
-- deletes the row or its lease is over. Only the strategy lockrow uses it.
CREATE TABLE locks (
    account  TEXT COLLATE "C" NOT NULL,
    asset    TEXT COLLATE "C" NOT NULL,
    owner    TEXT COLLATE "C" NOT NULL,
    number   BIGINT           NOT NULL,
    until_at BIGINT           NOT NULL,
    PRIMARY KEY (account, asset)
);
