// The page comes to life.
const turn = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};
// A link or a fragment that somebody sent: the view is set as a whole.
const go = async () => {
  if (!read()) return;
  await change({ task: view.task });
  if (openIndex() < 0) $("browser").scrollIntoView({ block: "start" });
  else await openSample(openIndex());
};
const start = async () => {
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("table.sortable, table.standings").forEach(copies);
  $("theme").addEventListener("click", turn);
  state.core = await unpack("core");
  // A model against itself says nothing: the two change places.
  for (const [name, other] of [["a", "b"], ["b", "a"]]) {
    $(name).addEventListener("change", () => {
      const swapped = $(name).value === view[other] ? { [other]: view[name] } : {};
      change({ [name]: $(name).value, ...swapped });
    });
  }
  for (const name of ["task", "metric", "only", "in", "mark", "sort"]) {
    $(name).addEventListener("change", () => change({ [name]: $(name).value }));
  }
  $("by").addEventListener("input", () => change({ by: $("by").value }));
  $("filter").addEventListener("input", () => change({ q: $("filter").value }));
  $("all").addEventListener("change", () => change({ all: $("all").checked ? "1" : "" }));
  $("down").addEventListener("click", () => change({ down: view.down ? "" : "1" }));
  $("previous").addEventListener("click", () => { state.page -= 1; show(); });
  $("next").addEventListener("click", () => { state.page += 1; show(); });
  $("close").addEventListener("click", closeSample);
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", go);
  const sent = location.hash.includes("=");
  if (sent) await go();
  else await change({ task: "" });
  document.documentElement.dataset.ready = "yes";
};
start().catch((error) => { $("count").textContent = `The samples can't be shown: ${error}`; });
