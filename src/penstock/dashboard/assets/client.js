// Talks to the server: JSON, server-sent events, requests of people. The token is in the address
// behind the hash, which browsers do not send; it is kept for this tab.

const KEY = "penstock-token";
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname + location.search);
}

export function token() { return sessionStorage.getItem(KEY) || ""; }
export function setToken(value) { sessionStorage.setItem(KEY, value); }

function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

export async function get(path, query = {}, signal = undefined) {
  const pairs = [];
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") pairs.push([name, each]);
    }
  }
  const answer = await fetch(`api/${path}?${new URLSearchParams(pairs)}`, { headers: headers(), signal });
  if (!answer.ok) throw new Error(await problem(answer));
  return answer.json();
}

export async function post(path, data) {
  const answer = await fetch(`api/${path}`, {
    method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(data),
  });
  if (!answer.ok) throw new Error(await problem(answer));
  return answer.json();
}

async function problem(answer) {
  const text = await answer.text();
  try { return JSON.parse(text).error || text; } catch { return text || `error ${answer.status}`; }
}

// EventSource cannot send the token, so the stream is read by hand; it is opened again if it ends.
export function follow(runs, onEvent, onState) {
  const control = new AbortController();
  (async () => {
    while (!control.signal.aborted) {
      try {
        const query = new URLSearchParams(runs.map((run) => ["run", run]));
        const answer = await fetch(`api/events?${query}`, { headers: headers(), signal: control.signal });
        if (!answer.ok) throw new Error(await problem(answer));
        onState("");
        await readStream(answer.body.getReader(), onEvent);
      } catch (error) {
        if (control.signal.aborted) return;
        onState(`no live updates: ${error.message}`);
      }
      await new Promise((done) => setTimeout(done, 2000));
    }
  })();
  return () => control.abort();
}

async function readStream(reader, onEvent) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true }).replaceAll("\r", "");
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (data) onEvent(JSON.parse(data));
    }
  }
}
