// Keeps the page as it is on the server: what is marked `data-live` is fetched anew when something has changed.
// Everything works without this; one would only have to reload.
"use strict";

const main = document.getElementById("main");
const banner = document.getElementById("connection");
const FIELDS = "input, textarea, select";

// Each part as the server last sent it: what a person typed or unfolded since is no difference.
const sent = new WeakMap();

// At most one request is under way; whatever changes meanwhile is fetched by one more.
let fetching = false;
let changed = false;

async function refresh() {
  changed = true;
  if (fetching || document.hidden) return;
  fetching = true;
  while (changed && !document.hidden) {
    changed = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The connection for events notices too, and says so.
    }
  }
  fetching = false;
}

function swap(fresh) {
  const scroll = window.scrollY;
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = old.id && fresh.getElementById(old.id);
    if (!next) empty(old);
    else if (next.innerHTML !== sent.get(old)) replace(old, next);
  }
  // A part that was not there when the page was loaded has no place to be put: it takes that of its neighbours.
  let before = null;
  for (const next of fresh.querySelectorAll("[data-live]")) {
    if (!document.getElementById(next.id) && before) before.after(remembered(next.cloneNode(true)));
    before = document.getElementById(next.id);
  }
  document.title = fresh.title;
  if (window.scrollY !== scroll) window.scrollTo({ top: scroll, behavior: "instant" });
}

function empty(part) {
  sent.delete(part);
  part.replaceChildren();
}

function remembered(part) {
  sent.set(part, part.innerHTML);
  return part;
}

function replace(old, next) {
  const kept = state(old);
  sent.set(old, next.innerHTML);
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

let wait = 500;

function listen() {
  const events = new EventSource("/events");
  let lost = false;
  events.addEventListener("open", () => {
    wait = 500;
    banner.hidden = true;
    if (lost) refresh();
    lost = false;
  });
  events.addEventListener("changed", (event) => {
    if (concerns(JSON.parse(event.data))) refresh();
  });
  events.addEventListener("error", () => {
    lost = true;
    banner.hidden = false;
    // A browser tries again by itself, unless it was refused.
    if (events.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { listen(); refresh(); }, wait);
    wait = Math.min(wait * 2, 15000);
  });
}

for (const part of document.querySelectorAll("[data-live]")) remembered(part);
document.addEventListener("visibilitychange", () => { if (!document.hidden && changed) refresh(); });
listen();
