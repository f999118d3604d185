import { minus, plain } from './comparison.mjs';
import { PREAMBLE_DELAY_MS, TURN_DELAY_MS } from './settings.mjs';

/** @typedef {import('./rounds.mjs').Need} Need */

/** Model calls that wait for each other in a turn that follows a routine: matching and the next step side by side, then the reply. */
const CHAIN = 2;
const NO_BAR = { bar: Number.POSITIVE_INFINITY, aim: null };

const loads = ['engineTurns16', 'engineTurn1', 'enginePrompt', 'engineSnapshot'];

/** Turns that follow from policies and a routine. @type {readonly import('./rows.mjs').Row[]} */
export const engineRows = [
  {
    name: 'engine-turn',
    isNotQuick: true,
    title: `turn with 12 policies and a routine (${TURN_DELAY_MS} ms each model call)`,
    needs: loads.map((load) => ({ target: 'switchyard', load })),
    compare: (figures) => {
      const of = (/** @type {string} */ load, /** @type {string} */ figure) => figures.median('switchyard', load, figure);
      return [
        // Seconds per thousand, so milliseconds of each.
        plain('CPU of all processes per turn at 16 in flight', 'ms', of('engineTurns16', 'cpuPerThousand'), { bar: 10, aim: null }),
        plain('overhead p50 at 1, beyond the longest chain of calls', 'ms', minus(of('engineTurn1', 'p50Ms'), CHAIN * TURN_DELAY_MS), { bar: 40, aim: null }),
        plain('commits per turn at 1', '', of('engineTurn1', 'commitsPerTurn'), NO_BAR),
        plain('model calls per turn', '', of('engineTurn1', 'callsPerTurn'), NO_BAR),
        plain('prompt of 100 policies', 'ms', of('enginePrompt', 'promptMs'), { bar: 2, aim: null }),
        plain('snapshot in turn 60', 'B', figures.most('switchyard', 'engineSnapshot', 'bytes'), { bar: 4_096, aim: null }),
      ];
    },
  },
  {
    name: 'preamble',
    isNotQuick: true,
    title: `preamble of a turn, with a model of ${PREAMBLE_DELAY_MS} ms`,
    needs: [{ target: 'switchyard', load: 'preambles' }],
    compare: (figures) => [
      plain('p50 from the message', 'ms', figures.median('switchyard', 'preambles', 'p50Ms'), { bar: 700, aim: null }),
      plain('p99 from the message', 'ms', figures.median('switchyard', 'preambles', 'p99Ms'), NO_BAR),
    ],
  },
];
