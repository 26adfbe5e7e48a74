"use strict";
const STARTERS = {
  python: "a, b = map(int, input().split())\nprint(a + b)\n",
  c: "#include <stdio.h>\n\nint main(void) {\n    long a, b;\n    scanf(\"%ld %ld\", &a, &b);\n    printf(\"%ld\\n\", a + b);\n}\n",
  cpp: "#include <iostream>\n\nint main() {\n    long a, b;\n    std::cin >> a >> b;\n    std::cout << a + b << '\\n';\n}\n",
  java: "import java.util.Scanner;\n\npublic class Main {\n    public static void main(String[] args) {\n        Scanner in = new Scanner(System.in);\n        System.out.println(in.nextLong() + in.nextLong());\n    }\n}\n",
};
const form = document.getElementById("submit");
const language = document.getElementById("language");
const list = document.getElementById("submissions");

function cell(parent, tag, className) {
  const made = document.createElement(tag);
  made.className = className;
  parent.append(made);
  return made;
}

function waiting(state) {
  const place = state.position ? `number ${state.position} in the line` : "in the line";
  if (!state.likely_at) return place;
  const seconds = Math.max(0, Math.round((new Date(state.likely_at) - Date.now()) / 1000));
  return `${place}, starts in about ${seconds} s`;
}

function show(item, state) {
  const [verdict, small, more] = item.parts;
  item.element.className = state.status !== "judged" ? "" : state.verdict === "accepted" ? "accepted" : "failed";
  if (state.status === "judged") {
    verdict.textContent = state.verdict;
    small.textContent = `${state.passed}/${state.tests} tests · ${state.cpu_seconds.toFixed(2)} s · ${state.memory_mb} MB · ${state.sandbox}`;
    more.textContent = state.detail;
  } else {
    verdict.textContent = state.status;
    small.textContent = state.status === "queued" ? waiting(state) : state.progress || state.error || "";
  }
}

function follow(id, name) {
  const element = document.createElement("li");
  list.prepend(element);
  cell(element, "span", "small").textContent = name;
  const item = { element, parts: [cell(element, "span", "verdict"), cell(element, "span", "small"), cell(element, "pre", "")] };
  const events = new EventSource(`/submissions/${id}/events`);
  for (const status of ["queued", "scheduled", "running", "judged", "dead", "cancelled", "expired"]) {
    events.addEventListener(status, (event) => {
      const state = JSON.parse(event.data);
      show(item, state);
      if (["judged", "dead", "cancelled", "expired"].includes(state.status)) events.close();
    });
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const data = new FormData(form);
  const body = JSON.stringify({
    language: data.get("language"), source: data.get("source"), contest: data.get("contest") === "on",
    tests: [{ input: data.get("input"), expected: data.get("expected") }],
  });
  const reply = await fetch("/submissions", { method: "POST", body, headers: { "Content-Type": "application/json" } });
  const answer = await reply.json();
  if (reply.ok) follow(answer.id, data.get("language"));
  else alert(answer.detail);
});

language.addEventListener("change", () => { form.elements.source.value = STARTERS[language.value]; });
fetch("/languages").then((reply) => reply.json()).then(({ languages, sandbox, reason }) => {
  document.getElementById("sandbox").textContent = sandbox ? `Programs run in: ${sandbox}` : `Nothing can be judged here: ${reason}`;
  language.replaceChildren(...languages.map((name) => new Option(name, name)));
  language.dispatchEvent(new Event("change"));
});
