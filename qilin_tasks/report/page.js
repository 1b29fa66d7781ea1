"use strict";
// Everything that models wrote reaches the page as text nodes only.
(() => {
  const PAGE = 50;
  const $ = (id) => document.getElementById(id);
  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const number = (value) =>
    value === null || value === undefined ? "–" : Math.abs(value) < 10 ? value.toFixed(4) : value.toFixed(1);

  const unpack = async (id) => {
    const text = atob($(id).textContent.trim());
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  // The static tables: a click on a column's head sorts by it, published rows included.
  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", head.textContent);
      head.textContent = "";
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const value = (row) => {
          const cell = row.cells[column];
          return cell && cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell ? cell.textContent : "";
        };
        const rows = [...body.rows];
        rows.sort((a, b) => compare(value(a), value(b), down));
        body.append(...rows);
      });
    });
  };
  // Numbers by size, texts by alphabet; what is missing comes last either way.
  const compare = (a, b, down) => {
    const lost = (v) => v === null || v === undefined || v === "–" || Number.isNaN(v);
    if (lost(a) || lost(b)) return Number(lost(a)) - Number(lost(b));
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return down ? -order : order;
  };

  const state = { core: null, board: null, column: null, a: 0, b: -1, metric: 0, sort: "order", down: false, page: 0, open: null };
  const blocks = new Map();
  const texts = (column, index) => {
    const id = `t${column.id}.${Math.floor(index / state.core.block)}`;
    if (!blocks.has(id)) blocks.set(id, unpack(id));
    return blocks.get(id).then((block) => block.texts[index % state.core.block]);
  };
  const score = (row, metric, index) => {
    const values = row >= 0 ? state.column.rows[row].scores[metric] : null;
    const value = values ? values[index] : null;
    return value === null || value === undefined ? null : value / state.core.unit;
  };
  const difference = (index) => {
    const a = score(state.a, state.metric, index), b = score(state.b, state.metric, index);
    return a === null || b === null ? null : a - b;
  };

  const options = (select, names, chosen) => {
    select.replaceChildren(...names.map(([value, text]) => {
      const option = make("option", text);
      option.value = value;
      return option;
    }));
    select.value = String(chosen);
  };
  const choose = () => {
    const models = state.column.rows.map((row, i) => [i, row.model + (row.problem ? " †" : "")]);
    options($("a"), models, state.a);
    options($("b"), [[-1, "none"], ...models], state.b);
    options($("metric"), state.board.metrics.map((name, i) => [i, name]), state.metric);
    options($("sort"), [
      ["order", "document order"], ["a", "score of A"], ["b", "score of B"], ["difference", "A − B"], ["query", "query"],
      ...state.board.metrics.map((name, i) => [`m${i}`, `A: ${name}`]),
    ], state.sort);
  };
  const visible = () => {
    const wanted = $("filter").value.trim().toLowerCase();
    const found = [];
    state.column.keys.forEach((key, i) => {
      if (!wanted || state.column.queries[i].toLowerCase().includes(wanted) || String(key) === wanted) found.push(i);
    });
    const by = {
      order: (i) => i, query: (i) => state.column.queries[i], difference,
      a: (i) => score(state.a, state.metric, i), b: (i) => score(state.b, state.metric, i),
    }[state.sort] || ((i) => score(state.a, Number(state.sort.slice(1)), i));
    const keys = new Map(found.map((i) => [i, by(i)]));
    return found.sort((x, y) => compare(keys.get(x), keys.get(y), state.down) || x - y);
  };
  const show = () => {
    const found = visible();
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const rows = found.slice(state.page * PAGE, (state.page + 1) * PAGE).map((i) => {
      const row = make("tr");
      row.dataset.index = i;
      if (state.open === i) row.className = "open";
      const button = make("button", state.column.queries[i] || "(no query)");
      button.addEventListener("click", () => openSample(i));
      const query = make("td", undefined, "text");
      query.append(button);
      row.append(make("td", String(state.column.keys[i])), query);
      row.append(make("td", number(score(state.a, state.metric, i))));
      if (state.b >= 0) row.append(make("td", number(score(state.b, state.metric, i))), make("td", number(difference(i))));
      return row;
    });
    $("rows").replaceChildren(...rows);
    const heads = [["key", "order"], ["query", "query"], ["A", "a"], ...(state.b >= 0 ? [["B", "b"], ["A − B", "difference"]] : [])];
    $("heads").replaceChildren(...heads.map(([name, sort]) => {
      const head = make("th", undefined, name === "query" ? "text" : "");
      const button = make("button", name);
      button.addEventListener("click", () => {
        state.down = state.sort === sort ? !state.down : sort !== "order" && sort !== "query";
        state.sort = sort;
        state.page = 0;
        choose();
        show();
      });
      if (state.sort === sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      head.append(button);
      return head;
    }));
    $("count").textContent = `${found.length} of ${state.column.keys.length} documents, page ${state.page + 1} of ${pages}`;
    $("down").textContent = state.down ? "descending ▼" : "ascending ▲";
  };

  const openSample = async (index) => {
    state.open = index;
    const [query, passages, reference, answers] = await texts(state.column, index);
    const box = $("sample");
    const close = make("button", "close");
    close.addEventListener("click", () => { box.hidden = true; state.open = null; show(); });
    const parts = [close, make("h3", `Document ${state.column.keys[index]} of ${state.column.task}`), make("h3", "Query"), make("pre", query)];
    parts.push(make("h3", passages.length ? `Context (${passages.length})` : "Context: none"));
    for (const [title, content] of passages) {
      const passage = make("div", undefined, "passage");
      if (title) passage.append(make("b", title));
      passage.append(document.createTextNode(content));
      parts.push(passage);
    }
    parts.push(make("h3", "Reference"), make("pre", reference));
    const both = make("div", undefined, "answers");
    const all = $("all").checked ? state.column.rows.map((_, i) => i) : [state.a, ...(state.b >= 0 && state.b !== state.a ? [state.b] : [])];
    for (const i of all) {
      const row = state.column.rows[i];
      const box2 = make("section");
      box2.append(make("h3", row.model));
      if (row.problem) box2.append(make("p", row.problem, "warning"));
      const answer = answers[i];
      if (answer === null) {
        box2.append(make("p", "not asked"));
      } else {
        box2.append(make("p", "raw output", "soft"), make("pre", answer[0]));
        box2.append(make("p", answer[1] === 0 ? "stripped answer: the same" : "stripped answer", "soft"));
        if (answer[1] !== 0) box2.append(make("pre", answer[1]));
      }
      const table = make("table");
      state.board.metrics.forEach((name, m) => {
        const value = score(i, m, index);
        if (value === null) return;
        const line = make("tr");
        line.append(make("td", name), make("td", number(value)));
        table.append(line);
      });
      const details = make("details");
      details.append(make("summary", "signature"), make("code", row.signature));
      box2.append(table, details);
      both.append(box2);
    }
    parts.push(both);
    box.replaceChildren(...parts);
    box.hidden = false;
    show();
    box.scrollIntoView({ block: "nearest" });
  };

  const pickColumn = (value) => {
    const [b, c] = value.split(".").map(Number);
    state.board = state.core.boards[b];
    state.column = state.board.columns[c];
    state.a = 0;
    state.b = state.column.rows.length > 1 ? 1 : -1;
    state.metric = 0;
    state.sort = "order";
    state.down = false;
    state.page = 0;
    state.open = null;
    $("sample").hidden = true;
    choose();
    show();
  };
  const start = async () => {
    document.querySelectorAll("table.sortable").forEach(sortable);
    $("theme").addEventListener("click", () => {
      const dark = getComputedStyle(document.documentElement).colorScheme.trim() === "dark" ||
        (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
      document.documentElement.dataset.theme = dark ? "light" : "dark";
    });
    state.core = await unpack("core");
    const columns = state.core.boards.flatMap((board) => board.columns.map((column) => [column.id, column.task]));
    options($("task"), columns, columns[0][0]);
    $("task").addEventListener("change", () => pickColumn($("task").value));
    for (const id of ["a", "b", "metric"]) {
      $(id).addEventListener("change", () => {
        state[id] = Number($(id).value);
        show();
        if (state.open !== null) openSample(state.open);
      });
    }
    $("sort").addEventListener("change", () => { state.sort = $("sort").value; state.page = 0; show(); });
    $("down").addEventListener("click", () => { state.down = !state.down; state.page = 0; show(); });
    $("filter").addEventListener("input", () => { state.page = 0; show(); });
    $("all").addEventListener("change", () => { if (state.open !== null) openSample(state.open); });
    $("previous").addEventListener("click", () => { state.page -= 1; show(); });
    $("next").addEventListener("click", () => { state.page += 1; show(); });
    pickColumn(columns[0][0]);
    document.documentElement.dataset.ready = "yes";
  };
  start().catch((error) => { $("count").textContent = `The samples can't be shown: ${error}`; });
})();
