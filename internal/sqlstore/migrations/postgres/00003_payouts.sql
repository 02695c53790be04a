-- +goose Up

-- Payouts as the table that people expect, like the views before.
CREATE VIEW payouts AS
SELECT id, state, version,
       (NULLIF(body, '')::json ->> 'account')                  AS account,
       (NULLIF(body, '')::json ->> 'gateway')                  AS gateway,
       (NULLIF(body, '')::json ->> 'destination')              AS destination,
       (NULLIF(body, '')::json ->> 'amount')::bigint           AS amount,
       coalesce((NULLIF(body, '')::json ->> 'fee')::bigint, 0) AS fee,
       (NULLIF(body, '')::json ->> 'currency')                 AS currency,
       (NULLIF(body, '')::json ->> 'ref')                      AS ref,
       (NULLIF(body, '')::json ->> 'created_at')               AS created_at,
       (NULLIF(body, '')::json ->> 'paid_at')                  AS paid_at
FROM records WHERE kind = 'payout';
