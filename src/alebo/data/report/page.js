"use strict";
let R = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const phone = () => window.innerWidth < 760;
const make = (tag, text, cls) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (cls) e.className = cls; return e; };
const show = v => typeof v === "number" ? (Number.isInteger(v) ? String(v) : String(+v.toPrecision(6))) : v === null || v === undefined ? "" : String(v);

// -- theme ------------------------------------------------------------------------------------------------------------
const dark = matchMedia("(prefers-color-scheme: dark)");
let wanted = new URLSearchParams(location.search).get("theme");
const themed = () => wanted || (dark.matches ? "dark" : "light");
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function layoutOf(f) {
  const layout = JSON.parse(JSON.stringify(f.layout)), ink = css("--soft"), grid = css("--grid");
  layout.font = Object.assign({}, layout.font, {color: ink});
  for (const key of Object.keys(layout)) if (/^[xy]axis/.test(key)) { layout[key].gridcolor = grid; layout[key].linecolor = grid; }
  (layout.updatemenus || []).forEach(m => { m.bgcolor = "#dfe5ec"; m.bordercolor = css("--line"); m.font = {color: "#2a3340", size: 12}; });
  layout.modebar = {orientation: "v", bgcolor: "rgba(0,0,0,0)", color: ink, activecolor: css("--blue")};
  layout.hoverlabel = {bgcolor: css("--card"), bordercolor: css("--line"), font: {color: css("--ink")}, namelength: -1};
  layout.uirevision = "kept";
  layout.autosize = true;
  if (phone()) { layout.margin = Object.assign({}, layout.margin, {l: 44, r: 10}); layout.font.size = 11; }
  else layout.margin = Object.assign({}, layout.margin, {r: 44});
  return layout;
}
function applyTheme() {
  document.documentElement.dataset.theme = themed();
  R.figures.forEach(draw);
}
$("theme").addEventListener("click", () => { wanted = themed() === "dark" ? "light" : "dark"; applyTheme(); });
dark.addEventListener("change", applyTheme);

// -- figures ----------------------------------------------------------------------------------------------------------
function draw(f) {
  const config = {responsive: true, displaylogo: false, displayModeBar: phone() ? false : "hover", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"], toImageButtonOptions: {filename: f.id, scale: 2}};
  const layout = layoutOf(f);
  if (layout.height) { $("fig-" + f.id).style.height = layout.height + "px"; delete layout.height; }
  Plotly.react("fig-" + f.id, f.data, layout, config);
}
function place() {
  const box = $("figures"), there = new Set(R.figures.map(f => "box-" + f.id));
  for (const old of [...box.children]) if (!there.has(old.id)) { Plotly.purge(old.querySelector(".fig")); old.remove(); }
  R.figures.forEach((f, i) => {
    let s = $("box-" + f.id);
    if (!s) {
      s = make("section", undefined, f.kind); s.id = "box-" + f.id;
      s.append(make("h2"), make("div", undefined, "frame"), make("p", undefined, "soft"));
      const d = make("div", undefined, "fig"); d.id = "fig-" + f.id; s.children[1].append(d);
    }
    s.children[0].textContent = f.title; s.children[0].dir = "auto"; s.children[0].hidden = !f.title;
    s.children[1].firstChild.setAttribute("role", "img"); s.children[1].firstChild.setAttribute("aria-label", f.title || f.id);
    s.children[2].textContent = f.caption; s.children[2].hidden = !f.caption;
    if (box.children[i] !== s) box.insertBefore(s, box.children[i] || null);
  });
}

// -- parameters of one trial -------------------------------------------------------------------------------------------
let values = null, chosen = null;
function unpack() {
  const p = R.parameters; values = null;
  if (p.packed) { const raw = atob(p.packed), bytes = new Uint8Array(raw.length); for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i); values = bytes; }
}
function stored(k) { const v = values[3 * k] | values[3 * k + 1] << 8 | values[3 * k + 2] << 16; return v === 16777215 ? null : v; }
function cell(i, j) {
  const h = R.parameters.heads[j]; if ("fixed" in h) return h.fixed;
  let v = values ? stored(i * R.parameters.heads.length + j) : R.parameters.rows[i][j];
  if (v === null) return null;
  if (h.choices) return h.choices[v];
  if (!values) return v;
  const u = v / 16777214;
  if (h.log) v = h.low * Math.pow(h.high / h.low, u); else v = h.low + u * (h.high - h.low);
  if (h.whole) return Math.round(v);
  return h.log ? +v.toPrecision(7) : +v.toFixed(Math.max(0, Math.min(100, 7 - Math.floor(Math.log10(h.high - h.low)))));
}
function point(number) { const i = R.parameters.numbers.indexOf(number); return i < 0 ? null : R.parameters.heads.map((h, j) => cell(i, j)); }
function parameters() {
  const heads = R.parameters.heads, at = point(chosen), box = $("parameters-box");
  box.hidden = at === null; if (at === null) return;
  const q = $("find-parameter").value.trim().toLowerCase(), shares = heads.some(h => "share" in h);
  const best = R.chosen === chosen && R.front === null;
  $("parameters-title").textContent = best ? "The best parameters" : `Parameters of trial ${chosen}`;
  const order = heads.map((h, j) => j).sort((a, b) => (heads[b].share || 0) - (heads[a].share || 0)).filter(j => heads[j].name.toLowerCase().includes(q));
  const table = $("parameters"); table.textContent = "";
  const head = make("tr"); [["parameter", ""], ["value", "r"], ["in its range", ""], ["low", "r"], ["high", "r"], ...(shares ? [["importance", "r"], ["", ""]] : [])].forEach(([t, c]) => head.append(make("th", t, c)));
  const body = make("tbody");
  for (const j of order) {
    const h = heads[j], v = at[j], tr = make("tr"), name = make("td"); name.append(make("bdi", h.name)); tr.append(name);
    const val = make("td", undefined, typeof v === "number" ? "r" : ""); val.append(make("bdi", show(v))); tr.append(val);
    const range = make("td");
    if ("low" in h && typeof v === "number") {
      const f = h.log ? Math.log : x => x, t = Math.max(0, Math.min(1, (f(v) - f(h.low)) / (f(h.high) - f(h.low) || 1)));
      const bar = make("span", undefined, "bar"), mark = make("i"); mark.style.left = `calc(${(100 * t).toFixed(1)}% - 2px)`; bar.append(mark); range.append(bar);
    }
    tr.append(range, make("td", show(h.low), "r"), make("td", show(h.high), "r"));
    if (shares) tr.append(make("td", "share" in h ? (100 * h.share).toFixed(1) + " %" : "", "r"), make("td", h.certain ? "certain" : "", "soft"));
    body.append(tr);
  }
  const top = make("thead"); top.append(head); table.append(top, body);
  $("parameters-found").textContent = (q ? `${order.length} of ${heads.length}` : `${heads.length} parameters${shares ? ", the most important first" : ""}`) + (values ? "; values to a ten-millionth of their range" : "");
  document.querySelectorAll("tr[data-trial]").forEach(tr => tr.classList.toggle("on", +tr.dataset.trial === chosen));
}
function choose(number, jump) { chosen = number; if ($("trial").value !== String(number)) $("trial").value = String(number); parameters(); if (jump && !$("parameters-box").hidden) $("parameters-box").scrollIntoView({block: "nearest"}); }
function trialList() {
  const list = $("trial"), numbers = R.parameters.numbers; list.textContent = "";
  const words = n => n === R.chosen && R.front === null ? `${n} (best)` : (R.front || []).includes(n) ? `${n} (front)` : String(n);
  const first = [...(R.front || (R.chosen === null ? [] : [R.chosen]))].filter(n => numbers.includes(n));
  [...first, ...numbers.filter(n => !first.includes(n))].forEach(n => { const o = make("option", words(n)); o.value = n; list.append(o); });
}

// -- all trials --------------------------------------------------------------------------------------------------------
let by = [0, 1], rowsShown = 200;
function trialRows() {
  const q = $("find-trial").value.trim().toLowerCase(), [column, way] = by;
  const rows = R.trials.rows.filter(r => !q || r.some(v => show(v).toLowerCase().includes(q)));
  const rank = v => v === null || v === undefined || v === "" ? null : v;
  return rows.map((r, i) => [r, i]).sort((a, b) => {
    const x = rank(a[0][column]), y = rank(b[0][column]);
    if (x === null || y === null) return x === y ? a[1] - b[1] : x === null ? 1 : -1;
    return way * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))) || a[1] - b[1];
  }).map(p => p[0]);
}
function trials() {
  const table = $("trials"), rows = trialRows(), heads = R.trials.heads, some = rows.slice(0, rowsShown);
  $("trials-box").hidden = !R.trials.rows.length;
  const numeric = heads.map((h, j) => R.trials.rows.some(r => typeof r[j] === "number"));
  table.textContent = "";
  const head = make("tr");
  heads.forEach((h, j) => { const th = make("th", undefined, numeric[j] ? "r" : ""), b = make("button", h); b.type = "button"; b.title = h; b.dir = "auto"; b.addEventListener("click", () => { by = [j, by[0] === j ? -by[1] : 1]; trials(); }); if (by[0] === j) th.setAttribute("aria-sort", by[1] > 0 ? "ascending" : "descending"); th.append(b); head.append(th); });
  const body = make("tbody");
  for (const r of some) {
    const tr = make("tr"); tr.dataset.trial = r[0]; tr.tabIndex = 0; if (r[0] === chosen) tr.className = "on";
    r.forEach((v, j) => { const td = make("td", undefined, (numeric[j] ? "r" : "text") + (j === 1 ? " state-" + v : "")); td.append(make("bdi", show(v))); tr.append(td); });
    body.append(tr);
  }
  const top = make("thead"); top.append(head); table.append(top, body);
  if (rows.length > some.length) { const tr = make("tr"), td = make("td"), b = make("button", `show ${rows.length - some.length} more`); td.colSpan = heads.length; b.type = "button"; b.addEventListener("click", e => { e.stopPropagation(); rowsShown = rows.length; trials(); }); td.append(b); tr.append(td); body.append(tr); }
  $("trials-found").textContent = `${rows.length === R.trials.rows.length ? rows.length : rows.length + " of " + R.trials.rows.length} trials; choose one to see its parameters`;
}
document.addEventListener("click", e => { const tr = e.target.closest("tr[data-trial]"); if (tr) choose(+tr.dataset.trial, true); });
document.addEventListener("keydown", e => { const tr = e.target.closest && e.target.closest("tr[data-trial]"); if (tr && e.key === "Enter") choose(+tr.dataset.trial, true); });

// -- CSV: a text that a spreadsheet would take for a formula gets an apostrophe ----------------------------------------------
const csvCell = v => { let t = v === null || v === undefined ? "" : String(v); if (typeof v !== "number" && /^[=+\-@\t\r]/.test(t)) t = "'" + t; return /[",\n\r]/.test(t) ? `"${t.replace(/"/g, '""')}"` : t; };
const csv = rows => rows.map(r => r.map(csvCell).join(",")).join("\r\n") + "\r\n";
function save(name, rows) { const a = make("a"); a.href = URL.createObjectURL(new Blob(["\ufeff" + csv(rows)], {type: "text/csv;charset=utf-8"})); a.download = name; a.click(); setTimeout(() => URL.revokeObjectURL(a.href), 1000); }
function allRows() {
  const [from, to] = R.trials.parameters, heads = R.trials.heads, names = R.parameters.heads.map(h => h.name);
  const other = heads.filter((h, j) => j < from || j >= to);
  return [[...other, ...names], ...R.trials.rows.map(r => [...r.filter((v, j) => j < from || j >= to), ...(point(r[0]) || names.map(() => ""))])];
}
$("save-point").addEventListener("click", () => { const at = point(chosen); save(`trial-${chosen}.csv`, [["parameter", "value"], ...R.parameters.heads.map((h, j) => [h.name, at[j]])]); });
$("save-trials").addEventListener("click", () => save("trials.csv", allRows()));
$("find-parameter").addEventListener("input", parameters);
$("find-trial").addEventListener("input", trials);
$("trial").addEventListener("change", () => choose(+$("trial").value));

// -- everything, once and again --------------------------------------------------------------------------------------------
function all() {
  ["front", "numbers"].forEach(n => { $(n + "-box").hidden = !$("block-" + n).textContent.trim(); });
  place(); document.documentElement.dataset.theme = themed(); R.figures.forEach(draw);
  unpack(); trialList();
  const keep = chosen !== null && R.parameters.numbers.includes(chosen) && chosen !== before;
  choose(keep ? chosen : R.chosen === null ? (R.parameters.numbers.length ? R.parameters.numbers[R.parameters.numbers.length - 1] : null) : R.chosen);
  before = R.chosen; trials();
}
let before = null;
all();
document.body.dataset.ready = "yes";
let narrow = phone();
addEventListener("resize", () => { if (narrow !== phone()) { narrow = phone(); R.figures.forEach(draw); } });

// -- live --------------------------------------------------------------------------------------------------------------
if (R.live) {
  let version = R.live.version; const word = $("live"); word.hidden = false; word.textContent = "live";
  const look = async () => {
    try {
      const answer = await fetch(`data?since=${version}`, {cache: "no-store"});
      if (!answer.ok) throw new Error(String(answer.status));
      word.className = ""; word.textContent = "live";
      if (answer.status === 200) {
        const fresh = await answer.json(); version = fresh.version; R = fresh.data;
        for (const [name, html] of Object.entries(fresh.blocks)) { const b = $("block-" + name); if (b.dataset.html !== html) { b.innerHTML = html; b.dataset.html = html; } }
        all(); document.body.dataset.version = version;
      }
    } catch (e) { word.className = "lost"; word.textContent = "stopped"; }
    setTimeout(look, 1000 * R_every);
  };
  const R_every = R.live.every; setTimeout(look, 1000 * R_every);
}
