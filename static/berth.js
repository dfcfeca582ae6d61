// Theme switch, dialogs, copying, steppers, ages that grow, and the state of the event stream.
// Every page can be read, and every form sent, without it.
(() => {
  const root = document.documentElement;

  // ---------- theme ----------
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

  const switchTheme = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("berth-theme", root.dataset.theme); } catch { /* this page only */ }
  };

  // ---------- copy ----------
  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copy);
    const word = button.querySelector("[data-word]") ?? button;
    const before = word.textContent;
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      word.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      word.textContent = "Selected: press Ctrl C";
    }
    setTimeout(() => { word.textContent = before; }, 1800);
  };

  // ---------- tabs: one panel of several, all of them in the page ----------
  const pick = (tab) => {
    const list = tab.closest('[role="tablist"]');
    for (const other of list.querySelectorAll('[role="tab"]')) {
      const on = other === tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
    }
  };

  // ---------- steppers ----------
  const step = (button) => {
    const input = document.getElementById(button.getAttribute("aria-controls"));
    const before = input.value;
    if (Number(button.dataset.step) > 0) input.stepUp(); else input.stepDown();
    if (input.value !== before) input.dispatchEvent(new Event("change", { bubbles: true }));
  };

  document.addEventListener("click", (event) => {
    const act = event.target.closest(
      "[data-theme-switch], [data-opens], [data-closes], [data-copy], [data-step], [data-dismiss], [data-print], [role=tab], [aria-disabled=true]");
    if (!act) return;
    if (act.getAttribute("aria-disabled") === "true") { event.preventDefault(); return; }
    if ("themeSwitch" in act.dataset) switchTheme();
    if (act.dataset.opens) document.getElementById(act.dataset.opens).showModal();
    if ("closes" in act.dataset) act.closest("dialog").close();
    if ("dismiss" in act.dataset) act.closest(".toast").remove();
    if ("print" in act.dataset) print();
    if (act.dataset.copy) copy(act);
    if (act.dataset.step) step(act);
    if (act.matches("[role=tab]")) pick(act);
  });

  document.addEventListener("keydown", (event) => {
    const tab = event.target.closest?.("[role=tab]");
    if (!tab) return;
    const tabs = [...tab.closest("[role=tablist]").querySelectorAll("[role=tab]")];
    const forward = getComputedStyle(tab).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const move = { [forward]: 1, ArrowLeft: -1, ArrowRight: -1 }[event.key];
    const at = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1
      : move ? (tabs.indexOf(tab) + move + tabs.length) % tabs.length : -1;
    if (at < 0) return;
    event.preventDefault();
    tabs[at].focus();
    pick(tabs[at]);
  });

  // ---------- ages grow, so that a page left open does not claim to be fresh ----------
  const STEPS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const parts = (seconds) => {
    const [size, unit] = STEPS.find(([size]) => seconds >= size) ?? STEPS.at(-1);
    return [Math.max(0, Math.floor(seconds / size)).toLocaleString("en"), unit];
  };
  const short = (seconds) => parts(seconds).join(" ");
  // The server's clock counts, not the reader's.
  const ahead = Date.now() - Date.parse(root.dataset.now || new Date().toISOString());
  const ageOf = (stamp) => Math.max(0, (Date.now() - ahead - Date.parse(stamp.dateTime)) / 1000);
  const grow = () => {
    for (const stamp of document.querySelectorAll("time.age")) {
      const { window: fresh, before, after } = stamp.dataset;
      const seconds = ageOf(stamp);
      const text = [before, short(seconds), after].filter(Boolean).join(" ");
      if (stamp.textContent !== text) stamp.textContent = text;
      if (!stamp.classList.contains("age-lost")) stamp.classList.toggle("age-old", seconds > Number(fresh));
    }
    // How long something has lasted: the unit stays in its lighter tone.
    for (const stamp of document.querySelectorAll("time.grows")) {
      const [number, unit] = parts(ageOf(stamp));
      const now = `${number}\u00a0`;
      if (stamp.firstChild.data !== now) stamp.firstChild.data = now;
      if (stamp.lastChild.textContent !== unit) stamp.lastChild.textContent = unit;
    }
  };
  setInterval(grow, 1000);

  // ---------- the event stream: says when it is cut, fetches anew when it is back ----------
  const notice = document.getElementById("stream-cut");
  let cutAt = 0;
  const say = () => {
    if (!notice || !cutAt) return;
    notice.querySelector("[data-word]").textContent = short((Date.now() - cutAt) / 1000);
  };
  const cut = () => {
    cutAt ||= Date.now();
    // A page that is being left cuts its stream too, and a stream is renewed every ten minutes: a
    // moment without one is nobody's business.
    setTimeout(() => { if (cutAt && notice) notice.hidden = false; say(); }, 6000);
  };
  // At the first opening too: what changed since the page was made was heard by nobody. A page that
  // comes back soon hears what it missed instead ("resumed"), and fetches no more than that.
  const fresh = () => {
    for (const part of document.querySelectorAll("[data-live]")) htmx.trigger(part, "berth:again");
  };
  const heard = new WeakSet();
  const open = ({ detail: { source } }) => {
    cutAt = 0;
    if (notice) notice.hidden = true;
    if (!heard.has(source)) source.addEventListener("ready", fresh);
    heard.add(source);
  };
  document.addEventListener("htmx:sseError", cut);
  document.addEventListener("htmx:sseOpen", open);
  addEventListener("offline", cut);
  setInterval(say, 1000);

  // ---------- what is drawn anew leaves the keyboard where it was ----------
  const sign = (one) => one.id || [one.tagName, one.getAttribute("href"), one.name, one.dataset.opens,
    one.dataset.step, one.getAttribute("aria-controls"), one.getAttribute("aria-label")].join(" ");
  const alike = (place, tag, signed) =>
    [...place.querySelectorAll(tag)].filter((one) => sign(one) === signed);
  let kept = null;
  const keep = ({ type, detail: { target } }) => {
    const at = document.activeElement;
    if (type === "htmx:beforeSwap") kept = null;
    if (at === document.body || target === at || !target?.contains(at)) return;
    const signed = sign(at);
    const nth = alike(target, at.tagName, signed).indexOf(at);
    kept = { place: target.id, tag: at.tagName, signed, nth };
  };
  const back = () => {
    if (!kept || document.activeElement !== document.body) return;
    const place = document.getElementById(kept.place) ?? document.body;
    alike(place, kept.tag, kept.signed)[kept.nth]?.focus({ preventScroll: true });
    kept = null;
  };
  for (const name of ["htmx:beforeSwap", "htmx:oobBeforeSwap"]) document.addEventListener(name, keep);
  for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap"]) document.addEventListener(name, back);

  // ---------- notices: good news leave by themselves, all others stay until they are dismissed ----------
  const LEAVES_AFTER = 8000;
  const see = (toast) => setTimeout(function leave() {
    if (toast.matches(":hover, :focus-within")) setTimeout(leave, 2000); else toast.remove();
  }, LEAVES_AFTER);
  for (const toast of document.querySelectorAll("#notices > .toast.st-ok")) see(toast);

  // An invitation's secret stands behind the #, which browsers send to nobody.
  const secret = document.querySelector("[data-from-hash]");
  if (secret && location.hash.length > 1) {
    document.getElementById(secret.dataset.fromHash).value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
    secret.submit();
  }

  // A part that was fetched in vain stays as it is and says so by its age; nothing is blanked.
  for (const dialog of document.querySelectorAll("dialog[data-open-at-load]")) dialog.showModal();
})();
