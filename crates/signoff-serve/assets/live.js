// Keeps the page up to date: fetches the parts marked `data-live` again when the server reports a change.
// The page also works without this script, with manual reloads.
"use strict";

const main = document.getElementById("main");
const banner = document.getElementById("connection");
const FIELDS = "input, textarea, select";

// Each part as the server last sent it. Text that the user typed and sections that the user opened since do not count.
const sent = new WeakMap();

// Error messages of the event stream and of the last fetch; empty while both work.
const LOST = banner.textContent;
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
let again;

async function refresh() {
  changed = true;
  if (fetching) return;
  fetching = true;
  clearTimeout(again);
  while (changed) {
    changed = false;
    showFault("page", await fetchPage());
  }
  fetching = false;
  if (faults.page) again = setTimeout(refresh, 5000);
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
    return LOST;
  }
}

function replaceParts(fresh) {
  const scroll = window.scrollY;
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = old.id && fresh.getElementById(old.id);
    // Do not replace a button while it is pressed.
    if (old.contains(pressed)) changedMeanwhile = true;
    else if (!next) empty(old);
    else if (contentOf(next) !== sent.get(old)) replace(old, next);
    else updateTimes(old, next);
  }
  // A part that the loaded page did not have is inserted after the part before it.
  let before = null;
  for (const next of fresh.querySelectorAll("[data-live]")) {
    if (!document.getElementById(next.id) && before) before.after(remember(next.cloneNode(true)));
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
  old.querySelectorAll("time").forEach((one, index) => {
    const now = times[index];
    if (now && !("ms" in one.dataset) && one.textContent !== now.textContent) one.textContent = now.textContent;
  });
}

// The element pressed by a pointer or the space bar. It gets a click only if it still exists on release.
let pressed = null;
let changedMeanwhile = false;

function press(target) {
  pressed = target;
}

function release() {
  // Wait for the click event.
  setTimeout(() => {
    pressed = null;
    if (changedMeanwhile) refresh();
    changedMeanwhile = false;
  });
}

function remember(part) {
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
  const unfolded = new Map([...part.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const typed = new Map(
    [...part.querySelectorAll(FIELDS)]
      .filter((field) => field.id && field.type !== "hidden")
      .map((field) => [field.id, { value: field.value, checked: field.checked }]),
  );
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  return { unfolded, typed, focus: active && focusOf(active) };
}

function focusOf(active) {
  const place = { tag: active.tagName, href: active.getAttribute("href"), id: active.id };
  if (active.tagName === "SUMMARY") place.within = active.parentElement.id;
  if (active.name) place.key = fieldKey(active);
  if (active.type === "text" || active.tagName === "TEXTAREA") {
    place.selection = [active.selectionStart, active.selectionEnd];
  }
  return place;
}

function restore(part, { unfolded, typed, focus: place }) {
  for (const one of part.querySelectorAll("details[id]")) {
    if (unfolded.has(one.id)) one.open = unfolded.get(one.id);
  }
  for (const field of part.querySelectorAll(FIELDS)) {
    const was = typed.get(field.id);
    if (was) [field.value, field.checked] = [was.value, was.checked];
  }
  if (!place) return;
  const same = (one) =>
    one.tagName === place.tag &&
    one.id === place.id &&
    one.getAttribute("href") === place.href &&
    (!place.within || one.parentElement.id === place.within) &&
    (!place.key || fieldKey(one) === place.key);
  const active = [...part.querySelectorAll(place.tag)].find(same);
  // If the element is gone, focus the page instead of the window.
  (active || main).focus({ preventScroll: true });
  if (active && place.selection) active.setSelectionRange(...place.selection);
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
const began = new WeakMap();

function tick() {
  const now = performance.now();
  for (const one of document.querySelectorAll("time[data-ms]")) {
    if (!began.has(one)) began.set(one, now - Number(one.dataset.ms));
    const words = formatDuration(Math.floor(now - began.get(one)));
    if (one.textContent !== words) one.textContent = words;
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
const others = navigator.locks && window.BroadcastChannel ? new BroadcastChannel(LOCK) : null;
let events = null;
let wait = 500;
let later;
let leave = () => {};

// The time of the last event, the expected interval of heartbeats, and whether events were missed.
let lastEventAt = performance.now();
let interval = 15000;
let lost = false;

function listen() {
  stopListening();
  if (document.hidden) return;
  lastEventAt = performance.now();
  if (!others) return subscribe();
  const turn = new AbortController();
  leave = () => turn.abort();
  const hold = () => new Promise((done) => {
    if (turn.signal.aborted) return done();
    turn.signal.addEventListener("abort", done);
    subscribe();
  });
  navigator.locks.request(LOCK, { signal: turn.signal }, hold).catch(() => {});
  // A window that does not listen itself gets no earlier events.
  later = setTimeout(() => { if (!events) refresh(); }, 100);
}

function subscribe() {
  clearTimeout(later);
  events?.close();
  const source = new EventSource("/events");
  events = source;
  source.addEventListener("open", () => {
    wait = 500;
    broadcast({ what: "open" });
  });
  source.addEventListener("changed", (event) => broadcast({ what: "changed", data: JSON.parse(event.data) }));
  source.addEventListener("beat", (event) => broadcast({ what: "beat", data: JSON.parse(event.data) }));
  source.addEventListener("error", () => {
    broadcast({ what: "lost" });
    // The browser reconnects by itself unless the server refused the connection.
    if (source.readyState !== EventSource.CLOSED) return;
    later = setTimeout(() => { subscribe(); refresh(); }, wait);
    wait = Math.min(wait * 2, 15000);
  });
}

function broadcast(message) {
  others?.postMessage(message);
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
  showFault("stream", LOST);
}

// A hanging server or a lost network closes no connection. Detect it by missing heartbeats.
function checkHeartbeat() {
  if (performance.now() - lastEventAt < 2 * interval + 5000) return;
  lastEventAt = performance.now();
  markLost();
  if (events) subscribe();
}

function stopListening() {
  clearTimeout(later);
  leave();
  events?.close();
  events = null;
}

for (const part of document.querySelectorAll("[data-live]")) remember(part);
others?.addEventListener("message", (event) => receive(event.data));
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
