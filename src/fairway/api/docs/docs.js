// Search, copy buttons, and the address in the examples. Without this file the page says all it says.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const placeOf = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));

// -- search ----------------------------------------------------------------------------------
// By what a thing is called (its heading, path or code); if nothing is, by all that is said of it.

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
const has = (text, wanted) => wanted.every((word) => text.includes(word));

function startSearch(box) {
  const [field, count] = [box.querySelector("input"), box.querySelector("output")];
  const items = all("main article, #Problems tbody tr").map((node) => ({
    node,
    name: `${node.id} ${all("h3, .path, td", node).slice(0, node.id ? 2 : 3).map((one) => one.textContent).join(" ")}`.toLowerCase(),
    text: node.textContent.toLowerCase(),
  }));

  const found = (wanted) => {
    const named = items.filter((item) => has(item.name, wanted));
    return named.length ? named : items.filter((item) => has(item.text, wanted));
  };

  const show = () => {
    const wanted = words(field.value);
    const kept = new Set((wanted.length ? found(wanted) : items).map((item) => item.node));
    for (const { node } of items) node.hidden = !kept.has(node);
    for (const section of all("main > section")) {
      section.hidden = wanted.length > 0 && ![...kept].some((node) => section.contains(node));
    }
    for (const link of all(".side a")) {
      (link.closest("strong") ?? link).hidden = Boolean(placeOf(link)?.closest("[hidden]"));
    }
    document.body.classList.toggle("searching", wanted.length > 0);
    count.textContent = !wanted.length ? "" : kept.size ? `${kept.size} found` : "Nothing found";
  };

  const clear = () => {
    field.value = "";
    show();
  };

  field.addEventListener("input", () => {
    show();
    scrollTo(0, 0);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      clear();
      field.blur();
    } else if (event.key === "Enter") {
      items.find((item) => !item.node.hidden)?.node.scrollIntoView();
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  });
  const reveal = () => {
    const target = placeOf(location);
    if (target?.closest("[hidden]")) {
      clear();
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  box.hidden = false;
  show(); // a browser that goes back, or reloads, has filled it in again
  reveal();
}

// -- copy ------------------------------------------------------------------------------------

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers keep the clipboard to pages that came by TLS or from this machine: the old way.
    const area = document.createElement("textarea");
    area.value = text;
    area.readOnly = true;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}

function startCopy(button) {
  button.textContent = "Copy";
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("pre").textContent;
    button.textContent = (await copied(text)) ? "Copied" : "Select it and copy";
    button.focus();
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

// -- begin -----------------------------------------------------------------------------------
// The browser knows best under which address it found this page, whatever stands between.

if (location.protocol.startsWith("http")) {
  for (const place of all(".address")) place.textContent = location.origin;
}
all(".find").forEach(startSearch);
all("button.copy").forEach(startCopy);
