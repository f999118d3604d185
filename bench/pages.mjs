import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare } from '../scripts/prepare.mjs';
import { describeMachine } from './machine.mjs';
import { clone, commitsAroundPages, help, npmStart, root } from './pages/measure-start.mjs';
import { deltasToPixels, heapOverAnHour } from './pages/measure-talk.mjs';
import { openChromium } from './pages/open-chromium.mjs';
import { openPages } from './pages/open-pages.mjs';
import { scrollSessions, storeSessions } from './pages/scroll-list.mjs';
import { startTalkServer } from './pages/talk-server.mjs';

/** @typedef {import('./pages/open-chromium.mjs').Browser} Browser */

const REPEATS = 10;
const STARTS = 3;
const AIMS = { interactiveMs: 1_000, deltaMs: 50, growthMb: 20, helpMs: 300 };
/** What is measured; by default all of it. */
const PARTS = { help: measureHelp, pages: measurePages, list: measureList, open: measureOpenPages, clone: measureClone };
/** Text, since it runs in the page: when its field for messages is there. */
const WATCH_FIELD = `
  new MutationObserver(() => {
    if (document.querySelector('textarea') !== null) globalThis.interactiveMs ??= performance.now();
  }).observe(document, { subtree: true, childList: true });
`;

/** Prints what people wait for: pages in Chromium, the command line, and the start of a clone: `node bench/pages.mjs`, or parts of it: `… list open`. */
async function main() {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !(name in PARTS));
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(', ')}: ${Object.keys(PARTS).join(', ')}`);
  await prepare({ build: true, tests: true });
  console.log(describeMachine().join('\n'));
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-pages-'));
  try {
    for (const [name, measure] of Object.entries(PARTS)) if (wanted.length === 0 || wanted.includes(name)) await measure(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function measureHelp() {
  const helps = await times(REPEATS, help);
  print('switchyard --help', `p50 ${at(helps, 0.5).toFixed(0)} ms, most ${Math.max(...helps).toFixed(0)} ms`, AIMS.helpMs);
}

/** @param {string} folder */
async function measurePages(folder) {
  const pages = await builtPages();
  const { browser, close } = await openChromium();
  try {
    const started = await npmStart(root, join(folder, 'data'));
    const cold = await times(REPEATS, () => untilInteractive(browser, started)).finally(started.stop);
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
async function measureList(folder) {
  const dataFolder = join(folder, 'list');
  const first = await npmStart(root, dataFolder);
  const response = await fetch(`${first.agentUrl}/sessions`, { method: 'POST', headers: { authorization: `Bearer ${first.key}` } });
  await first.stop();
  if (!response.ok) throw new Error(`making a session was answered with ${response.status}`);
  await storeSessions(dataFolder);
  const { browser, close } = await openChromium();
  try {
    const started = await npmStart(root, dataFolder);
    try {
      const context = await loggedIn(browser, started);
      const { rows, taskMs, cpuMs } = await scrollSessions(await context.newPage(), started.agentUrl);
      const most = taskMs.length === 0 ? 'none' : `${taskMs.length}, the longest ${Math.max(...taskMs).toFixed(0)} ms`;
      print(`scrolling through ${rows.toLocaleString('en')} sessions, tasks of 50 ms and more`, most, 'none');
      // A busy machine takes the processor away from a task, which then is long and does no more work.
      print('the same, by the CPU that a task used', `${cpuMs.filter((used) => used >= 50).length}, the longest ${cpuMs[0]?.toFixed(0)} ms`, 'none');
    } finally {
      await started.stop();
    }
  } finally {
    await close();
  }
}

async function measureOpenPages() {
  const { streams, pages, cachedPages } = await openPages();
  for (const [name, costs] of /** @type {const} */ ([
    ['1,000 event streams', streams],
    ['1,000 open pages, nothing cached', pages],
    ['1,000 open pages, files cached', cachedPages],
  ])) {
    const of = (/** @type {keyof import('./pages/open-pages.mjs').Cost} */ field, digits = 1) => costs.map((cost) => cost[field].toFixed(digits)).join(', ');
    const opening = `${of('openCpuSeconds')} s of CPU and ${of('openMemoryMb', 0)} MB to open them`;
    print(`${name}, at the agent gateway`, `${opening}; at rest ${of('restCpuSeconds', 2)} s of CPU in 40 s and ${of('restMemoryMb', 0)} MB`);
  }
}

/** Of this commit, and of those around the first one with the pages, by turns. @param {string} folder */
async function measureClone(folder) {
  const around = commitsAroundPages();
  /** @type {[string, string | undefined][]} */
  const clones = [
    ...(around === null ? [] : around.map((commit) => /** @type {[string, string]} */ ([commit.slice(0, 8), commit]))),
    ['this commit', undefined],
  ];
  /** @type {Map<string, { first: number[], built: number[] }>} */
  const seconds = new Map(clones.map(([name]) => [name, { first: [], built: [] }]));
  for (let round = 0; round < STARTS; round += 1) {
    for (const [name, commit] of clones) {
      const fresh = join(folder, `clone-${round}-${name}`);
      await clone(fresh, commit);
      for (const [kind, data] of /** @type {const} */ ([
        ['first', 'data'],
        ['built', 'second'],
      ])) {
        const started = await npmStart(fresh, join(fresh, data));
        await started.stop();
        seconds.get(name)?.[kind].push(started.readyMs / 1_000);
      }
      rmSync(fresh, { recursive: true });
    }
  }
  for (const [name, { first, built }] of seconds) {
    const text = `p50 ${at(first, 0.5).toFixed(1)} s with npm's cache; built, in a new data folder ${at(built, 0.5).toFixed(1)} s`;
    print(`npm start, from a clone to ready, ${name}`, text);
  }
}

/** @param {Browser} browser @param {{ agentUrl: string, key: string }} started */
async function loggedIn(browser, { agentUrl, key }) {
  const context = await browser.newContext();
  await context.addCookies([{ name: 'agent_auth', value: key, url: agentUrl, httpOnly: true, sameSite: 'Strict' }]);
  return context;
}

/** In a browser of its own as far as caches go. @param {Browser} browser @param {{ agentUrl: string, key: string }} started */
async function untilInteractive(browser, started) {
  const context = await loggedIn(browser, started);
  await context.addInitScript(WATCH_FIELD);
  const page = await context.newPage();
  await page.goto(`${started.agentUrl}/chat`);
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
