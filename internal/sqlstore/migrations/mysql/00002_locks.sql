-- +goose NO TRANSACTION
-- +goose Up

-- A row is a mutex on a balance: whoever inserts it has the balance, until it
-- deletes the row or its lease is over. Only the strategy lockrow uses it.
CREATE TABLE IF NOT EXISTS locks (
    account  VARBINARY(128) NOT NULL,
    asset    VARBINARY(128) NOT NULL,
    owner    VARBINARY(64)  NOT NULL,
    number   BIGINT         NOT NULL,
    until_at BIGINT         NOT NULL,
    PRIMARY KEY (account, asset)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
