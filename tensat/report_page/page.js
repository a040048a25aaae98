"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const by = (id) => document.getElementById(id);

function make(tag, attributes = {}, text = null, parent = null) {
  const svg = ["svg", "g", "rect", "text", "path", "circle", "line", "polyline"].includes(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function time(seconds) {
  if (seconds === 0) return "–";
  if (seconds >= 1) return seconds.toPrecision(3) + " s";
  if (seconds >= 1e-4) return (seconds * 1e3).toPrecision(3) + " ms";
  return (seconds * 1e6).toPrecision(3) + " µs";
}

function cut(text, letters) {
  return text.length > letters ? "…" + text.slice(text.length - letters + 1) : text;
}

// Nodes are [operator, name, shape, attributes, constants, seconds, state].
const views = {};
const other = { before: "after", after: "before" };
let mode = data.before.nodes.length > 60 ? "folded" : "whole";
let chosen = null;

class View {
  constructor(side) {
    this.side = side;
    this.svg = by(side);
    this.nodes = data[side].nodes;
    this.changes = data[side].changes;
    this.camera = { x: 0, y: 0, scale: 1 };
    this.listen();
    this.draw();
  }

  draw() {
    const { size, boxes, lines } = data[this.side].picture[mode];
    this.size = size;
    this.home = new Map();
    this.boxes = [];
    this.svg.replaceChildren();
    this.world = make("g", {}, null, this.svg);
    const paths = lines.map((line) => path(line.slice(2)));
    make("path", { class: "line", d: paths.join("") }, null, this.world);
    boxes.forEach((box, index) => this.box(box, index));
    this.place = boxes;
  }

  box([x, y, width, height, ...members], index) {
    const fold = members.length > 1;
    const [operator, name, , , , seconds, state] = this.nodes[members[0]];
    const input = operator === "Input";
    const kind = `box ${fold ? "k fold" : state}${input ? " input" : ""}`;
    const g = make("g", { class: kind, transform: `translate(${x},${y})` }, null, this.world);
    make("rect", { width, height }, null, g);
    if (fold) {
      make("text", { class: "middle small", x: width / 2, y: 15 }, `${members.length} kept nodes`, g);
    } else if (input) {
      make("text", { class: "op", x: 6, y: 15 }, cut(name, Math.floor(width / 7.2)), g);
    } else {
      make("text", { class: "op", x: 6, y: 14 }, cut(operator, 22), g);
      if (seconds > 0) make("text", { class: "cost", x: width - 5, y: 14 }, time(seconds), g);
      make("text", { class: "small", x: 6, y: 29 }, cut(name, Math.floor(width / 6.9)), g);
    }
    g.addEventListener("click", () => this.moved || choose(this.side, members));
    members.forEach((node) => this.home.set(node, index));
    this.boxes.push(g);
  }

  apply() {
    const { x, y, scale } = this.camera;
    this.world.setAttribute("transform", `translate(${x},${y}) scale(${scale})`);
    this.svg.classList.toggle("far", scale < 0.55);
    this.svg.classList.toggle("farther", scale < 0.28);
  }

  zoom(factor, x, y) {
    const scale = Math.min(4, Math.max(0.004, this.camera.scale * factor));
    const real = scale / this.camera.scale;
    this.camera = { x: x - (x - this.camera.x) * real, y: y - (y - this.camera.y) * real, scale };
    this.apply();
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    const scale = Math.min(1.2, (width - 24) / (this.size[0] || 1), (height - 24) / (this.size[1] || 1));
    this.camera = { x: (width - this.size[0] * scale) / 2, y: 12, scale };
    this.apply();
  }

  top() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    const whole = Math.min((width - 24) / (this.size[0] || 1), (height - 24) / (this.size[1] || 1));
    const scale = Math.min(1, Math.max(whole, 0.6));
    const first = this.place.reduce((a, b) => (b[1] < a[1] ? b : a), this.place[0] || [0, 0, 0]);
    this.camera = { x: width / 2 - (first[0] + first[2] / 2) * scale, y: 12, scale };
    this.apply();
  }

  show(node) {
    const [x, y, width, height] = this.place[this.home.get(node)];
    const scale = Math.max(0.75, this.camera.scale);
    this.camera = {
      x: this.svg.clientWidth / 2 - (x + width / 2) * scale,
      y: this.svg.clientHeight * 0.45 - (y + height / 2) * scale, scale,
    };
    this.apply();
  }

  mark(nodes, name) {
    this.boxes.forEach((g) => g.classList.remove("chosen", "partner"));
    nodes.forEach((node) => this.boxes[this.home.get(node)].classList.add(name));
  }

  listen() {
    let from = null;
    this.svg.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY, camera: { ...this.camera } };
      this.moved = false;
    });
    window.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (Math.abs(dx) + Math.abs(dy) > 4) this.moved = true;
      Object.assign(this.camera, { x: from.camera.x + dx, y: from.camera.y + dy });
      this.apply();
    });
    window.addEventListener("pointerup", () => { from = null; });
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const frame = this.svg.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY * 0.0015);
      this.zoom(factor, event.clientX - frame.left, event.clientY - frame.top);
    }, { passive: false });
  }
}

function path(points) {
  let text = `M${points[0]} ${points[1]}`;
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x, y] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
    const middle = (y0 + y) / 2;
    text += x === x0 ? `L${x} ${y}` : `C${x0} ${middle} ${x} ${middle} ${x} ${y}`;
  }
  return text;
}

function choose(side, members) {
  chosen = { side, node: members[0] };
  const partners = [...new Set(members.flatMap((node) => (views[side].changes[node] || [[]])[0]))];
  views[side].mark(members, "chosen");
  views[other[side]].mark(partners, "partner");
  if (partners.length) views[other[side]].show(partners[0]);
  describe(side, members, partners);
}

function describe(side, members, partners) {
  const panel = by("details");
  panel.replaceChildren();
  if (members.length > 1) return describeFold(panel, side, members);
  const [operator, name, shape, attributes, constants, seconds, state] = views[side].nodes[members[0]];
  make("h3", {}, operator, panel);
  const list = make("dl", {}, null, panel);
  const rows = {
    name, result: shape, attributes, cost: operator === "Input" ? "" : time(seconds),
    constants: constants || "", state: { k: "kept", g: "gone", n: "new" }[state],
  };
  for (const [key, value] of Object.entries(rows)) {
    if (value !== "") { make("dt", {}, key, list); make("dd", {}, value, list); }
  }
  const [, chain, why] = views[side].changes[members[0]] || [[], [], ""];
  if (why) make("p", {}, why[0].toUpperCase() + why.slice(1) + ".", panel);
  if (partners.length) {
    const line = make("p", {}, side === "after" ? "In place of " : "See ", panel);
    partners.slice(0, 12).forEach((node, index) => {
      if (index) line.append(", ");
      reference(line, other[side], node);
    });
    if (partners.length > 12) line.append(` and ${partners.length - 12} others`);
  }
  if (chain.length) describeChain(panel, chain);
}

function describeFold(panel, side, members) {
  make("h3", {}, `${members.length} kept nodes`, panel);
  const counts = new Map();
  for (const node of members) {
    const operator = views[side].nodes[node][0];
    counts.set(operator, (counts.get(operator) || 0) + 1);
  }
  const list = make("dl", {}, null, panel);
  for (const [operator, count] of [...counts].sort((a, b) => b[1] - a[1])) {
    make("dt", {}, operator, list);
    make("dd", {}, count, list);
  }
}

function describeChain(panel, chain) {
  make("p", {}, `Because of ${chain.length} application${chain.length > 1 ? "s" : ""} of rules, in this order:`, panel);
  const steps = make("ol", {}, null, panel);
  chain.slice(0, 60).forEach((index) => {
    const [rule, from, to] = data.links[index];
    const item = make("li", {}, null, steps);
    make("code", {}, data.names[rule], item);
    make("small", {}, data.proofs[rule], item);
    make("small", {}, `${from.join(" · ")} → ${to.join(" · ")}`, item);
  });
  if (chain.length > 60) make("p", {}, `… and ${chain.length - 60} more`, panel);
}

function reference(parent, side, node) {
  const [operator, name] = views[side].nodes[node];
  const link = make("a", {}, `${operator} ${name}`.trim(), parent);
  link.addEventListener("click", () => { choose(side, [node]); views[side].show(node); });
}

function step(direction) {
  const side = data.after.nodes.some((node) => node[6] === "n") ? "after" : "before";
  const nodes = Object.keys(views[side].changes).map(Number);
  if (!nodes.length) return;
  const at = chosen && chosen.side === side ? nodes.indexOf(chosen.node) : direction > 0 ? -1 : 0;
  const node = nodes[(at + direction + nodes.length) % nodes.length];
  choose(side, [node]);
  views[side].show(node);
}

function find(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return;
  for (const side of ["after", "before"]) {
    const hit = (node) => `${node[0]} ${node[1]}`.toLowerCase().includes(wanted);
    const start = chosen && chosen.side === side ? chosen.node + 1 : 0;
    const order = views[side].nodes.map((_, i) => (i + start) % views[side].nodes.length);
    const node = order.find((i) => hit(views[side].nodes[i]));
    if (node !== undefined) {
      choose(side, [node]);
      views[side].show(node);
      return;
    }
  }
}

function setMode(name) {
  mode = name;
  by("mode").textContent = mode === "folded" ? "show all nodes" : "fold what is kept";
  for (const view of Object.values(views)) { view.draw(); view.top(); }
}

function table(id, head, rows) {
  const element = by(id);
  const line = make("tr", {}, null, element);
  const words = rows.length ? rows[0].words : undefined;
  head.forEach((text, index) => make("th", index === words ? { class: "words" } : {}, text, line));
  rows.forEach(({ cells, kind, meters, words }) => {
    const row = make("tr", kind ? { class: kind } : {}, null, element);
    cells.forEach((text, index) => make("td", index === words ? { class: "words" } : {}, text, row));
    if (meters) {
      const cell = make("td", { class: "meter" }, null, row);
      meters.forEach(([name, share]) => make("div", { class: name, style: `width:${100 * share}%` }, null, cell));
    }
  });
}

function tables() {
  const most = Math.max(...data.operators.map((row) => Math.max(row[3], row[4])), 1e-12);
  table("operators", ["operator", "nodes", "before", "after", ""], data.operators.map(([op, n, m, was, is]) => ({
    cells: [op, n === m ? n : `${n} → ${m}`, time(was), time(is)],
    meters: [["was", was / most], ["is", is / most]],
  })));
  const longest = Math.max(...data.stages.map((row) => row[1]), 1e-12);
  table("stages", ["stage", "time", ""], data.stages.map(([name, seconds]) => ({
    cells: [name, seconds < 5e-5 ? "–" : time(seconds)], meters: [["took", seconds / longest]],
  })));
  const rules = [...data.rules].sort((a, b) => b[2] - a[2] || b[1] - a[1]);
  table("rules", ["rule", "fired", "used", "proof"], rules.map(([name, fired, used, proof]) => ({
    cells: [name, fired, used || "–", proof], kind: used ? "" : "unused", words: 3,
  })));
}

function growth() {
  const steps = data.growth;
  if (steps.length < 2) { make("p", { class: "hint" }, "nothing grew", by("growth")); return; }
  const [width, height, left, bottom] = [420, 190, 52, 24];
  const most = Math.max(...steps.map((step) => step[0]));
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}` }, null, by("growth"));
  const x = (i) => left + (i / (steps.length - 1)) * (width - left - 80);
  const y = (n) => height - bottom - (n / most) * (height - bottom - 12);
  [0, 0.5, 1].forEach((share) => {
    make("line", { x1: left, x2: width - 76, y1: y(most * share), y2: y(most * share), stroke: "#e4e8ef" }, null, svg);
    make("text", { x: left - 6, y: y(most * share) + 4, "text-anchor": "end" }, Math.round(most * share).toLocaleString("en"), svg);
  });
  [["e-nodes", 0, "#5b7fb9"], ["e-classes", 1, "#b98a3c"]].forEach(([name, index, colour]) => {
    const points = steps.map((step, i) => `${x(i)},${y(step[index])}`).join(" ");
    make("polyline", { points, fill: "none", stroke: colour, "stroke-width": 2 }, null, svg);
    steps.forEach((step, i) => make("circle", { cx: x(i), cy: y(step[index]), r: 2.5, fill: colour }, null, svg));
    const last = steps[steps.length - 1][index];
    const label = make("text", { x: width - 70, y: y(last) + 4 }, name, svg);
    label.style.fill = colour;
  });
  make("text", { x: left, y: height - 6 }, "start", svg);
  make("text", { x: width - 80, y: height - 6, "text-anchor": "end" }, `${steps.length - 1} steps`, svg);
}

function start() {
  by("title").textContent = data.title;
  document.title = `${data.title} – tensat report`;
  by("reason").textContent = data.reason;
  by("reason").className = data.improved ? "good" : "";
  for (const [title, value, remark] of data.facts) {
    const fact = make("div", {}, null, by("facts"));
    make("span", {}, title, fact);
    make("b", {}, value, fact);
    make("span", {}, remark, fact);
  }
  by("label-before").textContent = `before: ${data.before.nodes.length} nodes`;
  by("label-after").textContent = `after: ${data.after.nodes.length} nodes${data.improved ? "" : " (found, not used)"}`;
  by("versions").textContent = Object.entries(data.versions).map(([name, text]) => `${name} ${text}`).join(" · ");
  tables();
  growth();
  for (const side of ["before", "after"]) views[side] = new View(side);
  setMode(mode);
  by("mode").addEventListener("click", () => setMode(mode === "folded" ? "whole" : "folded"));
  by("fit").addEventListener("click", () => Object.values(views).forEach((view) => view.fit()));
  by("next").addEventListener("click", () => step(1));
  by("previous").addEventListener("click", () => step(-1));
  by("find").addEventListener("change", (event) => find(event.target.value));
  if (location.hash === "#first") step(1);
  else make("p", { class: "hint" }, "Click a node, or “change ▶”, to see which rules made it.", by("details"));
  document.body.dataset.ready = Math.round(performance.now());
}

start();
