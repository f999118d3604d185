import { plain } from './comparison.mjs';
import { needStreams } from './needs.mjs';

/** @typedef {import('./rows.mjs').Figures} Figures */

/** Streams that begin, or end, at the same moment. @type {readonly import('./rows.mjs').Row[]} */
export const burstRows = [
  {
    name: 'bursts',
    title: '200 streams that begin within 100 ms, beside 200 others: first token',
    needs: needStreams('bursts', ['bare-hop', 'switchyard']),
    compare: (figures) => [
      againstBareHop(figures, 'firstTokenP50Ms', { what: 'p50', bar: 1.3, aim: 1 }),
      againstBareHop(figures, 'firstTokenP99Ms', { what: 'p99', bar: 1.5, aim: 1 }),
    ],
  },
  {
    name: 'leaving-at-once',
    title: '50 clients of 200 that leave at once',
    needs: needStreams('leavingAtOnce', ['raw-proxy', 'switchyard']),
    compare: (figures) => [
      plain('aborts seen upstream', '%', figures.least('switchyard', 'leavingAtOnce', 'seenPercent'), { bar: 100, aim: null, sense: 'at least' }),
      plain('p99', 'ms', figures.median('switchyard', 'leavingAtOnce', 'p99Ms'), { bar: 50, aim: 25 }),
    ],
  },
];

/** @param {Figures} figures @param {string} figure @param {{ what: string, bar: number, aim: number }} row */
function againstBareHop(figures, figure, { what, ...limits }) {
  const value = figures.median('switchyard', 'bursts', figure);
  return { ...plain(what, 'ms', value, limits), against: 'bare-hop', baseline: figures.median('bare-hop', 'bursts', figure) };
}
