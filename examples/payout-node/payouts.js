// The payout endpoint of a small service. A user takes money out of his account:
//
//   POST /payouts      Idempotency-Key: one for each press of the button
//                      {"amount": 6000, "currency": "EUR", "destination": "acct_..."}
//   GET  /payouts/ID   what has become of it
//
// HOLDFAST_URL and HOLDFAST_KEY say where Holdfast is, PORT where we are.
import http from 'node:http';
import { pathToFileURL } from 'node:url';
import { connect, Unknown } from './holdfast.js';

const MAX_BODY = 16_384; // bytes
const LATER = 2; // seconds until it is worth asking again

// What Holdfast calls these is over; everything else is still under way.
const FINAL = ['paid', 'failed', 'returned', 'cancelled'];

// Refusals that are the user's own affair. Any other one is a fault of ours.
const HIS = [400, 409, 422];

const refused = (status, code, detail, more) => ({ status, body: { code, detail, ...more } });

function shown(payout) {
  const { id, state, amount, currency, destination } = payout;
  const over = FINAL.includes(state);
  return {
    status: over ? 200 : 202, location: `/payouts/${id}`,
    body: { id, state: over ? state : 'pending', amount, currency, destination },
  };
}

function answered({ status, body }) {
  if (status < 300) return shown(body);
  if (!HIS.includes(status)) throw new Error(`holdfast refused: ${status} ${body.code}: ${body.detail}`);
  return refused(status, body.code, body.detail, { available: body.available });
}

async function request(ask, user, key, text) {
  if (!/^[\w-]{16,64}$/.test(key ?? '')) return refused(400, 'key_required', 'send an Idempotency-Key of 16 to 64 characters');
  let wish;
  try {
    wish = JSON.parse(text);
  } catch {
    return refused(400, 'invalid_json', 'that is no JSON');
  }
  const { amount, currency, destination } = wish ?? {};
  try {
    // Whose account it is, is never taken from the body.
    return answered(await ask('POST', '/v1/payouts', {
      key: `${user}-${key}`, body: { account: user, amount, currency, destination },
    }));
  } catch (err) {
    if (!(err instanceof Unknown)) throw err;
    console.error(err);
    // It may have been taken on, so it has not failed.
    return { status: 202, body: { state: 'pending', detail: 'ask again with the same Idempotency-Key' } };
  }
}

async function read(ask, user, id) {
  const res = await ask('GET', `/v1/payouts/${id}`);
  if (res.status === 404 || (res.status === 200 && res.body.account !== user)) return refused(404, 'not_found', 'there is no such payout of yours');
  return answered(res);
}

async function handle(ask, req) {
  const user = req.headers['x-user']; // stands for your log-in
  if (!/^[a-z0-9]{1,32}$/.test(user ?? '')) return refused(401, 'unauthenticated', 'log in');
  const id = /^\/payouts\/([\w-]{1,64})$/.exec(req.url)?.[1];
  if (req.method === 'GET' && id) return read(ask, user, id);
  if (req.method !== 'POST' || req.url !== '/payouts') return refused(404, 'not_found', 'there is nothing here');
  let text = '';
  for await (const part of req.setEncoding('utf8')) {
    if ((text += part).length > MAX_BODY) return refused(413, 'body_too_large', `at most ${MAX_BODY} bytes`);
  }
  return request(ask, user, req.headers['idempotency-key'], text);
}

/** The service; ask is how it asks Holdfast. */
export function service(ask) {
  return http.createServer(async (req, res) => {
    const { status, body, location } = await handle(ask, req).catch((err) => {
      console.error(err);
      return err instanceof Unknown ? refused(503, 'unavailable', 'ask again') : refused(500, 'internal', 'it is our fault');
    });
    if (location) res.setHeader('Location', location);
    if (status === 202) res.setHeader('Retry-After', LATER);
    res.writeHead(status, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify(body) + '\n');
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { HOLDFAST_URL = 'http://127.0.0.1:8080', HOLDFAST_KEY, PORT = 3000 } = process.env;
  const server = service(connect(HOLDFAST_URL, HOLDFAST_KEY));
  server.listen(PORT, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/payouts`));
}
