// Holdfast over HTTP, with nothing but fetch.

const TRIES = 3;
const PATIENCE = 5_000; // milliseconds for one try
const PAUSE = 200; // milliseconds before the second try, twice that before the third

/** Nobody knows whether it was done. It is safe to ask again under the same key. */
export class Unknown extends Error {}

/**
 * Gives a function that asks Holdfast and answers { status, body }. Every answer
 * below 500 is final. Otherwise it asks again under the same key, for what was done
 * is not done twice, and after TRIES it throws Unknown.
 */
export function connect(url, apiKey) {
  return async function ask(method, path, { body, key } = {}) {
    const headers = { Authorization: `Bearer ${apiKey}` };
    if (key) headers['Idempotency-Key'] = key;
    if (body) headers['Content-Type'] = 'application/json';
    for (let tries = 1; ; tries++) {
      let why;
      try {
        const res = await fetch(url + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE) });
        const text = await res.text();
        if (res.status < 500) return { status: res.status, body: JSON.parse(text) };
        why = `status ${res.status}: ${text}`;
      } catch (err) { // refused, cut off, timed out, unreadable: all the same
        why = err.cause ?? err;
      }
      if (tries === TRIES) throw new Unknown(`${method} ${path}: no answer`, { cause: why });
      await new Promise((wake) => setTimeout(wake, PAUSE * tries));
    }
  };
}
