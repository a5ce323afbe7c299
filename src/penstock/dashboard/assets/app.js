// The page: chosen runs, the time, and all panels that follow it.
import { Charts } from "./charts.js";
import { follow, get, token } from "./client.js";
import { control, drawControl } from "./control.js";
import { drawDetails, drawList, markCurrent } from "./decisions.js";
import { clock, element } from "./format.js";
import { drawGraph, drawKey } from "./graph.js";
import { drawHealth } from "./health.js";
import { drawHosts } from "./hosts.js";
import { drawInstances } from "./instances.js";
import { makePanels, noteCurves } from "./panels.js";
import { Replays } from "./replays.js";
import { drawScores } from "./scores.js";
import { nextTheme, startTheme } from "./theme.js";

const $ = (id) => document.getElementById(id);
const MAX_RUNS = 4;
const page = { runs: [], at: null, isLive: true, zoom: null, shown: "", listed: [], stop: null, next: null, tick: null };
const replays = new Replays($("policy"), $("policies"), () => drawCurves());
let charts = null;

function say(text) { $("message").textContent = text; $("message").hidden = !text; }
function guard(action) { return async (...given) => { try { await action(...given); say(""); } catch (error) { if (error.name !== "AbortError") say(error.message); } }; }
// of several runs, the one that panels about a single run show
const shown = () => page.runs.find((run) => run.name === page.shown) ?? page.runs[0];
const endOf = () => Math.max(0, ...page.runs.map((run) => run.overview?.end_s ?? 0));

// --- runs

async function loadRuns() {
  const answer = await get("runs");
  page.listed = answer.runs;
  replays.offer(answer.policies);
  drawRunList();
  const asked = new URLSearchParams(location.search).getAll("run").filter((name) => answer.runs.some((run) => run.name === name));
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
  page.zoom = null; page.isLive = true;
  history.replaceState(null, "", `?${new URLSearchParams(names.map((name) => ["run", name]))}`);
  drawRunList();
  await Promise.all(page.runs.map(async (run) => { run.overview = await get("overview", { run: run.name }); }));
  page.at = endOf();
  drawHead();
  await Promise.all([loadCurves(), loadTick(), loadDecisions()]);
  performance.mark("data-shown");
  page.stop?.();
  page.stop = follow(names, onUpdate, (problem) => say(problem));
  guard(loadHealth)(); guard(loadCompare)();
  if (replays.policies.length) guard(() => replays.load(names))();
}

// another of the runs side by side
async function show(name) {
  page.shown = name;
  drawHead();
  await Promise.all([loadTick(), loadDecisions(), loadHealth(), loadCompare()]);
}

function drawHead() {
  const run = shown(), names = page.runs.map((each) => each.name), isMany = names.length > 1;
  const title = isMany ? `${names.join(", ")} side by side` : run.overview.title;
  $("title").textContent = title;
  document.title = `${title} - Penstock`;
  $("shown-label").hidden = !isMany;
  $("shown").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  $("shown").value = run.name;
  for (const note of document.querySelectorAll(".of-run")) note.textContent = isMany ? `of ${run.name}` : "";
  $("run-title").textContent = isMany ? run.overview.title : "";
  drawState(run.overview.state);
  const operators = run.overview.operators;
  for (const [id, all] of [["operator", true], ["control-operator", false]]) {
    const chosen = $(id).value;
    $(id).replaceChildren(...(all ? [element("option", { value: "" }, "all")] : []), ...operators.map((name) => element("option", { value: name }, name)));
    if (operators.includes(chosen)) $(id).value = chosen;
  }
  drawControl(run.overview);
  drawTime();
}

function drawState(state) { $("state").textContent = state; $("state").className = `badge ${state}`; }

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
  if (runs.length) charts.show(makePanels(runs, replays), page.zoom ?? [0, endOf()]);
  $("curves-note").textContent = noteCurves(runs, replays).join(" ");
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
  const answer = await get("tick", { run: shown().name, at: page.isLive ? null : page.at }, asking.signal);
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
  // both have what was before the chosen time
  nearestTimer = setTimeout(guard(() => Promise.all([loadDecisions(), loadHealth()])), 150);
}

// --- decisions

async function loadDecisions() {
  const answer = await get("decisions", { run: shown().name, kind: $("kind").value, operator: $("operator").value, text: $("text").value, at: page.isLive ? null : page.at, limit: 40 });
  drawDecisions(answer);
  markCurrent($("decisions"), page.at);
}

function drawDecisions(answer, append = false) {
  page.next = answer.next;
  $("more").hidden = answer.next === null;
  drawList($("decisions"), answer.entries, page.tick?.number, pickDecision, append);
}

async function loadMore() {
  drawDecisions(await get("decisions", { run: shown().name, kind: $("kind").value, operator: $("operator").value, text: $("text").value, before: page.next, limit: 40 }), true);
}

async function pickDecision(entry) {
  page.isLive = false; page.at = entry.at;
  drawTime(); charts?.setTime(page.at); markCurrent($("decisions"), page.at);
  await guard(loadTick)();
}

async function step(direction) {
  const marks = shown().curves?.changes.at ?? [];
  const at = page.at ?? endOf();
  const next = direction > 0 ? marks.find((m) => m > at + 1e-6) : [...marks].reverse().find((m) => m < at - 1e-6);
  if (next !== undefined) setTime(next, false);
}

// --- other panels

async function loadHealth() {
  const run = shown();
  const health = await get("health", { run: run.name, at: page.isLive ? null : page.at });
  if (run !== shown()) return;
  drawHealth($("health"), $("health-note"), health, run.overview.end_s);
  drawState(health.state);
}

async function loadCompare() {
  drawScores(await get("compare", { run: page.runs.map((run) => run.name) }), shown(), page.runs);
}

// --- live

let isUpdating = false;
let isStale = false;
async function onUpdate(facts) {
  const run = page.runs.find((each) => each.name === facts.run);
  if (!run?.overview) return;
  const known = run.facts ?? run.overview;
  const isNew = ["ticks", "read", "state", "generation"].some((key) => known[key] !== facts[key]);
  run.facts = facts;
  if (!isNew && !isStale) return;
  // while an old journal is read, the sample is on the page already; the rest comes at the end
  if (facts.read < facts.ticks) { $("state").textContent = `reading ${Math.floor((100 * facts.read) / facts.ticks)} %`; return; }
  isStale = true;
  if (isUpdating) return;
  isUpdating = true;
  // an answer may be older than an event that came meanwhile: then everything is asked again
  for (let tries = 0; isStale && tries < 5; tries += 1) {
    isStale = false;
    await guard(refresh)();
    if (isStale) await new Promise((done) => setTimeout(done, 300));
  }
  isUpdating = false;
}

let slow = 0;
async function refresh() {
  try {
    await Promise.all(page.runs.map(async (run) => { run.overview = await get("overview", { run: run.name }); }));
    if (page.isLive) page.at = endOf();
    drawHead();
    // the list of a run that was still being read may have gaps
    const wasPartial = shown().curves?.is_partial;
    await Promise.all([loadCurves(), ...(page.isLive ? [loadTick()] : []), ...(page.isLive || wasPartial ? [loadDecisions()] : [])]);
  } catch (error) { isStale = true; throw error; }
  const hasEnded = shown().overview.state !== "running";
  if (hasEnded || Date.now() - slow > 4000) { slow = Date.now(); guard(loadHealth)(); guard(loadCompare)(); }
}

// --- keyboard, start

function changeTheme() { nextTheme(); drawCurves(); }

function onKey(event) {
  if (event.target.matches("input:not([type=range]), select, textarea, dialog *") || event.ctrlKey || event.metaKey || event.altKey) return;
  const interval = shown()?.overview?.interval_s || 15, much = event.shiftKey ? 10 : 1;
  const actions = {
    ArrowLeft: () => setTime((page.at ?? endOf()) - interval * much, false), ArrowRight: () => setTime((page.at ?? 0) + interval * much, false),
    Home: () => setTime(0, false), End: () => setTime(endOf(), false), "[": () => step(-1), "]": () => step(1),
    l: () => setTime(endOf(), true), z: unzoom, t: changeTheme, "?": () => $("help").showModal(),
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
  $("theme").addEventListener("click", changeTheme);
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("more").addEventListener("click", guard(loadMore));
  $("policy").addEventListener("change", guard(() => replays.add($("policy").value, page.runs.map((run) => run.name))));
  $("shown").addEventListener("change", guard(() => show($("shown").value)));
  $("pick").addEventListener("click", () => { $("runs").hidden = !$("runs").hidden; $("pick").setAttribute("aria-expanded", String(!$("runs").hidden)); });
  for (const id of ["kind", "operator"]) $(id).addEventListener("change", guard(loadDecisions));
  let typing = null;
  $("text").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(guard(loadDecisions), 250); });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("control").addEventListener("submit", (event) => event.preventDefault());
  for (const button of $("control").querySelectorAll("button")) button.addEventListener("click", () => control(shown().name, button.dataset.action));
  document.addEventListener("keydown", onKey);
  $("token").value = token();
  $("who").value = localStorage.getItem("penstock-who") ?? "";
  startTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCurves);
  new ResizeObserver(() => page.tick && drawGraph($("graph"), page.tick.graph)).observe($("graph"));
  drawKey($("graph-key"));
  guard(loadRuns)();
}

start();
