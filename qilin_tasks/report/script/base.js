// What all parts use. Everything that models wrote reaches the page as text nodes only.
const $ = (id) => document.getElementById(id);
const make = (name, text, className) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};
const button = (text, action) => {
  const element = make("button", text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
};
const number = (value) =>
  value === null || value === undefined ? "–" : Math.abs(value) < 10 ? value.toFixed(4) : value.toFixed(1);

// Numbers by size, texts by alphabet; what is missing comes last either way.
const compare = (a, b, down) => {
  const lost = (v) => v === null || v === undefined || v === "–" || Number.isNaN(v);
  if (lost(a) || lost(b)) return Number(lost(a)) - Number(lost(b));
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  return down ? -order : order;
};

// Texts for which the page has no room: a small page of our own posts them out of a frame.
const beside = (id) => new Promise((resolve, reject) => {
  const frame = make("iframe");
  const end = (done, value) => {
    removeEventListener("message", take);
    frame.remove();
    done(value);
  };
  const take = (event) => { if (event.source === frame.contentWindow) end(resolve, String(event.data)); };
  addEventListener("message", take);
  frame.hidden = true;
  frame.src = `texts/${id}.html`;
  frame.addEventListener("load", () => setTimeout(end, 2000, reject, new Error(`no texts/${id}.html beside this page`)));
  document.body.append(frame);
});
const unpack = async (id) => {
  const text = atob(($(id) ? $(id).textContent : await beside(id)).trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};
