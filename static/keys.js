// Keys: Ctrl K finds anything, / goes to the page's search, arrows walk through rows of a list.
// What they reach can be reached without them, and without this file.
(() => {
  const palette = document.getElementById("palette");
  const field = document.getElementById("palette-q");
  const found = document.getElementById("palette-found");

  // ---------- the palette: a combobox with a listbox ----------
  const options = () => [...found.querySelectorAll('[role="option"]')];
  const chosen = () => found.querySelector('[aria-selected="true"]');
  const choose = (option) => {
    chosen()?.setAttribute("aria-selected", "false");
    if (!option) { field.removeAttribute("aria-activedescendant"); return; }
    option.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const openPalette = () => {
    if (!palette || palette.open) return;
    palette.showModal();
    field.select();
    htmx.trigger(field, "berth:asked");
  };
  if (palette) {
    found.addEventListener("htmx:afterSwap", () => {
      field.setAttribute("aria-expanded", String(options().length > 0));
      choose(options()[0]);
    });
    found.addEventListener("pointermove", (event) => {
      const option = event.target.closest('[role="option"]');
      if (option && option !== chosen()) choose(option);
    });
    field.addEventListener("keydown", (event) => {
      const all = options(), at = all.indexOf(chosen());
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
      if (to !== undefined && all.length) {
        event.preventDefault();
        const page = event.key.startsWith("Page");
        choose(all[page ? Math.min(Math.max(to, 0), all.length - 1) : (to + all.length) % all.length]);
      }
      if (event.key === "Enter" && chosen()) { event.preventDefault(); chosen().click(); }
    });
    palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
    palette.addEventListener("close", () => field.setAttribute("aria-expanded", "false"));
  }

  // ---------- rows of a list: the link of the row has the focus, so Enter is the browser's own ----------
  const rows = () => [...document.querySelectorAll("table[data-rows] tbody th a")];
  const walk = (event) => {
    const all = rows(), at = all.indexOf(document.activeElement);
    const from = document.activeElement;
    if (at < 0 && !from.matches("[data-slash], body, main")) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all.length || (at < 0 && event.key !== "ArrowDown")) return;
    event.preventDefault();
    if (to < 0) document.querySelector("[data-slash]")?.focus();
    else all[Math.min(to, all.length - 1)].focus();
  };

  const typing = (element) => element.matches?.("input, select, textarea, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "/" && !typing(event.target)) {
      const search = document.querySelector("[data-slash]");
      if (!search) return;
      event.preventDefault();
      search.focus();
      search.select();
    }
    walk(event);
  });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-palette]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openPalette();
  });

  // ---------- what was chosen in a list outlives its news ----------
  let kept = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target.id !== "claims-list") return;
    kept = [...event.target.querySelectorAll("input[name=id]:checked")].map((box) => box.value);
  });
  // At once, not when it has settled: news that follow on its heels, or a key, must find what was chosen.
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of kept) {
      const box = document.querySelector(`#claims-list input[name=id][value="${CSS.escape(id)}"]:enabled`);
      if (box) box.checked = true;
    }
    kept = [];
  });
})();
