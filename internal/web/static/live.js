// Keeps a page true while it is looked at. Its parts with data-live are fetched
// again and swapped when the stream says that something has happened, when a
// countdown ends, and when the page comes back into view.

const RETRY_MS = 2000; // between two attempts to hear the stream
const GAP_MS = 250; // between two fetches of the page
const locale = document.documentElement.lang;

// clock is the server's, in ms: the visitor's may be wrong, or be set meanwhile.
let shift = 0;
const clock = () => performance.now() + shift;
const setClock = (page) => {
  const now = Number(page.body.dataset.now);
  if (now) shift = now - performance.now();
};

const whole = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const hour = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
const showTimes = (root) => {
  for (const el of root.querySelectorAll("time[datetime]:not([data-until])")) {
    const at = new Date(el.dateTime);
    const today = new Date(clock()).toDateString() === at.toDateString();
    el.textContent = (today ? hour : whole).format(at);
    el.title = whole.format(at);
  }
};

const two = (n) => String(n).padStart(2, "0");
const days = new Intl.NumberFormat(locale, { style: "unit", unit: "day", unitDisplay: "long" });
const span = (ms) => {
  const s = Math.ceil(Math.max(0, ms) / 1000);
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  const rest = `${two(m)}:${two(s % 60)}`;
  if (d > 0) return `${days.format(d)} ${two(h)}:${rest}`;
  return h > 0 ? `${two(h)}:${rest}` : rest;
};

// tick shows what is left of every countdown. One that has ended asks once.
const ended = new Set();
const tick = () => {
  for (const el of document.querySelectorAll("time[data-until]")) {
    const until = Date.parse(el.dateTime);
    const text = span(until - clock());
    if (el.textContent !== text) el.textContent = text;
    if (until <= clock() && !ended.has(el.dateTime)) {
      ended.add(el.dateTime);
      refresh();
    }
  }
};

// said is the server's HTML of each live part: what is on the page has been
// worked on since.
const said = new Map();
const note = (page) => {
  for (const el of page.querySelectorAll("[data-live]")) said.set(el.id, el.outerHTML);
};

const swap = (page) => {
  setClock(page);
  for (const el of page.querySelectorAll("[data-live]")) {
    const old = document.getElementById(el.id);
    if (!old || said.get(el.id) === el.outerHTML) continue;
    said.set(el.id, el.outerHTML);
    const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceChildren(...el.childNodes); // the element stays: screen readers follow it
    showTimes(old);
    if (focus) (document.getElementById(focus) ?? document.getElementById("main")).focus();
  }
  document.title = page.title;
  tick();
  onward();
};

// refresh fetches the page, once at a time; what comes meanwhile makes it again.
// A page whose form was sent is about to go, and may be of something that the
// form has deleted.
let leaving = false;
let busy = false;
let again = false;
const refresh = async () => {
  again = true;
  if (busy) return;
  busy = true;
  while (again && !leaving) {
    again = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected) return location.assign(answer.url);
      const page = await answer.text();
      if (answer.ok) swap(new DOMParser().parseFromString(page, "text/html"));
    } catch {
      // The stream comes back when the network does, and asks anew.
    }
    await new Promise((done) => setTimeout(done, GAP_MS));
  }
  busy = false;
};

// listen hears the stream. A connection that comes back may have missed
// something, so it asks as well.
const listen = () => {
  const url = document.body.dataset.stream;
  if (!url) return;
  const stream = new EventSource(url);
  stream.onopen = () => { document.body.dataset.online = "yes"; refresh(); };
  stream.onmessage = refresh;
  stream.onerror = () => {
    document.body.dataset.online = "no";
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, RETRY_MS);
  };
};

// onward goes to where the buyer pays, once: whoever comes back stays.
const onward = () => {
  const link = document.querySelector("a[data-go]");
  if (!link) return;
  history.replaceState(null, "", link.dataset.go);
  location.assign(link.href);
};

// A shop of others sends its buyers to the cashier with the order's secret
// behind a #, which no server and no log sees.
const enter = () => {
  if (!location.pathname.startsWith("/pay/") || !location.hash.startsWith("#hfs_")) return;
  const form = document.createElement("form");
  form.method = "post";
  form.action = location.pathname;
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "secret";
  field.value = location.hash.slice(1);
  form.append(field);
  document.body.append(form);
  form.submit();
};

document.addEventListener("submit", (e) => {
  // A second click does nothing; the server would not do it twice either.
  if (e.target.dataset.sent) return e.preventDefault();
  e.target.dataset.sent = "yes";
  leaving = true;
  e.submitter?.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

setClock(document);
note(document);
showTimes(document);
tick();
setInterval(tick, 250);
listen();
onward();
enter();
