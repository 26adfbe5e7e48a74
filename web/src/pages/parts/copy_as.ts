/** The same job as a call of the API, to be pasted into a shell or a program.

Keys stay where they are: both texts read FAIRWAY_API_KEY. What a payload holds is quoted for the
language it goes to, so that pasting it runs nothing. */

import type { Job, JsonValue } from '../../types';

/** What is sent to make a job like this one. */
export function requestOf(job: Job): { [name: string]: JsonValue } {
  const wanted: { [name: string]: JsonValue } = { type: job.type, payload: job.payload ?? {}, pool: job.pool };
  if (job.priority !== 5) wanted.priority = job.priority;
  if (job.timeout_seconds !== null) wanted.timeout_seconds = job.timeout_seconds;
  if (job.tags.length) wanted.tags = job.tags;
  if (Object.keys(job.metadata).length) wanted.metadata = job.metadata;
  return wanted;
}

export function asCurl(job: Job, origin: string): string {
  return [
    `curl -sS ${shell(`${origin}/v1/jobs`)} \\`,
    `  -H "Authorization: Bearer $FAIRWAY_API_KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${shell(JSON.stringify(requestOf(job)))}`,
  ].join("\n");
}

export function asPython(job: Job, origin: string): string {
  return [
    "import json",
    "import os",
    "import urllib.request",
    "",
    `job = ${python(requestOf(job))}`,
    "request = urllib.request.Request(",
    `    ${JSON.stringify(`${origin}/v1/jobs`)},`,
    "    data=json.dumps(job).encode(),",
    "    headers={",
    `        "Authorization": "Bearer " + os.environ["FAIRWAY_API_KEY"],`,
    `        "Content-Type": "application/json",`,
    "    },",
    ")",
    "with urllib.request.urlopen(request) as reply:",
    "    print(json.load(reply))",
    "",
  ].join("\n");
}

function shell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** JSON's strings are Python's, its three words are not. */
export function python(value: JsonValue, indent = ""): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    return `[\n${value.map((one) => `${inner}${python(one, inner)},\n`).join("")}${indent}]`;
  }
  const entries = Object.entries(value);
  if (!entries.length) return "{}";
  const lines = entries.map(([name, one]) => `${inner}${JSON.stringify(name)}: ${python(one, inner)},\n`);
  return `{\n${lines.join("")}${indent}}`;
}
