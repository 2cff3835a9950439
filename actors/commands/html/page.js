"use strict";
/* Shows a question with its transcripts, and filters the list. Whatever a run holds is put in by
   textContent alone. Without this script the page still has all but the transcripts. */
(() => {
  const byId = (id) => document.getElementById(id);
  const reader = byId("reader");
  const rows = [...document.querySelectorAll("tr[data-pool]")];
  const kept = new Map();
  let here = -1;
  let wanted = -1;
  let asked = 0;

  const unpack = async (id) => {
    if (kept.has(id)) return kept.get(id);
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser is too old to unpack the transcripts");
    }
    const bytes = Uint8Array.from(atob(byId(id).textContent), (one) => one.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const value = JSON.parse(await new Response(plain).text());
    if (id !== "data-index" && kept.size > 40) kept.clear();
    kept.set(id, value);
    return value;
  };

  const make = (name, look, text) => {
    const made = document.createElement(name);
    if (look) made.className = look;
    if (text !== undefined && text !== null) made.textContent = text;
    return made;
  };

  const OUTCOMES = { right: "r", wrong: "w" };

  const outcome = (name) => {
    const mark = make("i", OUTCOMES[name] || "x");
    mark.append(make("span", "", name));
    return mark;
  };

  /* -- one question ---------------------------------------------------------------- */

  const question = (one) => {
    const letters = "ABCDEFGHIJ";
    const parts = [make("p", "meta", [one.task, one.video, one.pool].filter(Boolean).join(" · "))];
    if (!one.known) parts.push(make("p", "nothing", "The text of this question is not at hand."));
    parts.push(make("p", "asked", one.text));
    const options = make("ul", "options");
    one.options.forEach((text, place) => {
      options.append(make("li", letters[place] === one.gold ? "gold" : "", letters[place] + ". " + text));
    });
    parts.push(options);
    return parts;
  };

  const step = (lines, number, held) => {
    const [tool, ...rest] = held;
    const [thought, call, seen, notice] = rest.slice(0, 4).map((text) => text.map((at) => lines[at]).join("\n"));
    const [flags, sent, got, seconds] = rest.slice(4);
    const box = make("div", "step");
    const title = make("h3", "", number + ". " + (tool === null ? "unreadable reply" : tool));
    if (flags) title.append(make("small", "warn", flags));
    title.append(make("small", "", sent + " + " + got + " tokens, " + seconds + " s"));
    box.append(title);
    if (thought) box.append(make("p", "", thought));
    for (const text of [call, seen]) {
      if (text) {
        const block = make("pre", "", text);
        block.tabIndex = 0;
        box.append(block);
      }
    }
    if (notice) box.append(make("p", "", notice));
    return box;
  };

  const transcript = async (place, answer) => {
    const [pass, , , , told, finding, chunk] = answer;
    const turn = ++asked;
    place.replaceChildren();
    if (finding) place.append(make("p", "found", "Diagnosis: " + finding));
    place.append(make("p", "meta", told));
    if (chunk < 0) {
      place.append(make("p", "nothing", "The steps of this answer are not in this page."));
      return;
    }
    try {
      const { lines, steps } = await unpack("data-" + chunk);
      if (turn !== asked) return;
      const own = steps[here + "." + pass];
      own.forEach((held, index) => place.append(step(lines, index + 1, held)));
    } catch (error) {
      place.append(make("p", "nothing", "The steps cannot be shown: " + error.message));
    }
  };

  const show = async (number, pass) => {
    const turn = ++asked;
    let index;
    try {
      index = await unpack("data-index");
    } catch (error) {
      byId("r-title").textContent = "This question cannot be shown";
      byId("r-body").replaceChildren(make("p", "nothing", error.message));
      if (!reader.open) reader.showModal();
      return;
    }
    const one = index.questions[number];
    if (!one || turn !== asked) return;
    here = number;
    byId("r-title").textContent = one.id;
    const list = make("div", "passes");
    const place = make("div");
    place.id = "r-steps";
    const buttons = one.answers.map((answer) => {
      const [at, what, letter, confidence, told] = answer;
      const button = make("button");
      button.type = "button";
      button.title = index.passes[at][1];
      const sure = confidence === null ? "" : ", sure " + confidence.toFixed(2);
      button.append(outcome(what), make("span", "l", letter || "–"), make("span", "", index.passes[at][0]));
      button.append(make("span", "t", told.split(",")[0] + sure));
      button.addEventListener("click", () => choose(answer, button));
      list.append(button);
      return button;
    });
    const choose = (answer, button) => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      wanted = answer[0];
      remember();
      transcript(place, answer);
    };
    byId("r-body").replaceChildren(...question(one), list, place);
    if (!reader.open) {
      reader.showModal();
      byId("r-body").focus();
    }
    byId("r-body").scrollTop = 0;
    const first = one.answers.findIndex((answer) => answer[0] === pass);
    const other = one.answers.findIndex((answer) => answer[6] >= 0);
    const chosen = first >= 0 ? first : Math.max(0, other);
    if (one.answers.length) choose(one.answers[chosen], buttons[chosen]);
    else place.append(make("p", "nothing", "It was not answered in this run."));
    for (const [id, way] of [["r-back", -1], ["r-next", 1]]) byId(id).disabled = beside(way) === null;
  };

  const remember = () => {
    history.replaceState(null, "", "#q-" + here + (wanted >= 0 ? "." + wanted : ""));
  };

  /* The question before or after, among those that the list shows. */
  const beside = (way) => {
    const shown = rows.filter((row) => !row.hidden).map((row) => Number(row.id.slice(2)));
    const next = shown[shown.indexOf(here) + way];
    return shown.includes(here) && next !== undefined ? next : null;
  };

  const step_to = (way) => {
    const next = beside(way);
    if (next !== null) show(next, wanted);
  };

  byId("r-close").addEventListener("click", () => reader.close());
  byId("r-back").addEventListener("click", () => step_to(-1));
  byId("r-next").addEventListener("click", () => step_to(1));
  reader.addEventListener("click", (event) => { if (event.target === reader) reader.close(); });
  reader.addEventListener("close", () => {
    asked += 1;
    history.replaceState(null, "", location.pathname + location.search);
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-q]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    show(Number(link.dataset.q), link.dataset.p === undefined ? -1 : Number(link.dataset.p));
  });

  const follow = () => {
    const found = /^#q-(\d+)(?:\.(\d+))?$/.exec(location.hash);
    if (found) {
      show(Number(found[1]), found[2] === undefined ? -1 : Number(found[2]));
      return;
    }
    const place = location.hash.length > 1 ? byId(decodeURIComponent(location.hash.slice(1))) : null;
    if (place && place.tagName === "DETAILS") place.open = true;
  };
  window.addEventListener("hashchange", follow);

  /* -- the list -------------------------------------------------------------------- */

  const TESTS = {
    "": () => true,
    w: (row) => row.dataset.marks.includes("w"),
    r: (row) => /^r+$/.test(row.dataset.marks),
    f: (row) => /^w+$/.test(row.dataset.marks),
    x: (row) => row.dataset.marks.includes("x"),
    up: (row) => row.dataset.change === "up",
    down: (row) => row.dataset.change === "down",
  };

  const filter = () => {
    const pool = byId("f-pool").value;
    const kind = byId("f-class").value;
    const holds = TESTS[byId("f-change").value];
    const words = byId("f-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = words.length ? row.firstElementChild.textContent.toLowerCase() : "";
      const fits =
        (!pool || row.dataset.pool === pool) && (!kind || row.dataset.class === kind) &&
        holds(row) && words.every((word) => text.includes(word));
      row.hidden = !fits;
      if (fits) count += 1;
    }
    for (const box of document.querySelectorAll(".pool")) {
      box.hidden = ![...box.querySelectorAll("tr[data-pool]")].some((row) => !row.hidden);
    }
    byId("f-count").textContent = count + " of " + rows.length;
  };

  if (byId("filters")) {
    byId("filters").hidden = false;
    byId("filters").addEventListener("input", filter);
    filter();
  }

  /* On paper every card is open. */
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.card:not([open])")];
    closed.forEach((card) => { card.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((card) => { card.open = false; }));

  follow();
})();
