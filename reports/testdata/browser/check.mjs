// Usage: node check.mjs REPORT.html... [--shots DIR]
//
// Each report must make no request but for itself, raise no dialog and no script error,
// not scroll sideways at 400 and 1400 px, carry its data as JSON, and have no axe-core
// violation in light and in dark. Exits 1 and says what is wrong otherwise, 2 when the
// browser cannot be started. CHROMIUM names the browser; --shots keeps pictures.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const args = process.argv.slice(2);
const shotsAt = args.indexOf('--shots');
const shots = shotsAt < 0 ? null : args.splice(shotsAt, 2)[1];
if (args.length === 0) {
  console.error('usage: node check.mjs REPORT.html... [--shots DIR]');
  process.exit(2);
}
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const problems = [];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
}).catch((err) => {
  console.error(`cannot start the browser: ${err.message}`);
  process.exit(2);
});

try {
  for (const file of args) {
    for (const colorScheme of ['light', 'dark']) await check(file, colorScheme);
  }
} finally {
  await browser.close();
}
for (const p of problems) console.log(p);
console.log(`${args.length} report(s) in light and dark, at 1400 and 400 px: ${problems.length} problem(s)`);
process.exit(problems.length === 0 ? 0 : 1);

async function check(file, colorScheme) {
  const name = `${basename(file, '.html')} ${colorScheme}`;
  let where = name;
  const fail = (what) => problems.push(`${where}: ${what}`);
  const context = await browser.newContext({ colorScheme, viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  const url = pathToFileURL(resolve(file)).href;
  page.on('request', (r) => { if (r.url() !== url && !r.url().startsWith('data:')) fail(`requests ${r.url()}`); });
  page.on('console', (m) => { if (m.type() === 'error') fail(`console: ${m.text()}`); });
  page.on('pageerror', (e) => fail(`script error: ${e.message}`));
  page.on('dialog', (d) => { fail(`dialog: ${d.message()}`); d.dismiss(); });
  await page.goto(url, { waitUntil: 'load' });

  for (const width of [1400, 400]) {
    where = `${name} ${width}px`;
    await page.setViewportSize({ width, height: 900 });
    for (const what of await page.evaluate(inPage)) fail(what);
    if (shots) await page.screenshot({ path: join(shots, `${name.replace(' ', '-')}-${width}.png`), fullPage: true });
  }
  await page.evaluate(() => document.querySelectorAll('details').forEach((d) => { d.open = true; }));
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations', 'passes'] }));
  if (passes.length < 15) fail(`axe-core had only ${passes.length} passes: it saw no report`);
  for (const v of violations) {
    fail(`axe ${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join(' | ')} (${v.nodes.length} in all)`);
  }
  await context.close();
}

// inPage runs in the report and returns what is wrong with it.
function inPage() {
  const bad = [];
  const root = document.documentElement;
  if (root.scrollWidth > window.innerWidth) {
    const wide = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest('.scroll'));
    bad.push(`scrolls sideways: ${root.scrollWidth} px; first: ${wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(' | ')}`);
  }
  const policy = document.querySelector('meta[http-equiv="Content-Security-Policy"]');
  if (!policy || !policy.content.includes("default-src 'none'")) bad.push('no content security policy');
  const scripts = [...document.scripts];
  if (scripts.length !== 1 || scripts[0].type !== 'application/json') bad.push(`${scripts.length} script elements, want one of JSON`);
  try {
    if (!JSON.parse(document.getElementById('scorecard').textContent).score_version) bad.push('the data has no score_version');
  } catch (err) {
    bad.push(`the data is no JSON: ${err.message}`);
  }
  for (const svg of document.querySelectorAll('svg[role=img]')) {
    if (!svg.querySelector(':scope > title')?.textContent || !svg.querySelector(':scope > desc')?.textContent) bad.push('a chart has no title or description');
  }
  for (const a of document.querySelectorAll('a[href^="#"]')) {
    if (!document.getElementById(a.getAttribute('href').slice(1))) bad.push(`link to nowhere: ${a.getAttribute('href')}`);
  }
  return bad;
}
