// Keeps the page as it is on the server: what is marked `data-live` is fetched anew when something has changed.
// Everything works without this; one would only have to reload.
"use strict";

const main = document.getElementById("main");
const banner = document.getElementById("connection");
const FIELDS = "input, textarea, select";

// Each part as the server last sent it: what a person typed or unfolded since is no difference.
const sent = new WeakMap();

// What is wrong with what is shown: with hearing of changes, and with fetching them. Nothing while all is well.
const LOST = banner.textContent;
const faults = { heard: "", fetched: "" };

function tell(where, fault) {
  faults[where] = fault;
  const text = faults.fetched || faults.heard;
  banner.hidden = !text;
  if (text && banner.textContent !== text) banner.textContent = text;
}

// At most one request is under way; whatever changes meanwhile is fetched by one more.
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
    tell("fetched", await fetched());
  }
  fetching = false;
  if (faults.fetched) again = setTimeout(refresh, 5000);
}

// Puts the page as it is now in the place of what is shown, or says why that cannot be done.
async function fetched() {
  try {
    const signal = AbortSignal.timeout(30000);
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal });
    if (answer.status === 401) return banner.dataset.refused;
    if (!answer.ok) return banner.dataset.failed;
    swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    return "";
  } catch {
    return LOST;
  }
}

function swap(fresh) {
  const scroll = window.scrollY;
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = old.id && fresh.getElementById(old.id);
    // A button is not taken away from under a finger.
    if (old.contains(pressed)) changedMeanwhile = true;
    else if (!next) empty(old);
    else if (written(next) !== sent.get(old)) replace(old, next);
    else dated(old, next);
  }
  // A part that was not there when the page was loaded has no place to be put: it takes that of its neighbours.
  let before = null;
  for (const next of fresh.querySelectorAll("[data-live]")) {
    if (!document.getElementById(next.id) && before) before.after(remembered(next.cloneNode(true)));
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

// What is written in a part, but for the time that goes on by itself: nothing is replaced because a second has passed.
function written(part) {
  return part.innerHTML
    .replace(/<time [^>]*data-ms=[^>]*>[^<]*/g, "<time>")
    .replace(/(<time [^>]*>)[^<]*/g, "$1");
}

// How long ago things were, in a part that is the same otherwise.
function dated(old, next) {
  const times = next.querySelectorAll("time");
  old.querySelectorAll("time").forEach((one, index) => {
    const now = times[index];
    if (now && !("ms" in one.dataset) && one.textContent !== now.textContent) one.textContent = now.textContent;
  });
}

// What is held down, by a pointer or by the space bar: it is a click only if it is still there when it is let go.
let pressed = null;
let changedMeanwhile = false;

function press(target) {
  pressed = target;
}

function release() {
  // The click comes first.
  setTimeout(() => {
    pressed = null;
    if (changedMeanwhile) refresh();
    changedMeanwhile = false;
  });
}

function remembered(part) {
  sent.set(part, written(part));
  return part;
}

function replace(old, next) {
  const kept = state(old);
  sent.set(old, written(next));
  old.replaceChildren(...next.childNodes);
  restore(old, kept);
}

function key(field) {
  return field.id || `${field.form?.getAttribute("action")} ${field.name} ${field.value}`;
}

// What a person has done to a part: what is unfolded, what is typed, where the cursor is.
function state(part) {
  const unfolded = new Map([...part.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const typed = new Map(
    [...part.querySelectorAll(FIELDS)]
      .filter((field) => field.id && field.type !== "hidden")
      .map((field) => [field.id, { value: field.value, checked: field.checked }]),
  );
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  return { unfolded, typed, focus: active && focus(active) };
}

function focus(active) {
  const place = { tag: active.tagName, href: active.getAttribute("href"), id: active.id };
  if (active.tagName === "SUMMARY") place.within = active.parentElement.id;
  if (active.name) place.key = key(active);
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
    (!place.key || key(one) === place.key);
  const active = [...part.querySelectorAll(place.tag)].find(same);
  // Where the element is gone, the page still has the focus, and not the window.
  (active || main).focus({ preventScroll: true });
  if (active && place.selection) active.setSelectionRange(...place.selection);
}

// Whether a change is one of what this page shows.
function concerns(message) {
  const { task, run } = main.dataset;
  const lists = (ids, id) => !Array.isArray(ids) || ids.map(String).includes(id);
  // What agents say is shown by the pages of their tasks alone.
  if (task) return lists(message.tasks, task) || lists(message.said, task);
  if (run) return lists(message.runs, run);
  return !message.runs || message.runs.length + message.tasks.length > 0;
}

// What takes time goes on while nothing else happens; in the words of the server.
const began = new WeakMap();

function tick() {
  const now = performance.now();
  for (const one of document.querySelectorAll("time[data-ms]")) {
    if (!began.has(one)) began.set(one, now - Number(one.dataset.ms));
    const words = span(Math.floor(now - began.get(one)));
    if (one.textContent !== words) one.textContent = words;
  }
}

function span(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 1) return `${milliseconds}ms`;
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${two(Math.floor(seconds / 60) % 60)}m`;
}

// A browser opens six connections to one server, for all its windows together. So one of them listens, and tells the
// others: whoever has the lock. Where there are no locks, each window that is looked at listens for itself.
const LOCK = "signoff-events";
const others = navigator.locks && window.BroadcastChannel ? new BroadcastChannel(LOCK) : null;
let events = null;
let wait = 500;
let later;
let leave = () => {};

// When something was heard last, how often something is to be heard, and whether something was missed.
let heardAt = performance.now();
let every = 15000;
let lost = false;

function listen() {
  hush();
  if (document.hidden) return;
  heardAt = performance.now();
  if (!others) return subscribe();
  const turn = new AbortController();
  leave = () => turn.abort();
  const hold = () => new Promise((done) => {
    if (turn.signal.aborted) return done();
    turn.signal.addEventListener("abort", done);
    subscribe();
  });
  navigator.locks.request(LOCK, { signal: turn.signal }, hold).catch(() => {});
  // Who does not listen itself is told nothing of what happened before.
  later = setTimeout(() => { if (!events) refresh(); }, 100);
}

function subscribe() {
  clearTimeout(later);
  events?.close();
  const source = new EventSource("/events");
  events = source;
  source.addEventListener("open", () => {
    wait = 500;
    pass({ what: "open" });
  });
  source.addEventListener("changed", (event) => pass({ what: "changed", told: JSON.parse(event.data) }));
  source.addEventListener("beat", (event) => pass({ what: "beat", told: JSON.parse(event.data) }));
  source.addEventListener("error", () => {
    pass({ what: "lost" });
    // A browser tries again by itself, unless it was refused.
    if (source.readyState !== EventSource.CLOSED) return;
    later = setTimeout(() => { subscribe(); refresh(); }, wait);
    wait = Math.min(wait * 2, 15000);
  });
}

function pass(message) {
  others?.postMessage(message);
  hear(message);
}

function hear({ what, told }) {
  if (document.hidden) return;
  heardAt = performance.now();
  if (what === "lost") return miss();
  if (what === "beat") main.dataset.every = every = told.every;
  tell("heard", "");
  if (lost || (what === "changed" && concerns(told))) refresh();
  lost = false;
}

function miss() {
  lost = true;
  tell("heard", LOST);
}

// A server that hangs, or a way to it that is gone, closes nothing: nothing is heard of it any more.
function doubt() {
  if (performance.now() - heardAt < 2 * every + 5000) return;
  heardAt = performance.now();
  miss();
  if (events) subscribe();
}

function hush() {
  clearTimeout(later);
  leave();
  events?.close();
  events = null;
}

for (const part of document.querySelectorAll("[data-live]")) remembered(part);
others?.addEventListener("message", (event) => hear(event.data));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return hush();
  listen();
  refresh();
});
window.addEventListener("pagehide", hush);
window.addEventListener("pageshow", (event) => { if (event.persisted) { listen(); refresh(); } });
document.addEventListener("pointerdown", (event) => press(event.target), true);
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, release, true);
document.addEventListener("keydown", (event) => { if (event.key === " ") press(event.target); }, true);
document.addEventListener("keyup", release, true);
window.addEventListener("blur", release);
setInterval(() => { if (!document.hidden) { tick(); doubt(); } }, 1000);
// The title of a tab nobody looks at says how much needs somebody: once a minute is enough for that.
setInterval(() => { if (document.hidden && "needs" in main.dataset) refresh(); }, 60000);
tick();
listen();
