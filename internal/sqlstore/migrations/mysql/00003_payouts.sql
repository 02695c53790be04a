-- +goose NO TRANSACTION
-- +goose Up

-- Payouts as the table that people expect, like the views before.
CREATE OR REPLACE VIEW payouts AS
SELECT CONVERT(id USING utf8mb4) AS id, CONVERT(state USING utf8mb4) AS state, version,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.account'))            AS account,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.gateway'))            AS gateway,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.destination'))        AS destination,
       CAST(JSON_EXTRACT(NULLIF(body, ''), '$.amount') AS SIGNED)           AS amount,
       CAST(COALESCE(JSON_EXTRACT(NULLIF(body, ''), '$.fee'), 0) AS SIGNED) AS fee,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.currency'))           AS currency,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.ref'))                AS ref,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.created_at'))         AS created_at,
       JSON_UNQUOTE(JSON_EXTRACT(NULLIF(body, ''), '$.paid_at'))            AS paid_at
FROM records WHERE kind = 'payout';
