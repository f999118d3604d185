import { existsSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { burstLoads } from './burst-loads.mjs';
import { completionsOf } from './completions.mjs';
import { engineLoads } from './engine-loads.mjs';
import { addressOf } from './http/request.mjs';
import { admissions } from './load/admissions.mjs';
import { deliveries } from './load/deliveries.mjs';
import { eventWebhooks } from './load/event-webhooks.mjs';
import { idlePolls } from './load/idle-polls.mjs';
import { leavingClients } from './load/leaving-clients.mjs';
import { LedgerLag } from './load/ledger-lag.mjs';
import { logPages } from './load/log-pages.mjs';
import { openStreams } from './load/open-streams.mjs';
import { posts } from './load/posts.mjs';
import { slowReaders } from './load/slow-readers.mjs';
import { steadyRate } from './load/steady-rate.mjs';
import { wholeRequests } from './load/whole-requests.mjs';
import { ofLoop } from './loop-result.mjs';
import { PAGE_EVENTS } from './settings.mjs';
import { WEBHOOK } from './targets/deployment-files.mjs';
import { turnLoads } from './turn-loads.mjs';

/** @typedef {import('./targets/start-target.mjs').Target} Target */
/** @typedef {import('./load/failures.mjs').Failures} Failures */

/**
 * @typedef {object} Setting of one load on one target
 * @property {Target} target
 * @property {import('./upstream/start-upstream.mjs').Upstream} upstream
 * @property {import('./settings.mjs').Settings} settings
 * @property {import('./load/usage-window.mjs').Hooks} [hooks]
 */

/** @typedef {{ figures: Record<string, number | null>, cpuByProcess: Record<string, number>, count: number, failures: Failures }} Result `cpuByProcess`: seconds per 1,000 of what `count` counts */
/** @typedef {(setting: Setting) => Promise<Result>} Load */

const MIB = 1_024 * 1_024;
const FILE_POLL_MS = 20;
const FILE_TIMEOUT_MS = 10_000;
/** Deliveries that are posted again and again. */
const REPEATED = 64;
const KB = 1_000;
/** Large prompts fill the generator's core first if there are more. */
const PROMPTS_IN_FLIGHT = 8;
const MICROS_PER_SECOND = 1_000_000;

/** All loads, by name. @type {Record<string, Load>} */
export const loads = {
  whole64: (setting) => whole(setting, { inFlight: 64, times: { ...setting.settings.whole, warmCount: setting.settings.warmRequests } }),
  whole1: (setting) => whole(setting, { inFlight: 1, times: setting.settings.single }),
  prompt1k: (setting) => whole(setting, { inFlight: PROMPTS_IN_FLIGHT, times: setting.settings.single, promptBytes: KB }),
  prompt100k: (setting) => whole(setting, { inFlight: PROMPTS_IN_FLIGHT, times: setting.settings.whole, promptBytes: 100 * KB }),
  prompt1m: (setting) => whole(setting, { inFlight: 1, times: setting.settings.single, promptBytes: 1_000 * KB }),
  tokens: (setting) => streamed(setting, setting.settings.tokens),
  streams: (setting) => streamed(setting, { ...setting.settings.streams, memory: true }),
  leaving,
  answer16: (setting) => answered(setting, setting.settings.shapes.medium),
  answer200: (setting) => answered(setting, setting.settings.shapes.long),
  answerTools: (setting) => answered(setting, setting.settings.shapes.tools),
  answerReasoning: (setting) => answered(setting, setting.settings.shapes.reasoning),
  deliveries16: (setting) => delivered(setting, null),
  posts16: (setting) => posted(setting, 'say'),
  toolEvents16: (setting) => posted(setting, 'injectResult'),
  repeats16: (setting) => delivered(setting, REPEATED),
  logPages: pagesOfLog,
  polls,
  events,
  slowReaders: slow,
  steady,
  admission64: (setting) => admitted(setting, { inFlight: 64, times: setting.settings.whole }),
  admission1: (setting) => admitted(setting, { inFlight: 1, times: setting.settings.single }),
  ...burstLoads,
  ...turnLoads,
  ...engineLoads,
};

/**
 * Requests that are answered whole.
 *
 * @param {Setting} setting
 * @param {{ inFlight: number, times: import('./load/closed-loop.mjs').LoopLoad['times'], shape?: import('./shape.mjs').Shape, promptBytes?: number }} how
 */
export async function whole({ target, upstream, settings, hooks = {} }, { inFlight, times, shape = settings.shapes.whole, promptBytes = 0 }) {
  const { address, requestOf } = completionsOf(target, upstream.url, shape);
  const isRight = (/** @type {string} */ text) => text.includes('0.0 ');
  const request = requestOf({ stream: false, promptBytes });
  return ofLoop(await wholeRequests({ address, request, isRight, inFlight, times, roots: target.facts.roots, hooks }));
}

/** Whole answers of a form, 16 in flight. @param {Setting} setting @param {import('./shape.mjs').Shape} shape */
function answered(setting, shape) {
  return whole(setting, { inFlight: 16, times: setting.settings.single, shape });
}

/** @param {Setting} setting @param {import('./settings.mjs').Times & { shape: import('./shape.mjs').Shape, streams: number, memory?: boolean }} how @returns {Promise<Result>} */
export async function streamed({ target, upstream, hooks = {} }, { shape, streams, warmMs, measureMs, memory = false }) {
  const { address, requestOf } = completionsOf(target, upstream.url, shape);
  const { integrity, failures, cpuByProcess, ...measured } = await openStreams({
    address,
    requestOf: (id) => requestOf({ stream: true, id }),
    shape,
    streams,
    times: { warmMs, measureMs },
    roots: target.facts.roots,
    memory,
    hooks,
  });
  const { count, expected, delivered, lost, doubled, reordered, foreign } = integrity;
  return {
    figures: {
      firstTokenP50Ms: measured.firstTokenP50Ms,
      firstTokenP99Ms: measured.firstTokenP99Ms,
      cpuPerThousand: measured.cpuPerThousand,
      tokensPerSecond: measured.tokensPerSecond,
      ...(memory ? { memoryTotalMb: measured.memoryTotal === null ? null : measured.memoryTotal / MIB } : {}),
      ...(memory ? { memoryPerThousandMb: measured.memoryPerThousand === null ? null : measured.memoryPerThousand / MIB } : {}),
      streams: count,
      deliveredPercent: (delivered / expected) * 100,
      lost,
      doubled,
      reordered,
      foreign,
    },
    cpuByProcess,
    count: measured.tokensWithin,
    failures,
  };
}

/** @param {Setting} setting @returns {Promise<Result>} */
async function leaving({ target, upstream, settings: { leaving: settings } }) {
  const { address, requestOf } = completionsOf(target, upstream.url, settings.shape);
  const { clients, seen, p50Ms, p99Ms, failures } = await leavingClients({
    address,
    requestOf: (id) => requestOf({ stream: true, id }),
    tokens: settings.shape.tokens,
    clients: settings.clients,
    upstream,
  });
  return { figures: { seenPercent: (seen / clients) * 100, p50Ms, p99Ms }, cpuByProcess: {}, count: clients, failures };
}

/** @param {Setting} setting @returns {Promise<Result>} */
async function polls({ target, settings: { polls: settings } }) {
  const { agentUrl = '', keys, roots } = target.facts;
  const { queries, memoryBytes, failures } = await idlePolls({
    ...settings,
    server: { address: addressOf(agentUrl), key: keys?.agentKey ?? '' },
    gateway: roots.filter(({ name }) => name === 'agent-gateway'),
    queries: async () => Number(await target.call('queries')),
  });
  return { figures: { queries, memoryMb: memoryBytes / MIB }, cpuByProcess: {}, count: settings.polls, failures };
}

/** Events of sessions at a rate, posted to a receiver. @param {Setting} setting @returns {Promise<Result>} */
async function events({ target, settings: { events: settings } }) {
  const { agentUrl = '', keys, roots } = target.facts;
  const { sessions, perSecond, ...times } = settings;
  const worker = roots.filter(({ name }) => name === 'effect-worker');
  const server = { address: addressOf(agentUrl), key: keys?.agentKey ?? '' };
  const { count, cpuByProcess, failures, grownBytes, ...figures } = await eventWebhooks({ server, sessions, perSecond, times, roots, worker });
  return { figures: { ...figures, workerGrownMb: grownBytes / MIB }, cpuByProcess, count, failures };
}

/** Deliveries of a webhook. @param {Setting} setting @param {number | null} repeated @returns {Promise<Result>} */
async function delivered({ target, settings, hooks = {} }, repeated) {
  const { agentUrl = '', roots } = target.facts;
  const result = ofLoop(await deliveries({ address: addressOf(agentUrl), webhook: WEBHOOK, repeated, inFlight: 16, times: settings.whole, roots, hooks }));
  // Seconds per thousand, so milliseconds of each.
  return { ...result, figures: { ...result.figures, gatewayMs: result.cpuByProcess['agent-gateway'] ?? null } };
}

/** Pages of a session's log. @param {Setting} setting @returns {Promise<Result>} */
async function pagesOfLog({ target, settings, hooks = {} }) {
  const { agentUrl = '', keys, roots } = target.facts;
  const server = { address: addressOf(agentUrl), key: keys?.agentKey ?? '' };
  const { loopFile } = target.facts;
  const signal = async () => void (await target.call('signal'));
  if (loopFile !== undefined) rmSync(loopFile, { force: true });
  const measuring = loopFile === undefined ? hooks : { onBegin: signal, onEnd: signal };
  const result = ofLoop(
    await logPages({ server, events: PAGE_EVENTS, inFlight: 4, times: { ...settings.single, warmCount: settings.warmPages }, roots, hooks: measuring }),
  );
  const microsOf = (/** @type {number | null | undefined} */ secondsPerThousand) => ((secondsPerThousand ?? 0) * MICROS_PER_SECOND) / 1_000 / PAGE_EVENTS;
  const { cpuPerThousand, p50Ms, perSecond } = result.figures;
  return {
    ...result,
    figures: {
      eventMicros: microsOf(cpuPerThousand),
      gatewayMicros: microsOf(result.cpuByProcess['agent-gateway']),
      longestBlockMs: loopFile === undefined ? null : await numberIn(loopFile),
      p50Ms: p50Ms ?? null,
      perSecond: perSecond ?? null,
    },
  };
}

/** @param {string} path of a file that another process is about to write @returns {Promise<number | null>} null: it did not */
async function numberIn(path) {
  for (const untilMs = performance.now() + FILE_TIMEOUT_MS; performance.now() < untilMs; await delay(FILE_POLL_MS)) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    if (text !== '') return Number(text);
  }
  return null;
}

/** Posts to sessions that begin no turn. @param {Setting} setting @param {'say' | 'injectResult'} what @returns {Promise<Result>} */
async function posted({ target, settings, hooks = {} }, what) {
  const { agentUrl = '', keys, roots } = target.facts;
  const server = { address: addressOf(agentUrl), key: keys?.agentKey ?? '' };
  return ofLoop(await posts({ server, what, inFlight: 16, times: settings.whole, roots, hooks }));
}

/** Streams whose clients stop reading. @param {Setting} setting @returns {Promise<Result>} */
async function slow({ target, upstream, settings: { slow: settings } }) {
  const { address, requestOf } = completionsOf(target, upstream.url, settings.shape);
  const request = requestOf({ stream: true });
  const { readers, mostBytes, mostOfGateway, afterBytes, failures } = await slowReaders({ ...settings, address, request, roots: target.facts.roots });
  const perThousand = (/** @type {number} */ bytes) => (bytes / MIB / readers) * 1_000;
  return {
    figures: { memoryPerThousandMb: perThousand(mostBytes), gatewayPerThousandMb: perThousand(mostOfGateway), leftPerThousandMb: perThousand(afterBytes) },
    cpuByProcess: {},
    count: readers,
    failures,
  };
}

/** Requests at a rate, and how far the ledger is behind. @param {Setting} setting @returns {Promise<Result>} */
async function steady({ target, upstream, settings }) {
  const { address, requestOf } = completionsOf(target, upstream.url, settings.shapes.whole);
  const lag = new LedgerLag(target.facts.management ?? []);
  const hooks = { onBegin: () => lag.begin(), onEnd: () => lag.end() };
  const isRight = (/** @type {string} */ text) => text.includes('0.0 ');
  const request = requestOf({ stream: false });
  const { perSecond, ...times } = settings.steady;
  const measured = await steadyRate({ address, request, isRight, perSecond, times, roots: target.facts.roots, hooks });
  const result = ofLoop(measured);
  const { mostSeconds, unread } = lag.figures();
  return { ...result, figures: { ...result.figures, postponed: measured.postponed, lagMostSeconds: mostSeconds, lagUnread: unread } };
}

/** @param {Setting} setting @param {{ inFlight: number, times: import('./settings.mjs').Times }} how @returns {Promise<Result>} */
async function admitted({ target }, { inFlight, times }) {
  const { databaseUrl, roots } = target.facts;
  if (databaseUrl === undefined) throw new Error(`${target.name} has no database`);
  const { ownMicros, ...measured } = await admissions({ databaseUrl, inFlight, times, roots: roots.filter(({ name }) => name === 'postgres') });
  const result = ofLoop(measured);
  return { ...result, figures: { ownMicros, databaseMicros: measured.cpuPerThousand * 1_000, p50Ms: measured.p50Ms, perSecond: measured.perSecond } };
}
