"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const CLASSES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f63b8"];
  const MAX_HITS = 30, MAX_NEIGHBOURS = 60, MARGIN = 40, SIDE = 10000;
  const drawings = [];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  function element(tag, text, kind) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  }

  class Drawing {
    constructor(root, graph) {
      Object.assign(this, graph, { root, count: graph.names.length });
      const find = (what) => root.querySelector(what);
      this.canvas = find("canvas");
      this.pen = this.canvas.getContext("2d");
      this.tip = find(".tip"); this.hits = find(".hits"); this.found = find(".found");
      this.legend = find(".legend"); this.panel = find(".details"); this.input = find("input");
      this.near = Array.from({ length: this.count }, () => []);
      for (let e = 0; e < this.edges.length; e += 2) {
        this.near[this.edges[e]].push(this.edges[e + 1]);
        this.near[this.edges[e + 1]].push(this.edges[e]);
      }
      this.isMarked = new Set(this.marked);
      this.isDashed = new Set(this.dashed);
      this.priority = [...this.names.keys()].sort((a, b) =>
        this.isMarked.has(b) - this.isMarked.has(a) || this.rank(b) - this.rank(a) || a - b);
      this.words = this.names.map((name, n) => [name, ...(this.members[n] || [])].join("\n").toLowerCase());
      this.chosen = -1; this.matched = new Set(); this.shown = 0; this.pointers = new Map();
      this.largest = Math.max(...this.sizes, 0) || 1;
      this.gap = this.spacing();
      this.listen(find);
      this.theme();
      this.fit();
    }

    // Distance that all but the closest nodes keep from one another, in units of the drawing.
    spacing() {
      if (this.count < 2 || this.count > 1500) return SIDE;
      const nearest = [...this.names.keys()].map((n) => {
        let least = Infinity;
        for (let m = 0; m < this.count; m++) if (m !== n)
          least = Math.min(least, Math.hypot(this.positions[2 * n] - this.positions[2 * m], this.positions[2 * n + 1] - this.positions[2 * m + 1]));
        return least;
      });
      return nearest.sort((a, b) => a - b)[Math.floor(this.count / 10)];
    }

    rank(n) { return this.sizes.length ? this.sizes[n] : this.near[n].length; }
    x(n) { return this.positions[2 * n] * this.scale + this.left; }
    y(n) { return this.positions[2 * n + 1] * this.scale + this.top; }

    radius(n) {
      const room = Math.sqrt(this.width * this.height / Math.max(this.count, 1));
      const base = Math.max(1.6, Math.min(9, 0.13 * room, 0.3 * this.gap * this.whole)) * Math.min(Math.max((this.scale / this.whole) ** 0.5, 0.7), 5);
      const size = this.sizes.length ? 0.4 + 1.3 * this.sizes[n] / this.largest : 1;
      return Math.min(base * size, 26) * (this.isMarked.has(n) ? 1.15 : 1);
    }

    listen(find) {
      const canvas = this.canvas;
      new ResizeObserver(() => this.resize()).observe(canvas);
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
        this.moved = 0;
      });
      canvas.addEventListener("pointermove", (event) => this.drag(event));
      for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => {
        const was = this.pointers.delete(event.pointerId);
        if (kind === "pointerup" && was && this.moved < 5) this.choose(this.at(event.offsetX, event.offsetY));
      });
      canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
      canvas.addEventListener("wheel", (event) => {
        if (document.activeElement !== canvas && !event.ctrlKey) return;
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => {
        const step = 60;
        const keys = {
          ArrowLeft: () => this.move(step, 0), ArrowRight: () => this.move(-step, 0),
          ArrowUp: () => this.move(0, step), ArrowDown: () => this.move(0, -step),
          "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3),
          0: () => this.fit(), Escape: () => this.choose(-1),
        };
        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        keys[event.key]();
      });
      find("[data-do=in]").addEventListener("click", () => this.zoom(1.4));
      find("[data-do=out]").addEventListener("click", () => this.zoom(1 / 1.4));
      find("[data-do=all]").addEventListener("click", () => { this.choose(-1); this.fit(); });
      this.input.addEventListener("input", () => this.search(this.input.value));
      this.input.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && this.matched.size) this.goTo(this.best(this.input.value));
        if (event.key === "Escape") { this.input.value = ""; this.search(""); }
      });
      const select = find("select");
      if (select) select.addEventListener("change", () => { this.shown = select.selectedIndex; this.theme(); });
    }

    drag(event) {
      const before = this.pointers.get(event.pointerId), now = [event.offsetX, event.offsetY];
      if (!before) { this.point(event); return; }
      this.tip.hidden = true;
      this.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const gap = Math.hypot(before[0] - other[0], before[1] - other[1]) || 1;
        const after = Math.hypot(now[0] - other[0], now[1] - other[1]) || 1;
        this.zoom(after / gap, other[0], other[1]);
      } else this.move(now[0] - before[0], now[1] - before[1]);
      this.pointers.set(event.pointerId, now);
    }

    point(event) {
      const n = this.at(event.offsetX, event.offsetY);
      this.tip.hidden = n < 0;
      if (n < 0) return;
      this.tip.textContent = [this.names[n], ...(this.details[n] || []).slice(0, 4).map((line) => line[0])].join(" · ");
      const right = event.offsetX > this.width / 2;
      this.tip.style.left = right ? "auto" : `${event.offsetX + 14}px`;
      this.tip.style.right = right ? `${this.width - event.offsetX + 14}px` : "auto";
      this.tip.style.top = `${event.offsetY + 10}px`;
    }

    at(x, y) {
      let best = -1, least = Infinity;
      for (let n = 0; n < this.count; n++) {
        const away = Math.hypot(this.x(n) - x, this.y(n) - y) - this.radius(n);
        if (away < 5 && away < least) { best = n; least = away; }
      }
      return best;
    }

    search(text) {
      const wanted = text.trim().toLowerCase();
      this.matched = new Set();
      if (wanted) this.words.forEach((word, n) => { if (word.includes(wanted)) this.matched.add(n); });
      this.hits.replaceChildren();
      for (const n of [...this.matched].slice(0, MAX_HITS)) this.hits.append(this.button(n));
      const more = this.matched.size - MAX_HITS;
      if (more > 0) this.hits.append(element("span", `and ${more} more`));
      this.found.textContent = wanted ? `${this.matched.size} found` : "";
      this.draw();
    }

    best(text) {
      const wanted = text.trim().toLowerCase(), all = [...this.matched];
      return all.find((n) => this.names[n].toLowerCase() === wanted) ?? all[0];
    }

    button(n) {
      const node = element("button", this.names[n]);
      node.type = "button";
      node.addEventListener("click", () => this.goTo(n));
      return node;
    }

    goTo(n) {
      const near = [n, ...this.near[n]];
      const xs = near.map((m) => this.positions[2 * m]), ys = near.map((m) => this.positions[2 * m + 1]);
      const reach = Math.max(...xs.map((x) => Math.abs(x - xs[0])), ...ys.map((y) => Math.abs(y - ys[0])), 300);
      this.scale = Math.max(this.whole, Math.min(0.42 * Math.min(this.width, this.height) / reach, 12 * this.whole));
      this.left = this.width / 2 - xs[0] * this.scale;
      this.top = this.height / 2 - ys[0] * this.scale;
      this.choose(n);
    }

    choose(n) {
      this.chosen = n;
      this.panel.replaceChildren();
      if (n >= 0) {
        this.panel.append(element("h3", this.names[n]));
        for (const [text, share] of this.details[n] || []) {
          const line = element("p", share === null ? text : undefined);
          if (share !== null) {
            const bar = element("span", undefined, "bar"), filled = element("i");
            filled.style.width = `${100 * Math.min(share, 1)}%`;
            bar.append(filled);
            line.append(bar, element("span", text));
          }
          this.panel.append(line);
        }
        const line = element("p", `${this.near[n].length} neighbours `);
        for (const m of this.near[n].slice(0, MAX_NEIGHBOURS)) line.append(this.button(m), " ");
        const more = this.near[n].length - MAX_NEIGHBOURS;
        if (more > 0) line.append(`and ${more} more`);
        this.panel.append(line);
      }
      this.draw();
    }

    move(x, y) { this.left += x; this.top += y; this.draw(); }

    zoom(factor, x = this.width / 2, y = this.height / 2) {
      const scale = Math.min(Math.max(this.scale * factor, this.whole / 3), this.whole * 200);
      this.left = x - (x - this.left) * scale / this.scale;
      this.top = y - (y - this.top) * scale / this.scale;
      this.scale = scale;
      this.draw();
    }

    resize() {
      if (this.canvas.clientWidth === this.width && this.canvas.clientHeight === this.height) return;
      this.fit();
    }

    fit() {
      this.width = this.canvas.clientWidth || 800;
      this.height = this.canvas.clientHeight || 500;
      const [right, bottom] = this.extent.map((side) => Math.max(side, 1));
      this.whole = Math.min((this.width - 2 * MARGIN) / right, (this.height - 2 * MARGIN) / bottom, 180 / SIDE * 5);
      this.scale = this.whole;
      this.left = (this.width - right * this.scale) / 2;
      this.top = (this.height - bottom * this.scale) / 2;
      this.draw();
    }

    theme() {
      this.inks = {};
      for (const name of ["ink", "faint", "edge", "halo", "low", "high", "mark", "none", "accent"]) this.inks[name] = colour(`--${name}`);
      const low = channels(this.inks.low), high = channels(this.inks.high);
      this.ramp = (share) => `rgb(${low.map((from, k) => Math.round(from + (high[k] - from) * share)).join(",")})`;
      this.key();
      this.draw();
    }

    key() {
      this.legend.replaceChildren();
      const now = this.colourings[this.shown];
      if (!now) return;
      if (now.scale) {
        const line = element("span", `${now.name}: ${now.labels[0]}`);
        line.append(element("span", undefined, "ramp"), now.labels[1]);
        this.legend.append(line);
        return;
      }
      now.labels.forEach((label, k) => {
        const line = element("span"), dot = element("span", undefined, "swatch");
        dot.style.background = CLASSES[k] || this.inks.none;
        line.append(dot, label);
        this.legend.append(line);
      });
    }

    fill(n) {
      const now = this.colourings[this.shown];
      if (!now) return this.inks.accent;
      const value = now.values[n];
      if (value === null) return this.inks.none;
      return now.scale ? this.ramp(value) : CLASSES[value] || this.inks.none;
    }

    draw() {
      if (!this.waits) {
        this.waits = true;
        requestAnimationFrame(() => { this.waits = false; this.paint(); });
      }
    }

    paint() {
      const pen = this.pen, dots = window.devicePixelRatio || 1;
      const across = Math.round(this.width * dots), down = Math.round(this.height * dots);
      if (this.canvas.width !== across || this.canvas.height !== down) { this.canvas.width = across; this.canvas.height = down; }
      pen.setTransform(dots, 0, 0, dots, 0, 0);
      pen.clearRect(0, 0, this.width, this.height);
      const focus = this.chosen >= 0 ? new Set([this.chosen, ...this.near[this.chosen]]) : this.matched.size ? this.matched : null;
      this.paintEdges(pen, focus);
      for (const n of [...this.priority].reverse()) this.paintNode(pen, n, focus && !focus.has(n));
      this.paintNames(pen, focus);
    }

    paintEdges(pen, focus) {
      const many = this.edges.length / 2, dense = many > 3000 ? 0.35 : many > 600 ? 0.55 : 0.9;
      for (let e = 0; e < many; e++) {
        const a = this.edges[2 * e], b = this.edges[2 * e + 1];
        const here = [this.x(a), this.y(a)], there = [this.x(b), this.y(b)];
        const bends = this.bends[e] || [];
        if (!bends.length && (Math.max(here[0], there[0]) < 0 || Math.min(here[0], there[0]) > this.width ||
          Math.max(here[1], there[1]) < 0 || Math.min(here[1], there[1]) > this.height)) continue;
        const isNear = this.chosen >= 0 ? a === this.chosen || b === this.chosen : focus && focus.has(a) && focus.has(b);
        pen.globalAlpha = focus ? (isNear ? 1 : 0.12) : dense;
        pen.strokeStyle = pen.fillStyle = isNear ? this.inks.accent : this.inks.edge;
        pen.lineWidth = isNear ? 1.8 : 1;
        pen.setLineDash(this.isDashed.has(e) ? [2, 4] : []);
        const run = [here];
        for (let k = 0; k < bends.length; k += 2) run.push([bends[k] * this.scale + this.left, bends[k + 1] * this.scale + this.top]);
        run.push(there);
        pen.beginPath();
        pen.moveTo(...here);
        for (let k = 1; k < run.length - 1; k++) {
          const middle = [(run[k][0] + run[k + 1][0]) / 2, (run[k][1] + run[k + 1][1]) / 2];
          pen.quadraticCurveTo(...run[k], ...(k === run.length - 2 ? there : middle));
        }
        if (run.length === 2) pen.lineTo(...there);
        pen.stroke();
        if (this.directed) this.arrow(pen, run[run.length - 2], there, this.radius(b));
      }
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    }

    arrow(pen, from, to, gap) {
      const long = Math.hypot(to[0] - from[0], to[1] - from[1]);
      const head = Math.min(8, 2 + gap);
      if (long < gap + head) return;
      const u = [(to[0] - from[0]) / long, (to[1] - from[1]) / long];
      const tip = [to[0] - u[0] * gap, to[1] - u[1] * gap], foot = [tip[0] - u[0] * head, tip[1] - u[1] * head];
      pen.beginPath();
      pen.moveTo(...tip);
      pen.lineTo(foot[0] - u[1] * head * 0.45, foot[1] + u[0] * head * 0.45);
      pen.lineTo(foot[0] + u[1] * head * 0.45, foot[1] - u[0] * head * 0.45);
      pen.fill();
    }

    paintNode(pen, n, isFaint) {
      const x = this.x(n), y = this.y(n), r = this.radius(n);
      if (x < -r || y < -r || x > this.width + r || y > this.height + r) return;
      pen.globalAlpha = isFaint ? 0.18 : 1;
      pen.beginPath();
      if (this.isMarked.has(n)) pen.rect(x - r, y - r, 2 * r, 2 * r);
      else pen.arc(x, y, r, 0, 2 * Math.PI);
      pen.fillStyle = this.fill(n);
      pen.fill();
      const isChosen = n === this.chosen;
      pen.strokeStyle = this.isMarked.has(n) || isChosen ? this.inks.mark : this.inks.edge;
      pen.lineWidth = isChosen ? 3.5 : this.isMarked.has(n) ? 2 : r > 3 ? 1 : 0.5;
      pen.stroke();
      pen.globalAlpha = 1;
    }

    // Names of the most important nodes first; one that would cover another is left out until there is room.
    paintNames(pen, focus) {
      const side = 16, taken = new Set(), covered = new Set(), always = this.count <= 150 ? 150 : 12;
      const square = (x, y) => `${Math.floor(x / side)},${Math.floor(y / side)}`;
      if (!focus) for (let n = 0; n < this.count; n++) covered.add(square(this.x(n), this.y(n)));
      pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.lineJoin = "round";
      const first = focus ? [...focus].sort((a, b) => (b === this.chosen) - (a === this.chosen)) : [];
      let written = 0;
      for (const n of focus ? first.slice(0, 400) : this.priority) {
        const x = this.x(n), y = this.y(n);
        if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
        const name = this.names[n].length > 28 && n !== this.chosen ? `${this.names[n].slice(0, 27)}…` : this.names[n];
        const wide = pen.measureText(name).width + 6, at = y + this.radius(n) + 8;
        const middle = Math.max(Math.min(x, this.width - wide / 2), wide / 2);  // within the frame
        const cells = [];
        for (let i = Math.floor((middle - wide / 2) / side); i <= Math.floor((middle + wide / 2) / side); i++)
          for (let j = Math.floor((at - 7) / side); j <= Math.floor((at + 7) / side); j++) cells.push(`${i},${j}`);
        if (n !== this.chosen && cells.some((cell) => taken.has(cell))) continue;
        const centre = square(x, y);
        if (++written > always && cells.some((cell) => cell !== centre && covered.has(cell))) continue;
        cells.forEach((cell) => taken.add(cell));
        pen.strokeStyle = this.inks.halo;
        pen.lineWidth = 3;
        pen.strokeText(name, middle, at);
        pen.fillStyle = this.inks.ink;
        pen.fillText(name, middle, at);
      }
    }
  }

  for (const root of document.querySelectorAll(".drawing")) drawings.push(new Drawing(root, data[root.dataset.key]));
  const all = () => drawings.forEach((drawing) => drawing.theme());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  addEventListener("beforeprint", all);
  addEventListener("afterprint", all);
})();
