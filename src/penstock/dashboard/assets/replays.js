// Answers of other policies to the recorded snapshots: which ones are chosen, and their lines.
import { get } from "./client.js";
import { clock, element } from "./format.js";

export const MAX_POLICIES = 4;

export class Replays {
  constructor(select, chips, onChange) {
    this.select = select; this.chips = chips; this.onChange = onChange;
    this.policies = []; this.lines = [];
  }

  offer(names) {
    this.select.append(...names.map((name) => element("option", { value: name }, name)));
  }

  async add(policy, runs) {
    this.select.value = "";
    if (!policy || this.policies.includes(policy)) return;
    if (this.policies.length >= MAX_POLICIES) throw new Error(`at most ${MAX_POLICIES} other policies are shown at once`);
    this.policies.push(policy);
    await this.load(runs);
  }

  remove(policy) {
    this.policies = this.policies.filter((each) => each !== policy);
    this.lines = this.lines.filter((line) => line.policy !== policy);
    this.draw();
    this.onChange();
  }

  // asks what is missing; a policy that answers for no run is dropped again
  async load(runs) {
    this.lines = this.lines.filter((line) => runs.includes(line.run));
    const pairs = this.policies.flatMap((policy) => runs.map((run) => [policy, run]))
      .filter(([policy, run]) => !this.lines.some((line) => line.policy === policy && line.run === run));
    const problems = [];
    for (const [policy, run] of pairs) {
      try { this.lines.push({ run, ...(await get("replay", { run, policy })) }); } catch (error) { problems.push(`${run}: ${error.message}`); }
    }
    this.policies = this.policies.filter((policy) => this.lines.some((line) => line.policy === policy));
    this.draw();
    this.onChange();
    if (problems.length) throw new Error(problems.join("; "));
  }

  draw() {
    this.chips.replaceChildren(...this.policies.map((policy) => element("button", { type: "button", "data-policy": policy, "aria-label": `Remove ${policy}`, onclick: () => this.remove(policy) }, `${policy} ×`)));
  }

  // what the lines leave out, in words
  notes() {
    return this.lines.filter((line) => line.is_cut).map((line) => `${line.policy} was asked about the newest ticks of ${line.run} only, from ${clock(line.from_s)}.`);
  }
}
