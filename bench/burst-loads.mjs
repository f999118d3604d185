import { completionsOf } from './completions.mjs';
import { bursts } from './load/bursts.mjs';
import { leavingAtOnce } from './load/leaving-at-once.mjs';

/** @typedef {import('./loads.mjs').Setting} Setting */
/** @typedef {import('./loads.mjs').Result} Result */

/** Streams that begin, or end, at the same moment: by name. @type {Record<string, import('./loads.mjs').Load>} */
export const burstLoads = { bursts: begun, leavingAtOnce: left };

/** @param {Setting} setting @returns {Promise<Result>} */
async function begun({ target, upstream, settings: { bursts: settings } }) {
  const { address, requestOf } = completionsOf(target, upstream.url, settings.shape);
  const { count, p50Ms, p99Ms, failures } = await bursts({ ...settings, address, requestOf: (id) => requestOf({ stream: true, id }) });
  return { figures: { firstTokenP50Ms: p50Ms, firstTokenP99Ms: p99Ms }, cpuByProcess: {}, count, failures };
}

/** @param {Setting} setting @returns {Promise<Result>} */
async function left({ target, upstream, settings: { leaving: settings } }) {
  const { address, requestOf } = completionsOf(target, upstream.url, settings.shape);
  const { clients, together, warmClients } = settings;
  const request = (/** @type {number} */ id) => requestOf({ stream: true, id });
  const load = { address, requestOf: request, tokens: settings.shape.tokens, clients, together, upstream };
  for (let left = 0; left < warmClients; left += clients) await leavingAtOnce(load);
  const { seen, p50Ms, p99Ms, failures } = await leavingAtOnce(load);
  return { figures: { seenPercent: (seen / clients) * 100, p50Ms, p99Ms }, cpuByProcess: {}, count: clients, failures };
}
