// The page: sign in with a token, subscribe, publish, follow events and the engine.
import { follow } from "/event_stream.js";

const MAX_EVENTS = 200;
const $ = (id) => document.getElementById(id);
let token = "", stopped = new AbortController(), isEncrypted = false, received = 0;

/** Makes an element with text; content of others is never HTML. */
function make(tag, text = "", fields = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(fields)) element.setAttribute(name, value);
  return element;
}

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body });
  } catch {
    return { status: 0, fields: { error: "the server cannot be reached", place: "", hint: "" } };
  }
  return { status: answer.status, fields: await answer.json() };
}

function explain({ error, place, hint }) {
  return [place, error].filter(Boolean).join(": ") + (hint ? ` (${hint})` : "");
}

function setState(state, text) {
  $("connection").dataset.state = state;
  $("connection").textContent = text;
}

function warn(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

function enable(form, isEnabled) {
  $(form).querySelector("button").disabled = !isEnabled;
}

async function connect() {
  stopped.abort();
  stopped = new AbortController();
  const { signal } = stopped;
  token = $("token").value.trim();
  warn("");
  const space = await call("GET", "/space");
  if (space.status !== 200) {
    setState("bad", "refused");
    warn(explain(space.fields));
    return;
  }
  sessionStorage.setItem("token", token);
  isEncrypted = space.fields.scheme !== "plain";
  $("attributes").textContent = Object.keys(space.fields.attributes).join(", ");
  const status = await call("GET", "/status");
  const { name, can_publish, can_subscribe } = status.fields.account;
  setState("on", `connected as ${name}`);
  if (isEncrypted) {
    warn("This space is encrypted. Keys stay with clients, so this page shows payloads only;"
      + " use penstock pubsub publish and subscribe with --key.");
  }
  enable("publish", can_publish && !isEncrypted);
  enable("subscribe", can_subscribe && !isEncrypted);
  poll(signal, can_subscribe);
  if (can_subscribe) {
    follow("/notifications", { Authorization: `Bearer ${token}` }, signal, {
      onEvent: (event) => { if (event.type === "notification") addEvent(JSON.parse(event.data)); },
      onState: (state) => setState(state === "on" ? "on" : "bad",
        state === "on" ? `connected as ${name}` : "connection lost, trying again"),
      onRefusal: (_status, fields) => warn(explain(fields)),
    });
  }
}

async function poll(signal, canSubscribe) {
  while (!signal.aborted) {
    const status = await call("GET", "/status");
    if (signal.aborted) return;
    if (status.status === 200) showEngine(status.fields);
    if (canSubscribe) await showSubscriptions(signal);
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function showSubscriptions(signal) {
  const { status, fields } = await call("GET", "/subscriptions");
  if (status !== 200 || signal?.aborted) return;
  const rows = fields.subscriptions.filter((each) => each.state !== "removed").map((each) => {
    const row = make("tr");
    const name = make("td");
    name.append(make("div", each.id), make("code", each.predicate ?? "encrypted"));
    const from = each.active_from === null ? "" : `event ${each.active_from}`;
    const remove = make("button", "remove", { "aria-label": `remove ${each.id}` });
    remove.disabled = each.state === "removing";
    remove.addEventListener("click", () => unsubscribe(each.id));
    const last = make("td");
    last.append(remove);
    row.append(name, make("td", each.state), make("td", from), last);
    return row;
  });
  $("subscriptions").replaceChildren(...rows);
}

async function subscribe() {
  const predicate = $("predicate").value;
  const { status, fields } = await call("POST", "/subscriptions", JSON.stringify({ predicate }));
  const isRight = status === 201;
  $("predicate").setAttribute("aria-invalid", String(!isRight));
  $("predicate-error").hidden = isRight;
  if (isRight) {
    await showSubscriptions();
    return;
  }
  $("predicate-error").textContent = pointAt(predicate, fields);
  if (fields.character) {
    $("predicate").focus();
    $("predicate").setSelectionRange(fields.character - 1, fields.character);
  }
}

/** Returns the line with the mistake, a caret below its place, and what is wrong. */
function pointAt(predicate, fields) {
  const text = `${fields.error}${fields.hint ? `\n${fields.hint}` : ""}`;
  if (!fields.character) return explain(fields);
  // the server counts characters; JavaScript counts half of some as one
  const before = [...predicate].slice(0, fields.character - 1).join("");
  const line = [...predicate.split("\n")[before.split("\n").length - 1]];
  const column = [...before.split("\n").pop()].length;
  const start = Math.max(0, column - 30);
  const shown = line.slice(start, start + 60).join("");
  return `${shown}\n${" ".repeat(column - start)}^\n${text}`;
}

async function unsubscribe(id) {
  const { status, fields } = await call("DELETE", `/subscriptions/${encodeURIComponent(id)}`);
  if (status >= 400) warn(explain(fields));
  await showSubscriptions();
}

async function publish() {
  const { status, fields } = await call("POST", "/publications", $("event").value);
  $("publish-answer").textContent = status === 202 ? "accepted" : explain(fields);
}

function addEvent(notification) {
  received += 1;
  const item = make("li");
  const content = notification.event ?? `payload of ${notification.payload.length} characters`;
  item.append(
    make("span", `${notification.publication} `, { class: "quiet" }),
    make("code", typeof content === "string" ? content : JSON.stringify(content)),
    make("span", ` ${notification.subscriptions.join(", ")}`, { class: "quiet" }),
  );
  $("events").prepend(item);
  while ($("events").children.length > MAX_EVENTS) $("events").lastChild.remove();
  $("no-events").hidden = true;
  $("event-count").textContent = received;
}

function showEngine({ publications, notices, subscriptions, streams, engine, problem }) {
  const figures = {
    "publications/s": publications.per_s.toFixed(1),
    "accepted": publications.accepted,
    "last event": notices.last_publication < 0 ? "none" : notices.last_publication,
    "active subscriptions": subscriptions.active,
    "open streams": streams,
    "engine": `${engine.kind ?? "unknown"}, ${problem || engine.state || ""}`,
  };
  $("figures").replaceChildren(...Object.entries(figures).map(([name, value]) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", String(value)));
    return pair;
  }));
  $("hosts").replaceChildren(...(engine.hosts ?? []).map(makeHost));
  const operators = engine.operators ?? [];
  $("operators").hidden = operators.length === 0;
  $("operators").tBodies[0].replaceChildren(...operators.map((each) => {
    const row = make("tr");
    for (const name of ["name", "replicas", "slices", "waiting"]) {
      row.append(make("td", String(each[name] ?? "")));
    }
    return row;
  }));
}

function makeHost(host) {
  const box = make("div", "", { class: "host" });
  const cpu = Math.round(100 * (host.cpu ?? 0));
  box.append(make("h3", `${host.name}: ${cpu} % CPU`), make("progress", "", { max: 100, value: cpu }));
  const slices = make("div", "", { class: "slices" });
  for (const [operator, numbers] of Object.entries(host.slices ?? {})) {
    for (const number of numbers) {
      const text = `${operator[0].toUpperCase()}${number}`;
      slices.append(make("span", text, { class: "slice", "data-operator": operator,
        title: `${operator}, slice ${number}` }));
    }
  }
  box.append(slices);
  return box;
}

function onSubmit(form, action) {
  $(form).addEventListener("submit", (event) => {
    event.preventDefault();
    action();
  });
}

onSubmit("sign-in", connect);
onSubmit("subscribe", subscribe);
onSubmit("publish", publish);
// a link from the command line has the token behind #, which browsers do not send
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) history.replaceState(null, "", location.pathname);
$("token").value = given ?? sessionStorage.getItem("token") ?? "";
if ($("token").value) connect();
