// Run it with a Holdfast of its own: scripts/with-holdfast node --test examples/payout-node/payouts.test.js
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { connect } from './holdfast.js';
import { service } from './payouts.js';

const { HOLDFAST_URL, HOLDFAST_KEY, HOLDFAST_ADMIN_KEY, HOLDFAST_SANDBOX } = process.env;
const owner = connect(HOLDFAST_URL, HOLDFAST_ADMIN_KEY);
const WITHIN = 60_000; // milliseconds for a payout to become final
const servers = [];

async function open(server) {
  servers.push(server);
  await new Promise((up) => server.listen(0, '127.0.0.1', up));
  return `http://127.0.0.1:${server.address().port}`;
}

let url;
before(async () => {
  url = await open(service(connect(HOLDFAST_URL, HOLDFAST_KEY)));
  await sandbox('POST', '/topups/1000000eur'); // what Stripe pays out of
});
after(() => servers.forEach((s) => {
  s.closeAllConnections?.();
  s.close();
}));

async function sandbox(method, path, body) {
  const res = await fetch(`${HOLDFAST_SANDBOX}/_sim${path}`, { method, body: body && JSON.stringify(body) });
  assert.equal(res.status, 200, path);
  return res.json();
}

// transfers are those that Stripe made for a payout.
const transfers = async (id) => (await sandbox('GET', '/books')).transfers.filter((t) => t.metadata.payout_id === id);

// rich is a new user with money.
async function rich(amount) {
  const user = `u${randomUUID().replaceAll('-', '').slice(1)}`;
  assert.equal((await owner('POST', '/v1/accounts', { key: randomUUID(), body: { id: user } })).status, 201);
  const money = { currency: 'EUR', amount, reason: 'for the test' };
  assert.equal((await owner('POST', `/v1/accounts/${user}/deposits`, { key: randomUUID(), body: money })).status, 201);
  return user;
}

async function balance(user) {
  const { posted, held, available } = (await owner('GET', `/v1/accounts/${user}`)).body.balances[0];
  return { posted, held, available };
}

async function call(user, path, { method = 'GET', key, body, at = url } = {}) {
  const headers = { 'X-User': user, ...(key && { 'Idempotency-Key': key }) };
  const res = await fetch(at + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: res.status, body: await res.json(), at: res.headers.get('location') };
}

const wish = { amount: 6000, currency: 'EUR', destination: 'acct_alice' };
const payOut = (user, { key = randomUUID(), body = wish, at } = {}) => call(user, '/payouts', { method: 'POST', key, body, at });

async function final(user, at) {
  for (const until = Date.now() + WITHIN; ;) {
    const res = await call(user, at);
    if (res.status !== 202) return res;
    assert(Date.now() < until, `still ${res.body.state}`);
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

test('of twenty payouts of 60 at once from a balance of 100, one is held and nineteen are told why not', async () => {
  const user = await rich(10_000);
  const all = await Promise.all(Array.from({ length: 20 }, () => payOut(user)));
  const held = all.filter((r) => r.status === 202);
  assert.equal(held.length, 1);
  assert.equal(held[0].body.state, 'pending');
  for (const { status, body } of all.filter((r) => r !== held[0])) {
    assert.deepEqual([status, body.code, body.available], [409, 'insufficient_funds', 4000]);
  }
  const { body } = await final(user, held[0].at);
  assert.equal(body.state, 'paid');
  assert.deepEqual((await transfers(body.id)).map((t) => t.amount), [6000]);
  assert.deepEqual(await balance(user), { posted: 4000, held: 0, available: 4000 });
});

test('the same key is the same payout, whenever and however often it comes', async () => {
  const user = await rich(100_000), key = randomUUID();
  const first = await Promise.all(Array.from({ length: 5 }, () => payOut(user, { key })));
  await final(user, first[0].at);
  const again = await payOut(user, { key });
  assert.equal(new Set([...first, again].map((r) => r.body.id)).size, 1);
  assert.equal((await transfers(again.body.id)).length, 1);
  assert.equal((await balance(user)).posted, 94_000);
  const other = await payOut(user, { key, body: { ...wish, amount: 1 } });
  assert.deepEqual([other.status, other.body.code], [422, 'idempotency_key_reused']);
});

test('an answer that was lost is pending, and asking again finds the payout', async () => {
  const user = await rich(10_000), key = randomUUID();
  let lose = true;
  const wire = await open(http.createServer(async (req, res) => { // a bad line to Holdfast
    const body = await new Response(req).text();
    const { host, connection, ...headers } = req.headers;
    const told = await fetch(HOLDFAST_URL + req.url, { method: req.method, headers, body: body || undefined });
    const text = await told.text();
    if (lose) return req.socket.destroy();
    res.writeHead(told.status).end(text);
  }));
  const at = await open(service(connect(wire, HOLDFAST_KEY)));
  const lost = await payOut(user, { key, at });
  assert.deepEqual([lost.status, lost.body.state, lost.body.id], [202, 'pending', undefined]);
  lose = false;
  const found = await payOut(user, { key, at });
  assert.equal((await final(user, found.at)).body.state, 'paid');
  assert.equal((await transfers(found.body.id)).length, 1);
  assert.equal((await balance(user)).posted, 4000);
});

test('while Stripe says nothing a payout is pending, its money held, and it is paid once', async () => {
  const user = await rich(10_000);
  await sandbox('PUT', '/faults', { lost_answer: 1, lose_notice: 1 }); // done, and never told
  try {
    const { at } = await payOut(user);
    const { body: { id } } = await call(user, at);
    for (const until = Date.now() + WITHIN; (await owner('GET', `/v1/payouts/${id}`)).body.state !== 'unknown';) {
      assert(Date.now() < until, 'it never became unknown');
      await new Promise((wake) => setTimeout(wake, 50));
    }
    assert.deepEqual((await call(user, at)).body, { id, state: 'pending', ...wish });
    assert.deepEqual(await balance(user), { posted: 10_000, held: 6000, available: 4000 });
    await sandbox('PUT', '/faults', {});
    assert.equal((await final(user, at)).body.state, 'paid');
    assert.equal((await transfers(id)).length, 1);
  } finally {
    await sandbox('PUT', '/faults', {});
  }
});

test('what Stripe refuses has failed, and the money is there again', async () => {
  const user = await rich(10_000);
  await sandbox('PUT', '/faults', { balance_short: 1 });
  try {
    const { at } = await payOut(user);
    assert.equal((await final(user, at)).body.state, 'failed');
  } finally {
    await sandbox('PUT', '/faults', {});
  }
  assert.deepEqual(await balance(user), { posted: 10_000, held: 0, available: 10_000 });
});

test('what makes no sense is refused with a reason', async () => {
  const user = await rich(10_000);
  for (const [want, code, res] of [
    [401, 'unauthenticated', await payOut('')],
    [400, 'key_required', await payOut(user, { key: 'short' })],
    [400, 'missing_field', await payOut(user, { body: { amount: 1 } })],
    [400, 'invalid_type', await payOut(user, { body: { ...wish, amount: 1.5 } })],
    [422, 'payout_not_possible', await payOut(user, { body: { ...wish, destination: 'my pocket' } })],
    [404, 'not_found', await call('stranger', (await payOut(user)).at)],
    [404, 'not_found', await call(user, '/payouts/none')],
  ]) assert.deepEqual([res.status, res.body.code], [want, code]);
});
