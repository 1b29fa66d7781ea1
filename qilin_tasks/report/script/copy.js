// Tables as text: Markdown, LaTeX (booktabs), CSV. Cells are taken as they are read, without what a title says.
const cellText = (cell) => {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("svg").forEach((drawing) => drawing.remove());
  copy.querySelectorAll("small").forEach((small) => small.before(" "));
  copy.querySelectorAll("sup").forEach((letters) => letters.before(" "));
  const kind = cell.cellIndex === 0 && /\b(baseline|published)\b/.exec(cell.parentElement.className);
  return copy.textContent.replace(/\s+/g, " ").trim() + (kind ? ` (${kind[0]})` : "");
};
// Columns that only hold drawings are left out.
const grid = (table) => {
  const rows = [...table.rows].map((row) => [...row.cells].map(cellText));
  const kept = rows[0].map((_, i) => table.tBodies[0].rows.length === 0 || rows.slice(1).some((row) => row[i] !== ""));
  return rows.map((row) => row.filter((_, i) => kept[i]));
};
const LATEX = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$", "−": "$-$", "–": "--",
  "<": "$<$", ">": "$>$", "[": "{[}", "†": "$\\dagger$",
};
const latexText = (text) => text.replace(/[\\~^±−–<>[†&%$#_{}]/g, (c) => LATEX[c] || `\\${c}`);
const FORMATS = {
  Markdown: ([head, ...body]) => [head, head.map((_, i) => (i ? "---:" : "---")), ...body]
    .map((row) => `| ${row.map((text) => text.replace(/[\\|<`]/g, "\\$&")).join(" | ")} |`).join("\n"),
  LaTeX: ([head, ...body]) => [
    `\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "\\toprule", `${head.map(latexText).join(" & ")} \\\\`, "\\midrule",
    ...body.map((row) => `${row.map(latexText).join(" & ")} \\\\`), "\\bottomrule", "\\end{tabular}",
  ].join("\n"),
  // A spreadsheet runs what begins like a formula; a number may begin with its sign.
  CSV: (rows) => rows.map((row) => row.map((text) => {
    const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }).join(",")).join("\n"),
};
const toClipboard = async (text) => {
  if (navigator.clipboard) {
    try { await navigator.clipboard.writeText(text); return; } catch { /* not allowed here: the old way */ }
  }
  const area = make("textarea", text);
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
};
const copies = (table) => {
  const bar = make("p", "copy as ", "copies");
  for (const [name, write] of Object.entries(FORMATS)) {
    const control = button(name, async () => {
      await toClipboard(`${write(grid(table))}\n`);
      control.textContent = `${name} ✓`;
      setTimeout(() => { control.textContent = name; }, 2000);
    });
    bar.append(control, " ");
  }
  table.closest(".scroll").after(bar);
};
