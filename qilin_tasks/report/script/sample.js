// One document: query, context, reference, answers; long texts fold, and what differs can be marked.
const FOLD = 1500, HEAD = 1000;
const MARKS = {
  "": "nothing", pair: "what A and B don't share", reference: "what answer and reference don't share",
  context: "what is copied from the context",
};
const marked = (list, limit) => {
  const nodes = [];
  for (const [text, flag] of list) {
    if (limit <= 0) break;
    const shown = text.slice(0, limit);
    limit -= shown.length;
    nodes.push(flag ? make("mark", shown) : document.createTextNode(shown));
  }
  return nodes;
};
const folded = (list, element = make("pre")) => {
  const length = list.reduce((sum, [text]) => sum + text.length, 0);
  element.append(...marked(list, length > FOLD ? HEAD : length));
  if (length <= FOLD) return [element];
  element.append("…");
  const control = button(`show all ${length.toLocaleString("en")} characters`, () => {
    element.replaceChildren(...marked(list, length));
    element.tabIndex = 0;
    element.focus();
    control.remove();
  });
  return [element, control];
};
const plain = (text) => [[text, 0]];
const final = (answer) => (answer ? (answer[1] === 0 ? answer[0] : answer[1]) : "");

// The pieces of the reference, and of each answer as it counts. A's are needed twice and made once: of two answers of
// 20,000 characters that is what takes the time.
const markings = (passages, reference, answers) => {
  const a = final(answers[place(view.a)]), b = final(answers[place(view.b)]);
  const [ofA, other] = { pair: () => lacking(a, b), reference: () => lacking(a, reference) }[view.mark]?.() || [];
  const of = {
    pair: (i, text) => (i === place(view.a) ? ofA : i === place(view.b) ? other : plain(text)),
    reference: (i, text) => (i === place(view.a) ? ofA : lacking(text, reference)[0]),
    context: (i, text) => copied(text, passages.map((passage) => passage[1])),
  }[view.mark] || ((i, text) => plain(text));
  return { of, reference: view.mark === "reference" ? other : plain(reference) };
};
const answerBox = (i, answer, index, of) => {
  const row = state.column.rows[i];
  const box = make("section");
  const mark = row.model === view.a ? "A: " : row.model === view.b ? "B: " : "";
  box.append(make("h4", mark + row.model));
  if (row.problem) box.append(make("p", row.problem, "warning"));
  if (answer === null) {
    box.append(make("p", "not asked"));
  } else {
    box.append(make("p", answer[1] === 0 ? "raw output, which is the stripped answer" : "stripped answer", "soft"));
    box.append(...folded(of(i, final(answer))));
    if (answer[1] !== 0) box.append(make("p", "raw output", "soft"), ...folded(plain(answer[0])));
  }
  const table = make("table"), body = make("tbody");
  for (const metric of state.board.metrics) {
    const value = score(row.model, metric, index);
    if (value === null) continue;
    const line = make("tr");
    const head = make("th", metric);
    head.scope = "row";
    line.append(head, make("td", number(value)));
    body.append(line);
  }
  table.append(body);
  const details = make("details");
  details.append(make("summary", "signature"), make("code", row.signature));
  box.append(table, details);
  return box;
};

const openIndex = () => (view.open === null ? -1 : state.data.keys.findIndex((key) => String(key) === view.open));
const showSample = async () => {
  const index = openIndex();
  if (index < 0) {
    $("sample").hidden = true;
    return;
  }
  let found;
  try {
    found = await texts(index);
  } catch (error) {
    $("shown").replaceChildren(make("p", `The texts can't be shown: ${error.message}`, "warning"));
    $("sample").hidden = false;
    return;
  }
  if (index !== openIndex()) return;
  const [query, passages, reference, answers] = found;
  const marks = markings(passages, reference, answers);
  const parts = [make("h3", `Document ${state.data.keys[index]} of ${state.column.task}`)];
  parts.push(make("h4", "Query"), ...folded(plain(query)), make("h4", "Reference"), ...folded(marks.reference));
  const both = make("div", undefined, "answers");
  const chosen = view.all ? state.column.rows.map((_, i) => i)
    : [...new Set([place(view.a), place(view.b)])].filter((i) => i >= 0);
  both.append(...chosen.map((i) => answerBox(i, answers[i], index, marks.of)));
  parts.push(both, make("h4", passages.length ? `Context (${passages.length})` : "Context: none"));
  passages.forEach(([title, content], i) => {
    const passage = make("div", undefined, "passage");
    passage.append(make("b", `[${i + 1}] ${title}`), ...folded(plain(content), make("span")));
    parts.push(passage);
  });
  $("shown").replaceChildren(...parts);
  $("sample").hidden = false;
  const listed = visible();
  const at = listed.indexOf(index);
  $("place").textContent = at < 0 ? "not in the list below" : `${at + 1} of ${listed.length} in the list below`;
  $("before").disabled = at <= 0;
  $("after").disabled = at < 0 || at === listed.length - 1;
};

const openSample = async (index) => {
  view.open = String(state.data.keys[index]);
  const at = visible().indexOf(index);
  if (at >= 0) state.page = Math.floor(at / PAGE);
  show();
  await showSample();
  $("sample").scrollIntoView({ block: "start" });
  if (!$("sample").contains(document.activeElement)) $("sample").focus({ preventScroll: true });
};
const closeSample = () => {
  const index = openIndex();
  view.open = null;
  showSample();
  show();
  const control = document.querySelector(`#rows tr[data-index="${index}"] button`);
  if (control) control.focus();
};
const step = (by) => {
  const listed = visible();
  const to = listed[listed.indexOf(openIndex()) + by];
  if (to !== undefined) openSample(to);
};
const keys = (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (view.open === null || event.ctrlKey || event.metaKey || event.altKey || typing) return;
  const action = {
    j: () => step(1), ArrowRight: () => step(1), k: () => step(-1), ArrowLeft: () => step(-1), Escape: closeSample,
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
};
