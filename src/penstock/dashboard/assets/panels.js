// Which curves a page shows: operators of one run, or up to four runs on the same axes.

const DOTTED = [2, 3], P50 = [7, 4];
// lines that have no other meaning for their dash are told apart by it, as well as by colour
const DASHES = [undefined, [9, 3], [2, 3], [9, 3, 2, 3], [5, 5]];
const REPLAY_DASHES = [[2, 4], [8, 4], [8, 3, 2, 3], [4, 2]];

export function makePanels(runs, replays) {
  return runs.length > 1 ? compared(runs, replays) : single(runs[0], replays);
}

function single(run, replays) {
  const c = run.curves, t = c.times, whole = c.run;
  const line = (label, values, more = {}) => ({ label, times: t, values, ...more });
  const names = Object.keys(c.operators);
  const known = (...pairs) => pairs.filter(([, m]) => whole[m]);
  const steps = (...pairs) => known(...pairs).map(([label, m], i) => line(label, whole[m], { step: true, gaps: true, dash: i ? DOTTED : undefined }));
  const plain = (...pairs) => known(...pairs).map(([label, m], i) => line(label, whole[m], { dash: i ? P50 : undefined }));
  const panels = [
    { title: "Load, records/s", series: plain(["offered", "offered_rate"], ["processed", "processed_rate"]) },
    { title: "Running replicas by operator", marks: [{ ...c.changes, run: "" }],
      series: [...names.map((name) => line(name, c.operators[name].running ?? [], { stack: true })), ...dotted(run, replays, names.length, false)] },
    { title: "Waiting records", series: [...(whole.backlog ? [line("not yet processed", whole.backlog)] : []),
      ...names.filter((name) => c.operators[name].queue).map((name, i) => line(name, c.operators[name].queue, { colour: i + 1, dash: DASHES[(i + 1) % DASHES.length] }))] },
    { title: "Latency from due to done, s", level: c.objective_s, series: plain(["p95", "latency_p95"], ["p50", "latency_p50"]) },
  ];
  if (whole.executors) panels.push({ title: "Executors", series: [line("running", whole.executors, { step: true }), line("requested", whole.executors_requested ?? whole.executors, { step: true, dash: DOTTED })] });
  if (whole.hosts) panels.push({ title: "Hosts, and slices that move", series: steps(["hosts", "hosts"], ["slices that move", "moves"]) });
  if (whole.host_load_mean) panels.push({ title: "Load of hosts, share", series: known(["mean", "host_load_mean"], ["highest", "host_load_max"], ["lowest", "host_load_min"]).map(([label, m], i) => line(label, whole[m], { gaps: true, dash: DASHES[i] })) });
  if (whole.ideal) panels.push({ title: "Instances of all operators, and as many as the load needs", series: steps(["running", "replicas"], ["needed", "ideal"]) });
  if (whole.copies) panels.push({ title: "What instances decided alone", series: steps(["copies start", "copies"], ["stop", "stops"]) });
  if (whole.messages) panels.push({ title: "Messages of the protocol per tick, by operator", series: names.filter((name) => c.operators[name].messages).map((name) => line(name, c.operators[name].messages, { stack: true })) });
  return panels.filter((panel) => panel.series.length);
}

// every policy has its dash; of several runs, each has its colour
function dotted(run, replays, colour, hasRuns) {
  return replays.lines.filter((each) => each.run === run.name).map((each) => {
    const place = replays.policies.indexOf(each.policy);
    return {
      label: hasRuns ? `${each.policy}, replayed on ${run.name}` : `${each.policy}, replayed`, times: each.times, values: each.replicas,
      dash: REPLAY_DASHES[place % REPLAY_DASHES.length], step: true, gaps: true, colour: hasRuns ? colour : colour + place,
    };
  });
}

function compared(runs, replays) {
  const lines = (measure, more = {}, what = "") => runs.filter((run) => run.curves.run[measure]).map((run) => ({
    label: what ? `${run.name} ${what}` : run.name, times: run.curves.times, values: run.curves.run[measure], colour: runs.indexOf(run), gaps: true, ...more }));
  const objectives = new Set(runs.map((run) => run.curves.objective_s));
  return [
    { title: "Offered load, records/s", series: lines("offered_rate") },
    { title: "Processed, records/s", series: lines("processed_rate") },
    { title: "Running replicas of all operators", marks: runs.map((run, i) => ({ ...run.curves.changes, run: run.name, colour: i })),
      series: [...lines("replicas", { step: true }), ...runs.flatMap((run, i) => dotted(run, replays, i, true))] },
    { title: "Records not yet processed", series: lines("backlog") },
    { title: "Latency from due to done, s", series: [...lines("latency_p95", {}, "p95"), ...lines("latency_p50", { dash: P50 }, "p50")], level: objectives.size === 1 ? [...objectives][0] : null },
    { title: "Executors", series: lines("executors", { step: true }) },
    { title: "Hosts", series: lines("hosts", { step: true }) },
    { title: "Highest load of a host, share", series: lines("host_load_max") },
    { title: "Messages of the protocol per tick, all operators", series: lines("messages") },
  ].filter((panel) => panel.series.length);
}

// What the curves leave out, in words.
export function noteCurves(runs, replays) {
  const of = (run) => (runs.length > 1 ? ` of ${run.name}` : "");
  const notes = [];
  if (runs.some((run) => run.curves.is_thinned)) notes.push("Thinned out: of each short stretch the smallest and the largest value; zoom in for all.");
  for (const run of runs) {
    const { operators_left_out: left, changes } = run.curves;
    if (left && runs.length === 1) notes.push(`${left} more operators have no curve.`);
    if (changes.count > changes.at.length) notes.push(`${changes.at.length} of ${changes.count} changes${of(run)} have a mark.`);
  }
  return [...notes, ...replays.notes()];
}
