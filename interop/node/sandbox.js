// What the tests stand on: the sandbox, the shop's mailbox, and the buyer.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';

const TIMEOUT = 10_000; // ms, for whatever is awaited

// openMailbox is where the shop is notified. It acknowledges all it gets, in
// the words of Alipay, which the others take as well.
export async function openMailbox() {
  const notices = []; // that nobody has taken: {path, headers, body}
  let arrived = () => {};
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const part of req) parts.push(part);
    notices.push({ path: req.url, headers: req.headers, body: Buffer.concat(parts).toString() });
    res.end('success');
    arrived();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => server.close(),
    // next waits for the first notice on a path that is wanted, and takes it.
    async next(path, wanted) {
      const deadline = Date.now() + TIMEOUT;
      for (;;) {
        const i = notices.findIndex((n) => n.path === path && wanted(n));
        if (i >= 0) return notices.splice(i, 1)[0];
        const left = deadline - Date.now();
        assert(left > 0, `no such notice on ${path}`);
        await new Promise((wake) => {
          const timer = setTimeout(wake, left);
          arrived = () => { clearTimeout(timer); wake(); };
        });
      }
    },
  };
}

// openSandbox starts holdfast sandbox on free ports and returns what it says
// of itself. close ends it.
export function openSandbox(binary, webhookURL) {
  return start(binary, [
    'sandbox', '--json', '--webhook-url', webhookURL, '--wechatpay-by-certificate',
    '--addr', '127.0.0.1:0', '--alipay-addr', '127.0.0.1:0', '--wechatpay-addr', '127.0.0.1:0',
  ]);
}

// openShop starts holdfast serve on a free port and an empty store in dir, for
// everybody on this machine. close ends it.
export function openShop(binary, dir) {
  return start(binary, ['serve', '--json', '--open', '--private-endpoints', '--db', `sqlite:${dir}/shop.db`, '--addr', '127.0.0.1:0'], {
    HOLDFAST_MASTER_KEY: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  });
}

async function start(binary, args, env = {}) {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const kill = () => child.kill();
  process.once('exit', kill);
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  const ended = new Promise((done) => child.once('close', done));
  const told = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${args[0]} does not start`)), TIMEOUT);
    let text = '';
    child.stdout.on('data', (part) => {
      text += part;
      if (!text.endsWith('}\n')) return; // not all of it yet
      clearTimeout(timer);
      resolve(JSON.parse(text));
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${args[0]} ended: ${code}`)));
  });
  return { ...told, close: async () => { kill(); await ended; } };
}

// text is what is at an address.
export async function text(url) {
  const res = await fetch(url);
  assert.equal(res.status, 200, url);
  return res.text();
}

// visit opens the page of a payment: where it is, and whether it can be paid.
export async function visit(url) {
  const res = await fetch(url);
  const page = await res.text();
  assert.equal(res.status, 200, `${url}\n${page.slice(page.indexOf('<main'))}`);
  return { url: res.url, payable: page.includes('name="action" value="pay"') };
}

// pay opens the page of a payment and presses its button.
export async function pay(url) {
  const page = await visit(url);
  assert(page.payable, `${page.url} has no button to pay`);
  const res = await fetch(page.url, { method: 'POST', redirect: 'manual', body: new URLSearchParams({ action: 'pay' }) });
  assert.equal(res.status, 303);
  assert(!(await visit(page.url)).payable, `${page.url} still wants to be paid`);
}

// changes are all texts that differ from one in the lowest bit of one character.
export function* changes(body) {
  for (let i = 0; i < body.length; i++) {
    yield body.slice(0, i) + String.fromCharCode(body.charCodeAt(i) ^ 1) + body.slice(i + 1);
  }
}
