// Scores and texts of the chosen column: unpacked when they are first looked at.
const loaded = new Map();
const pick = async () => {
  const chosen = columns().find(({ column }) => column.task === view.task) || columns()[0];
  view.task = chosen.column.task;
  const data = await part(`c${chosen.column.id}`);
  for (const flags of data.flags) for (const name of Object.keys(flags)) flags[name] = new Set(flags[name]);
  Object.assign(state, { board: chosen.board, column: chosen.column, data, hits: null });
};
const part = (id) => {
  if (!loaded.has(id)) loaded.set(id, unpack(id));
  return loaded.get(id).catch((error) => { loaded.delete(id); throw error; });
};
const blockOf = (number) => part(`t${state.column.id}.${number}`).then((block) => block.texts);
const texts = async (index) => (await blockOf(Math.floor(index / state.core.block)))[index % state.core.block];

const score = (model, metric, index) => {
  const row = place(model);
  const values = row >= 0 ? state.data.scores[row][metricPlace(metric)] : null;
  const value = values ? values[index] : null;
  return value === null || value === undefined ? null : value / state.core.unit;
};
const difference = (index) => {
  const a = score(view.a, view.metric, index), b = score(view.b, view.metric, index);
  return a === null || b === null ? null : a - b;
};
// How much better A is; null where no direction is better.
const lead = (index) => {
  const gap = difference(index), more = state.board.better[metricPlace(view.metric)];
  return gap === null || more === null ? null : more ? gap : -gap;
};
const flagged = (name, index) => [view.a, view.b].some((model) => {
  const row = place(model);
  return row >= 0 && state.data.flags[row][name].has(index);
});

const FILTERS = {
  all: ["all documents", () => true],
  a: ["A wins", (i) => lead(i) !== null && lead(i) > 0],
  b: ["B wins", (i) => lead(i) !== null && lead(i) < 0],
  tie: ["tie", (i) => lead(i) === 0],
  by: ["differ by more than …", (i) => Math.abs(difference(i)) > Number(view.by)],
  empty: ["A or B is empty", (i) => flagged("empty", i)],
  refused: ["A or B refused", (i) => flagged("refused", i)],
  unfinished: ["A or B unfinished", (i) => flagged("unfinished", i)],
  trimmed: ["context was trimmed", (i) => flagged("trimmed", i)],
};

const PLACES = { query: "queries", reference: "references", output: "outputs", text: "all texts" };
const searched = (text) => {
  const [query, passages, reference, answers] = text;
  const shown = view.all ? answers : [answers[place(view.a)], answers[place(view.b)]];
  const outputs = shown.flatMap((answer) => (answer ? [answer[0], answer[1] || ""] : []));
  return { query: [query], reference: [reference], output: outputs,
    text: [query, reference, ...outputs, ...passages.flat()] }[view.in];
};
const wanted = () => view.q.trim().toLowerCase();
const isDeep = () => Boolean(wanted()) && (view.in !== "query" || state.data.cut);
// The documents whose query or key is meant, as a set; null where nothing is searched. No text is unpacked for it.
const quickSearch = () => {
  const text = wanted();
  if (!text) return null;
  return new Set([...state.data.keys.keys()].filter((i) => String(state.data.keys[i]) === text ||
    state.data.queries[i].toLowerCase().includes(text)));
};
let searches = 0;
// The same over the texts; undefined where a later search began meanwhile.
const deepSearch = async (say) => {
  const mine = ++searches, text = wanted(), size = state.core.block;
  const count = Math.ceil(state.data.keys.length / size);
  const found = new Set();
  for (let block = 0; block < count; block++) {
    say(`searching ${Math.round((100 * block) / count)} %`);
    const all = await blockOf(block);
    if (mine !== searches) return undefined;
    all.forEach((entry, i) => {
      const index = block * size + i;
      const hit = searched(entry).some((piece) => piece.toLowerCase().includes(text));
      if (hit || String(state.data.keys[index]) === text) found.add(index);
    });
  }
  return found;
};
