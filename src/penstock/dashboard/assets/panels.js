// Which curves a page shows: operators of one run, or up to four runs on the same axes.

export function makePanels(runs, replays) {
  return runs.length > 1 ? compared(runs, replays) : single(runs[0], replays);
}

function single(run, replays) {
  const c = run.curves, t = c.times, whole = c.run;
  const line = (label, values, more = {}) => ({ label, times: t, values, ...more });
  const names = Object.keys(c.operators);
  const panels = [
    { title: "Load", unit: "records/s", series: [["offered", "offered_rate"], ["processed", "processed_rate"]].filter(([, m]) => whole[m]).map(([label, m]) => line(label, whole[m])) },
    { title: "Replicas that run, by operator", unit: "replicas", marks: c.changes,
      series: [...names.map((name) => line(name, c.operators[name].running ?? [], { stack: true })), ...dotted(run.name, replays, names.length)] },
    { title: "Records that wait", unit: "records", series: [...(whole.backlog ? [line("not yet processed", whole.backlog)] : []),
      ...names.filter((name) => c.operators[name].queue).map((name, i) => line(name, c.operators[name].queue, { colour: i + 1 }))] },
    { title: "Latency from due to done", unit: "s", level: c.objective_s,
      series: [["95 % below", "latency_p95"], ["50 % below", "latency_p50"]].filter(([, m]) => whole[m]).map(([label, m]) => line(label, whole[m])) },
  ];
  if (whole.executors) panels.push({ title: "Executors", unit: "executors", series: [line("running", whole.executors, { step: true }), line("requested", whole.executors_requested ?? whole.executors, { step: true, dash: [2, 3] })] });
  const known = (...pairs) => pairs.filter(([, m]) => whole[m]);
  const steps = (...pairs) => known(...pairs).map(([label, m], i) => line(label, whole[m], { step: true, gaps: true, dash: i ? [2, 3] : undefined }));
  if (whole.hosts) panels.push({ title: "Hosts, and slices that move", unit: "number", series: steps(["hosts", "hosts"], ["slices that move", "moves"]) });
  if (whole.host_load_mean) panels.push({ title: "Load of hosts", unit: "share", series: known(["mean", "host_load_mean"], ["highest", "host_load_max"], ["lowest", "host_load_min"]).map(([label, m]) => line(label, whole[m], { gaps: true })) });
  if (whole.ideal) panels.push({ title: "Instances of all operators, and as many as the load needs", unit: "instances", series: steps(["running", "replicas"], ["needed", "ideal"]) });
  if (whole.copies) panels.push({ title: "What instances decided alone", unit: "instances", series: steps(["copies start", "copies"], ["stop", "stops"]) });
  if (whole.messages) panels.push({ title: "Messages of the protocol, by operator", unit: "messages per tick", series: names.filter((name) => c.operators[name].messages).map((name) => line(name, c.operators[name].messages, { stack: true })) });
  return panels.filter((panel) => panel.series.length);
}

function dotted(name, replays, first) {
  return replays.filter((each) => each.run === name).map((each, i) => ({
    label: `${each.policy}, replayed`, times: each.times, values: each.replicas, dash: [2, 4], step: true, gaps: true, colour: first + i,
  }));
}

function compared(runs, replays) {
  const lines = (measure, more = {}) => runs.filter((run) => run.curves.run[measure]).map((run) => ({
    label: run.name, times: run.curves.times, values: run.curves.run[measure], colour: runs.indexOf(run), gaps: true, ...more }));
  const objectives = new Set(runs.map((run) => run.curves.objective_s));
  return [
    { title: "Offered load", unit: "records/s", series: lines("offered_rate") },
    { title: "Replicas that run, all operators", unit: "replicas", series: [...lines("replicas", { step: true }), ...runs.flatMap((run) => dotted(run.name, replays, 4))] },
    { title: "Records not yet processed", unit: "records", series: lines("backlog") },
    { title: "Latency from due to done, 95 % below", unit: "s", series: lines("latency_p95"), level: objectives.size === 1 ? [...objectives][0] : null },
    { title: "Highest load of a host", unit: "share", series: lines("host_load_max") },
    { title: "Messages of the protocol, all operators", unit: "messages per tick", series: lines("messages") },
  ].filter((panel) => panel.series.length);
}
