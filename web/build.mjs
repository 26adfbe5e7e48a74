// Builds the dashboard into the Python package: one script and one stylesheet, named by their
// content, and the page that loads them. Says how large they are; too large is a failure.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

const GZIP_BYTES_MAX = 150_000;
const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '../src/fairway/api/dashboard/static');
const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E" +
  "%3Crect width='32' height='32' rx='8' fill='%234449c4'/%3E" +
  "%3Cg fill='none' stroke='%23fff' stroke-width='2.6' stroke-linecap='round'%3E" +
  "%3Cpath d='M8 24V12a4 4 0 0 1 4-4h12M14 24v-6a4 4 0 0 1 4-4h6M20 24v-2a2 2 0 0 1 2-2h2'/%3E" +
  "%3C/g%3E%3C/svg%3E";

const built = await build({
  absWorkingDir: here,
  entryPoints: { main: 'src/main.tsx' },
  outdir: target,
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  publicPath: '/ui/assets/',
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  loader: { '.svg': 'file', '.woff2': 'file' },
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none',
  charset: 'utf8',
  logLevel: 'warning',
  write: false,
});

const files = new Map(built.outputFiles.map((one) => [basename(one.path), one.contents]));
const named = (end) => [...files.keys()].filter((name) => name.endsWith(end));
const styles = named('.css').map((name) => `<link rel="stylesheet" href="/ui/assets/${name}">`);
const scripts = named('.js').map((name) => `<script type="module" src="/ui/assets/${name}"></script>`);
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Fairway</title>
<link rel="icon" href="${icon}">
${[...styles, ...scripts].join('\n')}
</head>
<body>
<div id="app"></div>
<noscript><p>The dashboard needs JavaScript. The same is told by the <a href="/docs">API</a> and by
<code>fairway doctor</code>.</p></noscript>
</body>
</html>
`;
files.set('index.html', Buffer.from(page));

let size = 0;
for (const [name, contents] of files) {
  const bytes = gzipSync(contents, { level: 9 }).length;
  size += bytes;
  console.log(`  ${name.padEnd(24)} ${(bytes / 1000).toFixed(1).padStart(7)} kB gzip`);
}
console.log(`  ${'in all'.padEnd(24)} ${(size / 1000).toFixed(1).padStart(7)} kB gzip`);
if (size > GZIP_BYTES_MAX) {
  console.error(`The dashboard is too large: at most ${GZIP_BYTES_MAX / 1000} kB gzip.`);
  process.exit(1);
}

mkdirSync(target, { recursive: true });
for (const old of readdirSync(target)) if (!files.has(old)) rmSync(join(target, old));
for (const [name, contents] of files) {
  if (name !== 'index.html') writeFileSync(join(target, name), contents);
}
writeFileSync(join(target, 'index.html'), page); // last: it names what is there by now
