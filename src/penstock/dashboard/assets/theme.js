// Light, dark, or as the system prefers; the choice is kept in the browser.

const KEY = "penstock-theme";
const NAMES = ["auto", "light", "dark"];
const chosen = () => localStorage.getItem(KEY) ?? "auto";

export function startTheme() {
  const name = chosen(), button = document.getElementById("theme");
  if (name === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  document.getElementById("theme-name").textContent = name;
  button.setAttribute("aria-label", `Theme: ${name}`);
}

export function nextTheme() {
  localStorage.setItem(KEY, NAMES[(NAMES.indexOf(chosen()) + 1) % NAMES.length]);
  startTheme();
}
