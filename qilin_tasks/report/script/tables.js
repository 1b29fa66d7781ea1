// The static tables: a click on a column's head sorts by it, published rows included.
const sortable = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const control = button(head.textContent, () => {
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
    head.replaceChildren(control);
  });
};
