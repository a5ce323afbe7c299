// Requests of people to a running loop: who may ask, and what is sent.
import { post, setToken } from "./client.js";

const $ = (id) => document.getElementById(id);

export function drawControl(overview) {
  const isLive = overview.is_live && overview.is_controlled;
  $("control-note").textContent = isLive ? "Requests take effect at the next tick with measures; the journal says who asked."
    : overview.is_controlled ? "This run does not run: there is nothing to control." : "Its replicas decide alone: no loop reads requests.";
  for (const button of $("control").querySelectorAll("button")) button.disabled = !isLive;
}

export async function control(run, action) {
  setToken($("token").value.trim());
  const data = { run, action, who: $("who").value.trim() };
  if (["pin", "unpin", "bounds"].includes(action)) data.operator = $("control-operator").value;
  if (action === "pin") data.replicas = Number($("replicas").value);
  if (action === "bounds") {
    if ($("replicas").value) data.minimum = Number($("replicas").value);
    if ($("maximum").value) data.maximum = Number($("maximum").value);
  }
  try {
    await post("control", data);
    $("control-answer").textContent = `${action} was asked; it takes effect at the next tick with measures.`;
    localStorage.setItem("penstock-who", data.who);
  } catch (error) { $("control-answer").textContent = `refused: ${error.message}`; }
}
