// The page: chosen runs, the time, and all panels that follow it.
import { Charts } from "./charts.js";
import { follow, get, token } from "./client.js";
import { control, drawControl } from "./control.js";
import { drawDetails, drawList, markCurrent } from "./decisions.js";
import { bytes, clock, element } from "./format.js";
import { drawGraph } from "./graph.js";
import { drawHosts } from "./hosts.js";
import { drawInstances } from "./instances.js";
import { makePanels } from "./panels.js";

const $ = (id) => document.getElementById(id);
const MAX_RUNS = 4;
const page = { runs: [], at: null, isLive: true, zoom: null, replays: [], listed: [], stop: null, next: null, tick: null };
let charts = null;

function say(text) { $("message").textContent = text; $("message").hidden = !text; }
function guard(action) { return async (...given) => { try { await action(...given); say(""); } catch (error) { if (error.name !== "AbortError") say(error.message); } }; }
const first = () => page.runs[0];
const endOf = () => Math.max(0, ...page.runs.map((run) => run.overview?.end_s ?? 0));

// --- runs

async function loadRuns() {
  const answer = await get("runs");
  page.listed = answer.runs;
  for (const name of answer.policies) $("policy").append(element("option", { value: name }, name));
  const asked = new URLSearchParams(location.search).getAll("run").filter((name) => answer.runs.some((run) => run.name === name));
  drawRunList();
  const chosen = asked.length ? asked : answer.runs.slice(0, 1).map((run) => run.name);
  if (!chosen.length) { say("there is no run here yet; penstock run and penstock simulate make them"); return; }
  await choose(chosen.slice(0, MAX_RUNS));
}

function drawRunList() {
  $("run-list").replaceChildren(...page.listed.map((run) => {
    const box = element("input", { type: "checkbox", value: run.name });
    box.checked = page.runs.some((each) => each.name === run.name);
    box.addEventListener("change", guard(async () => {
      const names = page.runs.map((each) => each.name).filter((name) => name !== run.name);
      if (box.checked) names.push(run.name);
      await choose(names.slice(-MAX_RUNS));
    }));
    return element("li", {}, element("label", {}, box, element("span", {}, element("b", {}, run.name), element("br"), element("span", { class: "soft" }, run.title)), element("span", { class: `badge ${run.state}` }, run.state)));
  }));
}

async function choose(names) {
  if (!names.length) return;
  page.runs = names.map((name) => page.runs.find((run) => run.name === name) ?? { name });
  page.replays = page.replays.filter((each) => names.includes(each.run));
  page.zoom = null; page.isLive = true;
  history.replaceState(null, "", `?${new URLSearchParams(names.map((name) => ["run", name]))}`);
  drawRunList();
  await Promise.all(page.runs.map(async (run) => { run.overview = await get("overview", { run: run.name }); }));
  page.at = endOf();
  drawHead();
  await Promise.all([loadCurves(), loadTick(), loadDecisions()]);
  page.stop?.();
  page.stop = follow(names, onUpdate, (problem) => say(problem));
  guard(loadHealth)(); guard(loadCompare)();
}

function drawHead() {
  const run = first();
  $("title").textContent = run.overview.title;
  document.title = `${run.overview.title} - Penstock`;
  $("state").textContent = run.overview.state; $("state").className = `badge ${run.overview.state}`;
  const operators = run.overview.operators;
  for (const [id, all] of [["operator", true], ["control-operator", false]]) {
    const chosen = $(id).value;
    $(id).replaceChildren(...(all ? [element("option", { value: "" }, "all")] : []), ...operators.map((name) => element("option", { value: name }, name)));
    if (operators.includes(chosen)) $(id).value = chosen;
  }
  drawControl(run.overview);
  drawTime();
}

function drawTime() {
  const end = endOf();
  $("slider").max = Math.max(end, 1e-6);
  $("slider").value = page.at ?? end;
  $("clock").textContent = clock(page.at ?? end);
  $("slider").setAttribute("aria-valuetext", clock(page.at ?? end));
  $("live").setAttribute("aria-pressed", String(page.isLive));
  $("unzoom").disabled = !page.zoom;
}

// --- curves

async function loadCurves() {
  const [from, to] = page.zoom ?? [null, null];
  const points = Math.min(2000, Math.max(200, Math.round($("charts").clientWidth)));
  await Promise.all(page.runs.map(async (run) => { run.curves = await get("curves", { run: run.name, from, to, points }); }));
  drawCurves();
}

function drawCurves() {
  charts ||= new Charts($("charts"), { onPick: (at) => setTime(at, false), onZoom: guard(async (from, to) => { page.zoom = [from, to]; drawTime(); await loadCurves(); }) });
  const runs = page.runs.filter((run) => run.curves);
  if (runs.length) charts.show(makePanels(runs, page.replays), page.zoom ?? [0, endOf()]);
  charts.setTime(page.at);
}

// --- the time

let waiting = null;
let asking = null;
function setTime(at, isLive) {
  page.isLive = isLive;
  page.at = Math.min(Math.max(0, at), endOf());
  drawTime();
  charts?.setTime(page.at);
  if (waiting) return;
  waiting = setTimeout(() => { waiting = null; guard(loadTick)(); showNearest(); }, 60);
}

async function loadTick() {
  asking?.abort();
  asking = new AbortController();
  const answer = await get("tick", { run: first().name, at: page.isLive ? null : page.at }, asking.signal);
  page.tick = answer;
  drawGraph($("graph"), answer.graph);
  const measured = answer.graph?.measured_at;
  $("graph-time").textContent = answer.at === undefined ? "" : `at ${clock(answer.at)}${measured !== null && measured !== answer.at ? `, measured at ${clock(measured)}` : ""}`;
  drawHosts($("hosts-card"), $("hosts-note"), $("hosts"), answer.hosts);
  drawInstances($("instances-card"), $("instances-note"), $("instances"), answer.instances);
  drawDetails($("details"), answer.story);
}

let nearestTimer = null;
function showNearest() {
  const list = $("decisions"), found = markCurrent(list, page.at);
  if (found) list.scrollTop = found.offsetTop - list.offsetTop;  // the page itself must not scroll
  clearTimeout(nearestTimer);
  // the list has the decisions before the chosen time
  nearestTimer = setTimeout(guard(loadDecisions), 250);
}

// --- decisions

async function loadDecisions() {
  const answer = await get("decisions", { run: first().name, kind: $("kind").value, operator: $("operator").value, text: $("text").value, at: page.isLive ? null : page.at, limit: 40 });
  page.next = answer.next;
  $("more").hidden = answer.next === null;
  drawList($("decisions"), answer.entries, page.tick?.number, pickDecision);
  markCurrent($("decisions"), page.at);
}

async function loadMore() {
  const answer = await get("decisions", { run: first().name, kind: $("kind").value, operator: $("operator").value, text: $("text").value, before: page.next, limit: 40 });
  page.next = answer.next;
  $("more").hidden = answer.next === null;
  drawList($("decisions"), answer.entries, page.tick?.number, pickDecision, true);
}

async function pickDecision(entry) {
  page.isLive = false; page.at = entry.at;
  drawTime(); charts?.setTime(page.at); markCurrent($("decisions"), page.at);
  await guard(loadTick)();
}

async function step(direction) {
  const marks = first().curves?.changes.at ?? [];
  const at = page.at ?? endOf();
  const next = direction > 0 ? marks.find((m) => m > at + 1e-6) : [...marks].reverse().find((m) => m < at - 1e-6);
  if (next !== undefined) setTime(next, false);
}

// --- other panels

async function loadHealth() {
  const health = await get("health", { run: first().name });
  const list = (title, items, kind) => (items.length ? [element("h3", {}, title), element("ul", { class: kind }, ...items.map((text) => element("li", {}, text)))] : []);
  const disk = Object.entries(health.disk_bytes).filter(([, size]) => size).map(([name, size]) => `${name} ${bytes(size)}`).join(", ");
  $("health").replaceChildren(
    ...(health.problems.length || health.warnings.length ? [] : [element("p", {}, "No problems are known.")]),
    ...list("Problems", health.problems, "bad"), ...list("Warnings", health.warnings, ""),
    ...list("Events, the newest first", health.events.map((event) => `${clock(event.at)} ${event.text}`), ""),
    ...(disk ? [element("p", { class: "soft" }, `Disk: ${disk}`)] : []));
  $("state").textContent = health.state; $("state").className = `badge ${health.state}`;
}

async function loadCompare() {
  const names = page.runs.map((run) => run.name);
  const answer = await get("compare", { run: names });
  $("summary").textContent = answer.sentences[0].join(" ");
  $("compare").hidden = names.length < 2;
  if (names.length < 2) return;
  $("compare-note").textContent = answer.is_fair ? "One run each: differences say nothing about other seeds or loads." : "The runs were offered different loads, so none is called better.";
  const head = element("tr", {}, element("th", {}, ""), ...names.map((name) => element("th", {}, name)), element("th", {}, "better"));
  const rows = answer.rows.map((row) => element("tr", {}, element("td", {}, row.label), ...row.values.map((value, i) => element("td", { class: row.best === i ? "best" : "" }, value)), element("td", {}, row.verdict)));
  $("scores").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

async function loadReplay() {
  const policy = $("policy").value;
  page.replays = [];
  if (policy) for (const run of page.runs) page.replays.push({ run: run.name, ...(await get("replay", { run: run.name, policy })) });
  drawCurves();
}

// --- live

let updating = false;
let missed = false;
async function onUpdate(facts) {
  const run = page.runs.find((each) => each.name === facts.run);
  if (!run?.overview) return;
  const isNew = run.overview.ticks !== facts.ticks || run.overview.read !== facts.read || run.overview.state !== facts.state;
  Object.assign(run.overview, { ticks: facts.ticks, read: facts.read, state: facts.state });
  if (!isNew) return;
  // while an old journal is read, the sample is on the page already; the rest comes at the end
  if (facts.read < facts.ticks) { $("state").textContent = `reading ${Math.floor((100 * facts.read) / facts.ticks)} %`; return; }
  if (updating) { missed = true; return; }
  updating = true;
  await guard(refresh)();
  updating = false;
  if (missed) { missed = false; setTimeout(() => onUpdate({ ...facts, ticks: facts.ticks + 0, state: `${facts.state}` }), 300); }
}

let slow = 0;
async function refresh() {
  await Promise.all(page.runs.map(async (run) => { run.overview = await get("overview", { run: run.name }); }));
  if (page.isLive) page.at = endOf();
  drawHead();
  // the list of a run that was still being read may have gaps
  const wasPartial = first().curves?.is_partial;
  await Promise.all([loadCurves(), ...(page.isLive ? [loadTick()] : []), ...(page.isLive || wasPartial ? [loadDecisions()] : [])]);
  if (Date.now() - slow > 4000) { slow = Date.now(); guard(loadHealth)(); guard(loadCompare)(); }
}

// --- theme, keyboard, start

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  localStorage.setItem("penstock-theme", name);
  $("theme").textContent = `Theme: ${name}`;
  drawCurves();
}
function nextTheme() {
  const names = ["auto", "light", "dark"], now = localStorage.getItem("penstock-theme") ?? "auto";
  setTheme(names[(names.indexOf(now) + 1) % names.length]);
}

function onKey(event) {
  if (event.target.matches("input:not([type=range]), select, textarea, dialog *") || event.ctrlKey || event.metaKey || event.altKey) return;
  const interval = first()?.overview?.interval_s || 15, much = event.shiftKey ? 10 : 1;
  const actions = {
    ArrowLeft: () => setTime((page.at ?? endOf()) - interval * much, false), ArrowRight: () => setTime((page.at ?? 0) + interval * much, false),
    Home: () => setTime(0, false), End: () => setTime(endOf(), false), "[": () => step(-1), "]": () => step(1),
    l: () => setTime(endOf(), true), z: unzoom, t: nextTheme, "?": () => $("help").showModal(),
  };
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
}

const unzoom = guard(async () => { page.zoom = null; drawTime(); await loadCurves(); });

function start() {
  $("slider").addEventListener("input", () => setTime(Number($("slider").value), false));
  $("live").addEventListener("click", () => setTime(endOf(), !page.isLive));
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("unzoom").addEventListener("click", unzoom);
  $("theme").addEventListener("click", nextTheme);
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("more").addEventListener("click", guard(loadMore));
  $("policy").addEventListener("change", guard(loadReplay));
  $("pick").addEventListener("click", () => { $("runs").hidden = !$("runs").hidden; $("pick").setAttribute("aria-expanded", String(!$("runs").hidden)); });
  for (const id of ["kind", "operator"]) $(id).addEventListener("change", guard(loadDecisions));
  let typing = null;
  $("text").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(guard(loadDecisions), 250); });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("control").addEventListener("submit", (event) => event.preventDefault());
  for (const button of $("control").querySelectorAll("button")) button.addEventListener("click", () => control(first().name, button.dataset.action));
  document.addEventListener("keydown", onKey);
  $("token").value = token();
  $("who").value = localStorage.getItem("penstock-who") ?? "";
  const theme = localStorage.getItem("penstock-theme") ?? "auto";
  if (theme !== "auto") document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Theme: ${theme}`;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCurves);
  new ResizeObserver(() => page.tick && drawGraph($("graph"), page.tick.graph)).observe($("graph"));
  guard(loadRuns)();
}

start();
