// What is looked at: names, not places, so that a fragment means the same in a page with more models. `open` is a
// document's key as text, null for none.
const START = {
  task: "", a: "", b: "", metric: "", sort: "order", down: "", only: "all", by: "0.1", q: "", in: "query", mark: "",
  all: "", open: null,
};
const view = { ...START };
const state = { core: null, board: null, column: null, data: null, hits: null, page: 0 };

const columns = () => state.core.boards.flatMap((board) => board.columns.map((column) => ({ board, column })));
const place = (name) => state.column.rows.findIndex((row) => row.model === name);
const metricPlace = (name) => state.board.metrics.indexOf(name);

// Names that the column doesn't have give way to its first; what it has is kept when another choice changes.
const settle = () => {
  // Baselines come last.
  const rows = [...state.column.rows].sort((x, y) => Number(x.baseline) - Number(y.baseline));
  if (place(view.a) < 0) view.a = rows.find((row) => row.model !== view.b).model;
  if (view.b !== "none" && place(view.b) < 0) view.b = (rows.find((row) => row.model !== view.a) || { model: "none" }).model;
  if (metricPlace(view.metric) < 0) view.metric = state.board.metrics[0];
  if (view.sort.startsWith("m:") && metricPlace(view.sort.slice(2)) < 0) view.sort = "order";
};
const written = () => {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(view)) {
    if (value !== null && value !== START[name]) parts.set(name, value);
  }
  return `#${parts}`;
};
// A fragment with "=" is a view; others are places of the page.
const read = () => {
  const text = location.hash.slice(1);
  if (!text.includes("=")) return false;
  const parts = new URLSearchParams(text);
  for (const name of Object.keys(START)) view[name] = parts.has(name) ? parts.get(name) : START[name];
  return true;
};
// The address is written from the first choice on: until then it is the place of the page that was asked for.
const remember = () => { if (document.documentElement.dataset.ready) history.replaceState(null, "", written()); };
