// Follows server-sent events with fetch, which can send a token; EventSource cannot.

/** Yields {type, id, data} of a response body; an incomplete event at the end is dropped. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", type = "", id = "", data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    // the server ends lines with \n
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) yield { type: type || "message", id, data: data.join("\n") };
        type = "";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") data.push(text);
      else if (name === "event") type = text;
      else if (name === "id") id = text;
    }
  }
}

/** Calls back for every event and reconnects behind the last one, until the signal aborts. */
export async function follow(path, headers, signal, { onEvent, onState, onRefusal }) {
  let last = null, wait = 200;
  while (!signal.aborted) {
    try {
      const resume = last === null ? {} : { "Last-Event-ID": last };
      const answer = await fetch(path, { headers: { ...headers, ...resume }, signal });
      if (answer.status === 410) {
        const gone = await answer.json();
        onRefusal(answer.status, gone);
        last = String(gone.after);
        continue;
      }
      if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
        onRefusal(answer.status, await answer.json());
        return;
      }
      if (answer.ok) {
        onState("on");
        wait = 200;
        for await (const event of readEvents(answer.body)) {
          if (event.id) last = event.id;
          onEvent(event);
          if (event.type === "resume") break;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
    }
    if (signal.aborted) return;
    onState("lost");
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(2 * wait, 5000);
  }
}
