import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare } from '../scripts/prepare.mjs';
import { describeMachine } from './machine.mjs';
import { clone, help, npmStart, root } from './pages/measure-start.mjs';
import { deltasToPixels, heapOverAnHour } from './pages/measure-talk.mjs';
import { openChromium } from './pages/open-chromium.mjs';
import { startTalkServer } from './pages/talk-server.mjs';

/** @typedef {import('./pages/open-chromium.mjs').Browser} Browser */

const REPEATS = 10;
const AIMS = { interactiveMs: 1_000, deltaMs: 50, growthMb: 20, helpMs: 300 };
/** Text, since it runs in the page: when its field for messages is there. */
const WATCH_FIELD = `
  new MutationObserver(() => {
    if (document.querySelector('textarea') !== null) globalThis.interactiveMs ??= performance.now();
  }).observe(document, { subtree: true, childList: true });
`;

/** Prints what people wait for: pages in Chromium, the command line, and the start of a clone: `node bench/pages.mjs`. */
async function main() {
  await prepare({ build: true, tests: true });
  console.log(describeMachine().join('\n'));
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-pages-'));
  try {
    const helps = await times(REPEATS, help);
    print('switchyard --help', `p50 ${at(helps, 0.5).toFixed(0)} ms, most ${Math.max(...helps).toFixed(0)} ms`, AIMS.helpMs);
    await measurePages(folder);
    await measureClone(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** @param {string} folder */
async function measurePages(folder) {
  const pages = await builtPages();
  const { browser, close } = await openChromium();
  try {
    const started = await npmStart(root, join(folder, 'data'));
    const cold = await times(REPEATS, () => untilInteractive(browser, started.agentUrl, started.key)).finally(started.stop);
    print('first page interactive, nothing cached', `p50 ${at(cold, 0.5).toFixed(0)} ms, most ${Math.max(...cold).toFixed(0)} ms`, AIMS.interactiveMs);

    const server = await startTalkServer(pages);
    // The conditions that are waited for are texts, whose evaluation the page's policy refuses.
    const page = await browser.newPage({ bypassCSP: true });
    await page.goto(`${server.url}/chat?session=ses_0`);
    await server.open();
    const deltas = await deltasToPixels(page, server);
    print('delta to pixel at 100 deltas/s', `p50 ${at(deltas, 0.5).toFixed(1)} ms, p95 ${at(deltas, 0.95).toFixed(1)} ms`, AIMS.deltaMs);
    const { beforeMb, afterMb } = await heapOverAnHour(page, server);
    print('heap over an hour of talk', `${beforeMb.toFixed(1)} → ${afterMb.toFixed(1)} MB, ${(afterMb - beforeMb).toFixed(1)} MB more`, `${AIMS.growthMb} MB`);
    await page.close();
    await server.close();
  } finally {
    await close();
  }
}

/** @param {string} folder */
async function measureClone(folder) {
  const fresh = join(folder, 'clone');
  await clone(fresh);
  const first = await npmStart(fresh, join(fresh, 'data'));
  await first.stop();
  const second = await npmStart(fresh, join(folder, 'second'));
  await second.stop();
  print(
    'npm start, from a clone to ready',
    `${(first.readyMs / 1_000).toFixed(1)} s with npm's cache; built, in a new data folder ${(second.readyMs / 1_000).toFixed(1)} s`,
  );
}

/** In a browser of its own as far as caches go. @param {Browser} browser @param {string} origin @param {string} key */
async function untilInteractive(browser, origin, key) {
  const context = await browser.newContext();
  await context.addCookies([{ name: 'agent_auth', value: key, url: origin, httpOnly: true, sameSite: 'Strict' }]);
  await context.addInitScript(WATCH_FIELD);
  const page = await context.newPage();
  await page.goto(`${origin}/chat`);
  await page.locator('textarea').waitFor();
  const ms = Number(await page.evaluate('interactiveMs'));
  await context.close();
  return ms;
}

/** @param {number} count @param {() => Promise<number>} measure */
async function times(count, measure) {
  /** @type {number[]} */
  const all = [];
  for (let index = 0; index < count; index += 1) all.push(await measure());
  return all;
}

/** @param {readonly number[]} values @param {number} quantile */
function at(values, quantile) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? Number.NaN;
}

/** @param {string} name @param {string} figures @param {number | string | null} [aim] */
function print(name, figures, aim = null) {
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ')[0];
  console.log(`${name}: ${figures}${aim === null ? '' : `; aim: ${typeof aim === 'number' ? `${aim} ms` : aim}`} (load ${load})`);
}

async function builtPages() {
  /** @type {typeof import('../shared/http-server/built-pages.ts')} */
  const pages = await import(new URL('../dist/shared/http-server/built-pages.js', import.meta.url).href);
  return pages;
}

await main();
