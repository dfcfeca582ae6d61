// The reader's choice of theme, applied before the first paint. Without a choice the system decides.
(() => {
  try {
    const chosen = localStorage.getItem("berth-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage may be forbidden; the system's theme is fine */ }
})();
