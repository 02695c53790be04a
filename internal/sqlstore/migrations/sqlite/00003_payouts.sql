-- +goose Up

-- Payouts as the table that people expect, like the views before.
CREATE VIEW payouts AS
SELECT id, state, version,
       body ->> '$.account'          AS account,
       body ->> '$.gateway'          AS gateway,
       body ->> '$.destination'      AS destination,
       body ->> '$.amount'           AS amount,
       coalesce(body ->> '$.fee', 0) AS fee,
       body ->> '$.currency'         AS currency,
       body ->> '$.ref'              AS ref,
       body ->> '$.created_at'       AS created_at,
       body ->> '$.paid_at'          AS paid_at
FROM records WHERE kind = 'payout';
