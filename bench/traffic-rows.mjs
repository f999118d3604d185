import { plain } from './comparison.mjs';
import { PAGE_EVENTS } from './settings.mjs';

/** @typedef {import('./rounds.mjs').Need} Need */
/** @typedef {import('./rows.mjs').Figures} Figures */

const NO_BAR = Number.POSITIVE_INFINITY;
const PROMPT_LOADS = ['prompt1k', 'prompt100k', 'prompt1m'];
const ANSWER_LOADS = ['answer16', 'answer200', 'answerTools', 'answerReasoning'];
const PEERS = ['raw-proxy', 'portkey', 'switchyard'];

/** What real traffic has beside short prompts under even load. @type {readonly import('./rows.mjs').Row[]} */
export const trafficRows = [
  {
    name: 'long-prompts',
    title: 'prompts of 1 KB and 100 KB at 8 in flight, and of 1 MB at 1',
    needs: PROMPT_LOADS.flatMap((load) => PEERS.map((target) => ({ target, load }))),
    compare: (figures) => [
      against(figures, 'portkey', 'prompt1k', 'cpuPerThousand', { what: 'CPU, 1 KB', unit: 's', bar: NO_BAR, aim: null }),
      against(figures, 'portkey', 'prompt100k', 'cpuPerThousand', { what: 'CPU, 100 KB', unit: 's', bar: 0.8, aim: 0.5 }),
      against(figures, 'raw-proxy', 'prompt100k', 'cpuPerThousand', { what: 'CPU, 100 KB', unit: 's', bar: 10, aim: 6 }),
      against(figures, 'portkey', 'prompt1m', 'cpuPerThousand', { what: 'CPU, 1 MB', unit: 's', bar: 1, aim: 0.6 }),
      against(figures, 'portkey', 'prompt1m', 'p50Ms', { what: 'p50, 1 MB', unit: 'ms', bar: 1, aim: 0.6 }),
    ],
  },
  {
    name: 'answers',
    title: 'answers of 16 and 200 tokens, with a call of a function, and with reasoning, at 16 in flight',
    needs: ANSWER_LOADS.flatMap((load) => PEERS.map((target) => ({ target, load }))),
    compare: (figures) => [
      against(figures, 'portkey', 'answer16', 'cpuPerThousand', { what: 'CPU, 16 tokens', unit: 's', bar: NO_BAR, aim: null }),
      against(figures, 'portkey', 'answer200', 'cpuPerThousand', { what: 'CPU, 200 tokens', unit: 's', bar: NO_BAR, aim: null }),
      against(figures, 'portkey', 'answerTools', 'cpuPerThousand', { what: 'CPU, a function', unit: 's', bar: NO_BAR, aim: null }),
      against(figures, 'portkey', 'answerReasoning', 'cpuPerThousand', { what: 'CPU, reasoning', unit: 's', bar: NO_BAR, aim: null }),
    ],
  },
  {
    name: 'log-page',
    title: `a page of ${PAGE_EVENTS} events of a session's log at 4 in flight`,
    needs: [{ target: 'switchyard', load: 'logPages' }],
    compare: (figures) => [
      plain('CPU of all processes per event', 'µs', figures.median('switchyard', 'logPages', 'eventMicros'), { bar: NO_BAR, aim: null }),
      plain('CPU of the gateway per event', 'µs', figures.median('switchyard', 'logPages', 'gatewayMicros'), { bar: 4, aim: 2 }),
      plain('longest block of the event loop of the gateway', 'ms', figures.most('switchyard', 'logPages', 'longestBlockMs'), { bar: 3, aim: null }),
      plain('p50', 'ms', figures.median('switchyard', 'logPages', 'p50Ms'), { bar: NO_BAR, aim: null }),
    ],
  },
];

/** @param {Figures} figures @param {string} peer @param {string} load @param {string} figure @param {{ what: string, unit: string, bar: number, aim: number | null }} row */
function against(figures, peer, load, figure, { what, unit, ...limits }) {
  return { ...plain(what, unit, figures.median('switchyard', load, figure), limits), against: peer, baseline: figures.median(peer, load, figure) };
}
