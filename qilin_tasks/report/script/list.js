// The list of documents under the chosen filter, and the controls over it.
const PAGE = 50;
const options = (id, names, chosen) => {
  $(id).replaceChildren(...names.map(([value, text]) => {
    const option = make("option", text);
    option.value = value;
    return option;
  }));
  $(id).value = chosen;
};
const fill = () => {
  const models = state.column.rows.map((row) => [row.model, row.model + (row.problem ? " †" : "")]);
  const metrics = state.board.metrics;
  options("task", columns().map(({ column }) => [column.task, column.task]), view.task);
  options("a", models, view.a);
  options("b", [["none", "none"], ...models], view.b);
  options("metric", metrics.map((name) => [name, name]), view.metric);
  options("only", Object.entries(FILTERS).map(([name, [text]]) => [name, text]), view.only);
  options("in", Object.entries(PLACES), view.in);
  options("mark", Object.entries(MARKS), view.mark);
  options("sort", [
    ["order", "document order"], ["a", "score of A"], ["b", "score of B"], ["difference", "A − B"],
    ["gap", "size of A − B"], ["query", "query"], ...metrics.map((name) => [`m:${name}`, `A: ${name}`]),
  ], view.sort);
  $("by").value = view.by;
  $("by").disabled = view.only !== "by";
  if ($("filter").value !== view.q) $("filter").value = view.q;
  $("all").checked = Boolean(view.all);
  $("down").textContent = view.down ? "descending ▼" : "ascending ▲";
};

const visible = () => {
  const passes = FILTERS[view.only] ? FILTERS[view.only][1] : FILTERS.all[1];
  const found = [...state.data.keys.keys()].filter((i) => (!state.hits || state.hits.has(i)) && passes(i));
  const by = {
    order: (i) => i, query: (i) => state.data.queries[i], difference,
    gap: (i) => (difference(i) === null ? null : Math.abs(difference(i))),
    a: (i) => score(view.a, view.metric, i), b: (i) => score(view.b, view.metric, i),
  }[view.sort] || ((i) => score(view.a, view.sort.slice(2), i));
  const values = new Map(found.map((i) => [i, by(i)]));
  return found.sort((x, y) => compare(values.get(x), values.get(y), Boolean(view.down)) || x - y);
};
const line = (i) => {
  const row = make("tr");
  row.dataset.index = i;
  if (String(state.data.keys[i]) === view.open) row.className = "open";
  const query = make("td", undefined, "text");
  query.append(button(state.data.queries[i] || "(no query)", () => openSample(i)));
  row.append(make("td", String(state.data.keys[i])), query, make("td", number(score(view.a, view.metric, i))));
  if (view.b !== "none") row.append(make("td", number(score(view.b, view.metric, i))), make("td", number(difference(i))));
  return row;
};
const head = ([name, sort]) => {
  const cell = make("th", undefined, name === "query" ? "text" : "");
  cell.append(button(name, () => {
    const down = view.sort === sort ? !view.down : sort !== "order" && sort !== "query";
    change({ sort, down: down ? "1" : "" });
    const again = [...$("heads").querySelectorAll("button")].find((other) => other.textContent === name);
    if (again) again.focus();
  }));
  if (view.sort === sort) cell.setAttribute("aria-sort", view.down ? "descending" : "ascending");
  return cell;
};
const show = () => {
  const found = visible();
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  state.page = Math.min(Math.max(0, state.page), pages - 1);
  $("rows").replaceChildren(...found.slice(state.page * PAGE, (state.page + 1) * PAGE).map(line));
  const second = view.b === "none" ? [] : [["B", "b"], ["A − B", "difference"]];
  $("heads").replaceChildren(...[["key", "order"], ["query", "query"], ["A", "a"], ...second].map(head));
  $("count").textContent = `${found.length} of ${state.data.keys.length} documents, page ${state.page + 1} of ${pages}`;
  $("previous").disabled = state.page === 0;
  $("next").disabled = state.page === pages - 1;
  fill();
  remember();
};
// Some choices change, the others stay. What needs no text to be unpacked is there at once.
const change = async (changes) => {
  Object.assign(view, changes);
  if ("task" in changes) await pick();
  settle();
  state.page = 0;
  if (isDeep()) {
    const say = (text) => { $("count").textContent = text; };
    const hits = await deepSearch(say).catch((error) => say(`The texts can't be searched: ${error.message}`));
    if (hits === undefined) return;
    state.hits = hits;
  } else {
    searches++;
    state.hits = quickSearch();
  }
  show();
  await showSample();
};
