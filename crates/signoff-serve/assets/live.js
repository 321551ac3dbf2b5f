// Keeps the page up to date: fetches the parts marked `data-live` again when the server reports a change.
// The page also works without this script, with manual reloads.
"use strict";

const main = document.getElementById("main");
const banner = document.getElementById("connection");
const FIELDS = "input, textarea, select";

// Each part as the server last sent it. Text that the user typed and sections that the user opened since do not count.
const sent = new WeakMap();

// Error messages of the event stream and of the last fetch; empty while both work.
const DISCONNECTED_TEXT = banner.textContent;
const faults = { stream: "", page: "" };

function showFault(where, fault) {
  faults[where] = fault;
  const text = faults.page || faults.stream;
  banner.hidden = !text;
  if (text && banner.textContent !== text) banner.textContent = text;
}

// At most one request is in flight. Changes during a request cause one more request.
let fetching = false;
let changed = false;
let retryTimer;

async function refresh() {
  changed = true;
  if (fetching) return;
  fetching = true;
  clearTimeout(retryTimer);
  while (changed) {
    changed = false;
    showFault("page", await fetchPage());
  }
  fetching = false;
  if (faults.page) retryTimer = setTimeout(refresh, 5000);
}

// Fetches the page and replaces the shown parts. Returns an error message, or an empty string.
async function fetchPage() {
  try {
    const signal = AbortSignal.timeout(30000);
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal });
    if (answer.status === 401) return banner.dataset.refused;
    if (!answer.ok) return banner.dataset.failed;
    replaceParts(new DOMParser().parseFromString(await answer.text(), "text/html"));
    return "";
  } catch {
    return DISCONNECTED_TEXT;
  }
}

function replaceParts(fresh) {
  const scroll = window.scrollY;
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = old.id && fresh.getElementById(old.id);
    // Do not replace a button while it is pressed.
    if (old.contains(pressed)) changedWhilePressed = true;
    else if (!next) empty(old);
    else if (contentOf(next) !== sent.get(old)) replace(old, next);
    else updateTimes(old, next);
  }
  // A part that the loaded page did not have is inserted after the part before it.
  let before = null;
  for (const next of fresh.querySelectorAll("[data-live]")) {
    if (!document.getElementById(next.id) && before) before.after(recordSent(next.cloneNode(true)));
    before = document.getElementById(next.id);
  }
  document.title = fresh.title;
  tick();
  if (window.scrollY !== scroll) window.scrollTo({ top: scroll, behavior: "instant" });
}

function empty(part) {
  sent.delete(part);
  part.replaceChildren();
}

// The HTML of a part without its running times, so that a passed second alone replaces nothing.
function contentOf(part) {
  return part.innerHTML
    .replace(/<time [^>]*data-ms=[^>]*>[^<]*/g, "<time>")
    .replace(/(<time [^>]*>)[^<]*/g, "$1");
}

// Updates the relative times in an otherwise unchanged part.
function updateTimes(old, next) {
  const times = next.querySelectorAll("time");
  old.querySelectorAll("time").forEach((shown, index) => {
    const now = times[index];
    if (now && !("ms" in shown.dataset) && shown.textContent !== now.textContent) shown.textContent = now.textContent;
  });
}

// The element pressed by a pointer or the space bar. It gets a click only if it still exists on release.
let pressed = null;
let changedWhilePressed = false;

function press(target) {
  pressed = target;
}

function release() {
  // Wait for the click event.
  setTimeout(() => {
    pressed = null;
    if (changedWhilePressed) refresh();
    changedWhilePressed = false;
  });
}

function recordSent(part) {
  sent.set(part, contentOf(part));
  return part;
}

function replace(old, next) {
  const kept = userState(old);
  sent.set(old, contentOf(next));
  old.replaceChildren(...next.childNodes);
  restore(old, kept);
}

function fieldKey(field) {
  return field.id || `${field.form?.getAttribute("action")} ${field.name} ${field.value}`;
}

// The user's changes to a part: open sections, typed text and focus.
function userState(part) {
  const openSections = new Map([...part.querySelectorAll("details[id]")].map((section) => [section.id, section.open]));
  const typed = new Map(
    [...part.querySelectorAll(FIELDS)]
      .filter((field) => field.id && field.type !== "hidden")
      .map((field) => [field.id, { value: field.value, checked: field.checked }]),
  );
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  return { openSections, typed, focus: active && focusOf(active) };
}

function focusOf(active) {
  const focus = { tag: active.tagName, href: active.getAttribute("href"), id: active.id };
  if (active.tagName === "SUMMARY") focus.within = active.parentElement.id;
  if (active.name) focus.key = fieldKey(active);
  if (active.type === "text" || active.tagName === "TEXTAREA") {
    focus.selection = [active.selectionStart, active.selectionEnd];
  }
  return focus;
}

function restore(part, { openSections, typed, focus }) {
  for (const section of part.querySelectorAll("details[id]")) {
    if (openSections.has(section.id)) section.open = openSections.get(section.id);
  }
  for (const field of part.querySelectorAll(FIELDS)) {
    const before = typed.get(field.id);
    if (before) [field.value, field.checked] = [before.value, before.checked];
  }
  if (!focus) return;
  const same = (element) =>
    element.tagName === focus.tag &&
    element.id === focus.id &&
    element.getAttribute("href") === focus.href &&
    (!focus.within || element.parentElement.id === focus.within) &&
    (!focus.key || fieldKey(element) === focus.key);
  const active = [...part.querySelectorAll(focus.tag)].find(same);
  // If the element is gone, focus the page instead of the window.
  (active || main).focus({ preventScroll: true });
  if (active && focus.selection) active.setSelectionRange(...focus.selection);
}

// Returns whether a change affects this page.
function affects(message) {
  const { task, run } = main.dataset;
  const lists = (ids, id) => !Array.isArray(ids) || ids.map(String).includes(id);
  // Only task pages show agent output.
  if (task) return lists(message.tasks, task) || lists(message.said, task);
  if (run) return lists(message.runs, run);
  return !message.runs || message.runs.length + message.tasks.length > 0;
}

// Running durations advance between updates, in the server's format.
const startedAt = new WeakMap();

function tick() {
  const now = performance.now();
  for (const time of document.querySelectorAll("time[data-ms]")) {
    if (!startedAt.has(time)) startedAt.set(time, now - Number(time.dataset.ms));
    const text = formatDuration(Math.floor(now - startedAt.get(time)));
    if (time.textContent !== text) time.textContent = text;
  }
}

function formatDuration(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 1) return `${milliseconds}ms`;
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${two(Math.floor(seconds / 60) % 60)}m`;
}

// A browser opens at most six connections to one server, for all its windows together. So only the window that holds
// the lock listens, and forwards events to the others. Without lock support, each visible window listens for itself.
const LOCK = "signoff-events";
const channel = navigator.locks && window.BroadcastChannel ? new BroadcastChannel(LOCK) : null;
let events = null;
let backoff = 500;
let reconnectTimer;
let releaseLock = () => {};

// The time of the last event, the expected interval of heartbeats, and whether events were missed.
let lastEventAt = performance.now();
let interval = 15000;
let lost = false;

function listen() {
  stopListening();
  if (document.hidden) return;
  lastEventAt = performance.now();
  if (!channel) return subscribe();
  const lockAbort = new AbortController();
  releaseLock = () => lockAbort.abort();
  const withLock = () => new Promise((done) => {
    if (lockAbort.signal.aborted) return done();
    lockAbort.signal.addEventListener("abort", done);
    subscribe();
  });
  navigator.locks.request(LOCK, { signal: lockAbort.signal }, withLock).catch(() => {});
  // A window that does not listen itself gets no earlier events.
  reconnectTimer = setTimeout(() => { if (!events) refresh(); }, 100);
}

function subscribe() {
  clearTimeout(reconnectTimer);
  events?.close();
  const source = new EventSource("/events");
  events = source;
  source.addEventListener("open", () => {
    backoff = 500;
    broadcast({ what: "open" });
  });
  source.addEventListener("changed", (event) => broadcast({ what: "changed", data: JSON.parse(event.data) }));
  source.addEventListener("beat", (event) => broadcast({ what: "beat", data: JSON.parse(event.data) }));
  source.addEventListener("error", () => {
    broadcast({ what: "lost" });
    // The browser reconnects by itself unless the server refused the connection.
    if (source.readyState !== EventSource.CLOSED) return;
    reconnectTimer = setTimeout(() => { subscribe(); refresh(); }, backoff);
    backoff = Math.min(backoff * 2, 15000);
  });
}

function broadcast(message) {
  channel?.postMessage(message);
  receive(message);
}

function receive({ what, data }) {
  if (document.hidden) return;
  lastEventAt = performance.now();
  if (what === "lost") return markLost();
  if (what === "beat") main.dataset.every = interval = data.every;
  showFault("stream", "");
  if (lost || (what === "changed" && affects(data))) refresh();
  lost = false;
}

function markLost() {
  lost = true;
  showFault("stream", DISCONNECTED_TEXT);
}

// A hanging server or a lost network closes no connection. Detect it by missing heartbeats.
function checkHeartbeat() {
  if (performance.now() - lastEventAt < 2 * interval + 5000) return;
  lastEventAt = performance.now();
  markLost();
  if (events) subscribe();
}

function stopListening() {
  clearTimeout(reconnectTimer);
  releaseLock();
  events?.close();
  events = null;
}

for (const part of document.querySelectorAll("[data-live]")) recordSent(part);
channel?.addEventListener("message", (event) => receive(event.data));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return stopListening();
  listen();
  refresh();
});
window.addEventListener("pagehide", stopListening);
window.addEventListener("pageshow", (event) => { if (event.persisted) { listen(); refresh(); } });
document.addEventListener("pointerdown", (event) => press(event.target), true);
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, release, true);
document.addEventListener("keydown", (event) => { if (event.key === " ") press(event.target); }, true);
document.addEventListener("keyup", release, true);
window.addEventListener("blur", release);
setInterval(() => { if (!document.hidden) { tick(); checkHeartbeat(); } }, 1000);
// The title of a hidden tab shows how many tasks need the user. Refresh it once a minute.
setInterval(() => { if (document.hidden && "needs" in main.dataset) refresh(); }, 60000);
tick();
listen();
