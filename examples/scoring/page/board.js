"use strict";
const board = document.getElementById("board");
const live = document.getElementById("live");
const said = document.getElementById("said");
let known = null;

function row(place) {
  const item = document.createElement("li");
  for (const name of ["rank", "candidate", "score"]) {
    const cell = document.createElement("span");
    cell.className = name === "candidate" ? "name" : name;
    cell.textContent = place[name]; // text, never markup: candidates name themselves
    item.append(cell);
  }
  const bar = document.createElement("span");
  bar.className = "bar";
  bar.style.width = `${place.score}%`;
  item.append(bar);
  if (known && !known.has(place.id)) item.className = "new";
  return item;
}

function show(state) {
  board.replaceChildren(...state.leaderboard.map(row));
  known = new Set(state.leaderboard.map((place) => place.id));
  const cost = state.dollars > 0 ? ` · $${state.dollars.toFixed(4)} spent` : "";
  document.getElementById("totals").textContent = `${state.scored} scored${cost}`;
}

const events = new EventSource("/leaderboard/events");
events.addEventListener("board", (event) => { live.textContent = "live"; live.className = ""; show(JSON.parse(event.data)); });
events.onerror = () => { live.textContent = "reconnecting"; live.className = "off"; };

document.getElementById("apply").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const body = JSON.stringify({ candidate: form.get("candidate"), payload: { text: form.get("text") } });
  const began = performance.now();
  const reply = await fetch("/applications", { method: "POST", body, headers: { "Content-Type": "application/json" } });
  const answer = await reply.json();
  said.textContent = reply.ok
    ? `Taken in ${Math.round(performance.now() - began)} ms: ${answer.id}`
    : answer.detail;
  if (reply.ok) event.target.reset();
});
