import { sourcePlace } from './source-place.mjs';

/** @typedef {{ functionName: string, url: string, lineNumber: number, columnNumber?: number }} Frame lines and columns from 0 */
/** @typedef {{ nodes: { id: number, callFrame: Frame, children?: number[] }[], samples: number[], timeDeltas: number[] }} CpuProfile as V8 writes it; times are microseconds */
/** @typedef {{ name: string, place: string, selfUs: number }} FunctionTime `place` is the code, or for Node's own functions the code that they work for */

const root = new URL('../../', import.meta.url).href;
const IDLE = '(idle)';
/** The profiler's own work at its begin and its end. */
const PROFILER = 'dispatch';

/**
 * Self time of a process by function, the largest first, without idle time.
 *
 * @param {CpuProfile} profile
 * @returns {{ busyUs: number, functions: FunctionTime[] }}
 */
export function summarise({ nodes, samples, timeDeltas }) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  /** @type {Map<string, FunctionTime>} */
  const functions = new Map();
  let busyUs = 0;
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    // The time between two samples belongs to the first of them.
    const tookUs = Math.max(0, timeDeltas[index + 1] ?? 0);
    if (frame === undefined || frame.functionName === IDLE || (frame.functionName === PROFILER && frame.url === '')) continue;
    busyUs += tookUs;
    const where = isNodes(frame) ? callerOf(id, { frames, callers }) : placeOf(frame);
    const key = `${frame.functionName} ${where}`;
    const known = functions.get(key) ?? { name: frame.functionName || '(anonymous)', place: where, selfUs: 0 };
    known.selfUs += tookUs;
    functions.set(key, known);
  }
  return { busyUs, functions: [...functions.values()].sort((one, other) => other.selfUs - one.selfUs) };
}

/** @param {Frame} frame */
function isNodes({ url }) {
  return url === '' || url.startsWith('node:');
}

/** The caller outside of Node that led to a function of Node. @param {number} id @param {{ frames: Map<number, Frame>, callers: Map<number, number> }} tree */
function callerOf(id, { frames, callers }) {
  for (let at = callers.get(id); at !== undefined; at = callers.get(at)) {
    const frame = frames.get(at);
    if (frame !== undefined && !isNodes(frame)) return `for ${frame.functionName || '(anonymous)'} ${placeOf(frame)}`;
  }
  return '';
}

/** The part of a URL that names the package or file. @param {Frame} frame */
function placeOf(frame) {
  const { url, lineNumber } = sourcePlace(frame);
  const path = url.replace(root, '').replace(/^file:\/\//, '');
  const [, ours] = /(?:.*\/)?(?:node_modules|dist)\/(.+)$/.exec(path) ?? [];
  return `${ours ?? path}:${lineNumber + 1}`;
}
