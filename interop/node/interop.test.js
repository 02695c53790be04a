// SDKs that others have written pay, ask, close, repay and believe
// notifications at holdfast sandbox. HOLDFAST is the path of the binary.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AlipaySdk } from 'alipay-sdk';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import WechatPay from 'wechatpay-node-v3';
import { changes, openMailbox, openSandbox, openShop, pay, text, visit } from './sandbox.js';

let mail, sandbox;

before(async () => {
  assert(process.env.HOLDFAST, 'HOLDFAST is not set');
  mail = await openMailbox();
  sandbox = await openSandbox(process.env.HOLDFAST, `${mail.url}/stripe`);
});

after(async () => {
  await sandbox?.close();
  mail?.close();
});

function openStripe() {
  const at = new URL(sandbox.stripe.api);
  return new Stripe(sandbox.stripe.secret_key, {
    host: at.hostname, port: at.port, protocol: 'http', maxNetworkRetries: 0, telemetry: false, timeout: 10_000,
  });
}

const session = (key) => [{
  mode: 'payment', success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/cart', client_reference_id: key,
  line_items: [{ quantity: 2, price_data: { currency: 'eur', unit_amount: 4444, product_data: { name: '茶 & Tee' } } }],
}, { idempotencyKey: key }];

test('stripe pays, repays and believes the notices', async () => {
  const sdk = openStripe();
  const made = await sdk.checkout.sessions.create(...session('order-1'));
  assert.equal((await sdk.checkout.sessions.create(...session('order-1'))).id, made.id);
  await pay(made.url);
  const seen = await sdk.checkout.sessions.retrieve(made.id, { expand: ['payment_intent'] });
  assert.equal(seen.payment_status, 'paid');
  assert.equal(seen.payment_intent.amount_received, 8888);
  await assert.rejects(sdk.checkout.sessions.expire(made.id), { type: 'StripeInvalidRequestError' });

  const part = await sdk.refunds.create({ payment_intent: seen.payment_intent.id, amount: 888 });
  const read = await sdk.refunds.retrieve(part.id);
  assert.deepEqual([read.status, read.amount], ['succeeded', 888]);
  await assert.rejects(sdk.refunds.create({ payment_intent: seen.payment_intent.id, amount: 8001 }), { type: 'StripeInvalidRequestError' });

  for (const type of ['checkout.session.completed', 'refund.created']) {
    const n = await mail.next('/stripe', (n) => JSON.parse(n.body).type === type);
    const read = (body) => sdk.webhooks.constructEvent(body, n.headers['stripe-signature'], sandbox.stripe.webhook_secrets);
    assert.equal(read(n.body).type, type);
    for (const changed of changes(n.body)) assert.throws(() => read(changed), { type: 'StripeSignatureVerificationError' });
  }
});

test('stripe closes what is unpaid', async () => {
  const sdk = openStripe();
  const made = await sdk.checkout.sessions.create(...session('order-2'));
  assert.equal((await sdk.checkout.sessions.expire(made.id)).status, 'expired');
  assert(!(await visit(made.url)).payable);
  const intent = await sdk.paymentIntents.create({ amount: 1000, currency: 'jpy' });
  assert.equal((await sdk.paymentIntents.cancel(intent.id)).status, 'canceled');
});

async function openAlipay() {
  const a = sandbox.alipay;
  return new AlipaySdk({
    appId: a.app_id, gateway: a.api, keyType: 'PKCS8', timeout: 10_000,
    privateKey: (await text(a.private_key)).trim(), alipayPublicKey: (await text(a.public_key)).trim(),
  });
}

const trade = (number, code) => ({
  notifyUrl: `${mail.url}/alipay`, returnUrl: 'https://shop.example/ok',
  bizContent: { out_trade_no: number, subject: '茶 Tee', body: 'two', total_amount: '88.88', product_code: code },
});

// ask calls Alipay, which must sign its answer.
const ask = (sdk, method, bizContent) => sdk.exec(method, { bizContent }, { validateSign: true });

test('alipay-sdk pays, repays and believes the notices', async () => {
  const sdk = await openAlipay();
  const made = await sdk.exec('alipay.trade.precreate', trade('order-1', 'FACE_TO_FACE_PAYMENT'), { validateSign: true });
  await pay(made.qrCode);
  const seen = await ask(sdk, 'alipay.trade.query', { out_trade_no: 'order-1' });
  assert.deepEqual([seen.code, seen.tradeStatus, seen.totalAmount], ['10000', 'TRADE_SUCCESS', '88.88']);
  assert.equal((await ask(sdk, 'alipay.trade.close', { out_trade_no: 'order-1' })).subCode, 'ACQ.TRADE_STATUS_ERROR');

  const part = { out_trade_no: 'order-1', out_request_no: 'refund-1', refund_amount: '8.88' };
  const moved = await ask(sdk, 'alipay.trade.refund', part);
  assert.deepEqual([moved.code, moved.fundChange, moved.refundFee], ['10000', 'Y', '8.88']);
  const read = await ask(sdk, 'alipay.trade.fastpay.refund.query', { out_trade_no: 'order-1', out_request_no: 'refund-1' });
  assert.deepEqual([read.refundStatus, read.refundAmount], ['REFUND_SUCCESS', '8.88']);
  const over = await ask(sdk, 'alipay.trade.refund', { ...part, out_request_no: 'refund-2', refund_amount: '80.01' });
  assert.equal(over.subCode, 'ACQ.REASON_TRADE_REFUND_FEE_ERR');

  for (const refund of ['', 'refund-1']) {
    const form = (n) => Object.fromEntries(new URLSearchParams(n.body));
    const told = form(await mail.next('/alipay', (n) => {
      const f = form(n);
      return f.out_trade_no === 'order-1' && f.trade_status === 'TRADE_SUCCESS' && (f.out_biz_no ?? '') === refund;
    }));
    assert.equal(told.subject, '茶 Tee');
    assert(sdk.checkNotifySignV2(told));
    for (const name of Object.keys(told).filter((name) => name !== 'sign_type' && told[name] !== '')) { // which is not signed
      const [changed] = changes(told[name]);
      assert(!sdk.checkNotifySignV2({ ...told, [name]: changed }), `believed with another ${name}`);
    }
  }
});

test('alipay-sdk pays by every address', async () => {
  const sdk = await openAlipay();
  const app = new URL('/app', sandbox.alipay.api);
  for (const [number, at] of Object.entries({
    'by-page': sdk.pageExecute('alipay.trade.page.pay', 'GET', trade('by-page', 'FAST_INSTANT_TRADE_PAY')),
    'by-wap': sdk.pageExecute('alipay.trade.wap.pay', 'GET', trade('by-wap', 'QUICK_WAP_WAY')),
    'by-app': `${app}?${sdk.sdkExecute('alipay.trade.app.pay', trade('by-app', 'QUICK_MSECURITY_PAY'))}`,
  })) {
    await pay(at);
    assert.equal((await ask(sdk, 'alipay.trade.query', { out_trade_no: number })).tradeStatus, 'TRADE_SUCCESS', number);
  }
});

test('alipay-sdk closes what is unpaid', async () => {
  const sdk = await openAlipay();
  const made = await sdk.exec('alipay.trade.precreate', trade('order-2', 'FACE_TO_FACE_PAYMENT'), { validateSign: true });
  assert((await visit(made.qrCode)).payable);
  assert.equal((await ask(sdk, 'alipay.trade.close', { out_trade_no: 'order-2' })).code, '10000');
  assert.equal((await ask(sdk, 'alipay.trade.query', { out_trade_no: 'order-2' })).tradeStatus, 'TRADE_CLOSED');
  assert(!(await visit(made.qrCode)).payable);
});

// openWechat trusts the platform certificate, which is all this SDK can. It
// knows one address, so that its requests are led away from there.
async function openWechat() {
  const w = sandbox.wechatpay;
  const sdk = new WechatPay({
    appid: w.appid, mchid: w.mchid, serial_no: w.serial, key: w.apiv3_key,
    privateKey: Buffer.from(await text(w.private_key)), publicKey: Buffer.from(await text(w.public_key)),
  });
  const own = sdk.httpService;
  const here = (url) => url.replace('https://api.mch.weixin.qq.com', w.api);
  sdk.createHttp({
    get: (url, headers) => own.get(here(url), headers),
    post: (url, params, headers) => own.post(here(url), params, headers),
  });
  return sdk;
}

const order = (number) => ({
  out_trade_no: number, description: '茶 & Tee', notify_url: `${mail.url}/wechatpay`, amount: { total: 8888, currency: 'CNY' },
});

const scan = (code) => `${sandbox.wechatpay.api}/scan?code=${encodeURIComponent(code)}`;

test('wechatpay-node-v3 pays, repays and believes the notices', async () => {
  const sdk = await openWechat();
  const made = await sdk.transactions_native(order('order-1'));
  assert.equal(made.status, 200, made.error);
  await pay(scan(made.data.code_url));
  const seen = await sdk.query({ out_trade_no: 'order-1' });
  assert.deepEqual([seen.data.trade_state, seen.data.amount.payer_total], ['SUCCESS', 8888]);
  const shut = await sdk.close('order-1');
  assert.deepEqual([shut.status, JSON.parse(shut.error).code], [400, 'ORDER_PAID']);

  const part = { out_trade_no: 'order-1', out_refund_no: 'refund-1', notify_url: `${mail.url}/wechatpay`, amount: { refund: 888, total: 8888, currency: 'CNY' } };
  const taken = await sdk.refunds(part);
  assert.equal(taken.status, 200, taken.error);
  const read = await sdk.find_refunds('refund-1');
  assert.deepEqual([read.data.status, read.data.amount.refund], ['SUCCESS', 888]);
  const over = await sdk.refunds({ ...part, out_refund_no: 'refund-2', amount: { ...part.amount, refund: 8001 } });
  assert.deepEqual([over.status, JSON.parse(over.error).code], [400, 'INVALID_REQUEST']);

  for (const [type, number] of Object.entries({ 'TRANSACTION.SUCCESS': 'out_trade_no', 'REFUND.SUCCESS': 'out_refund_no' })) {
    const n = await mail.next('/wechatpay', (n) => JSON.parse(n.body).event_type === type);
    const believes = (body) => sdk.verifySign({
      timestamp: n.headers['wechatpay-timestamp'], nonce: n.headers['wechatpay-nonce'],
      serial: n.headers['wechatpay-serial'], signature: n.headers['wechatpay-signature'], body,
    });
    assert(await believes(n.body));
    for (const changed of changes(n.body)) assert(!(await believes(changed)), `believed ${changed}`);
    const { ciphertext, associated_data, nonce } = JSON.parse(n.body).resource;
    assert.equal(sdk.decipher_gcm(ciphertext, associated_data, nonce)[number], part[number]);
  }
});

test('wechatpay-node-v3 closes what is unpaid', async () => {
  const sdk = await openWechat();
  const made = await sdk.transactions_native(order('order-2'));
  assert.equal((await sdk.close('order-2')).status, 204);
  assert.equal((await sdk.query({ out_trade_no: 'order-2' })).data.trade_state, 'CLOSED');
  assert(!(await visit(scan(made.data.code_url))).payable);
});

test('standardwebhooks believes what holdfast delivers, with either secret', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-shop-'));
  const shop = await openShop(process.env.HOLDFAST, dir);
  try {
    const post = async (path, body) => {
      const res = await fetch(`${shop.api}${path}`, {
        method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() }, body: JSON.stringify(body),
      });
      assert(res.ok, `${path}: ${res.status}`);
      return res.json();
    };
    await post('/items', { sku: 'tee', name: '茶 & Tee', price: 1500, currency: 'EUR', stock: 3 });
    const made = await post('/webhook-endpoints', { url: `${mail.url}/shop`, types: ['order.*'] });
    const { secret } = await post(`/webhook-endpoints/${made.id}/rotate`, {});
    const order = await post('/orders', { lines: [{ sku: 'tee', quantity: 1 }] });
    const n = await mail.next('/shop', () => true);
    for (const s of [made.secret, secret]) {
      const told = new Webhook(s).verify(n.body, n.headers);
      assert.deepEqual([told.type, told.data.order], ['order.held', order.id]);
      for (const changed of changes(n.body)) assert.throws(() => new Webhook(s).verify(changed, n.headers));
    }
    assert.throws(() => new Webhook(`whsec_${Buffer.alloc(32).toString('base64')}`).verify(n.body, n.headers));
  } finally {
    await shop.close();
    await rm(dir, { recursive: true });
  }
});
