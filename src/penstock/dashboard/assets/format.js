// Numbers and times for people; elements made of text only, so that names never become markup.

export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  for (const [size, sign] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(value) >= size * 0.9995) return `${+(value / size).toPrecision(3)}${sign}`;
  }
  return `${+value.toPrecision(3)}`;
}

export function percent(share) {
  return share === null || share === undefined ? "-" : `${Math.round(100 * share)} %`;
}

export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds + 1e-6));
  const two = (n) => String(n).padStart(2, "0");
  const days = Math.floor(whole / 86400);
  const text = `${Math.floor(whole / 3600) % 24}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  return days ? `${days} d ${text}` : text;
}

export function bytes(count) {
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) if (count >= size) return `${+(count / size).toPrecision(3)} ${unit}`;
  return `${count} B`;
}

export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(tag, options = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function colour(number) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--c${number % 8}`).trim();
}

export function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
