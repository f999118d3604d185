import { plain } from './comparison.mjs';

/** @typedef {import('./rows.mjs').Figures} Figures */

/** A turn where a session is long, where hosts are two, and in one process: each against Switchyard's own turn. @type {readonly import('./rows.mjs').Row[]} */
export const conversationRows = [
  {
    name: 'long-conversation',
    title: 'durable turn in a session of 400 messages, against one of 10',
    needs: ['turnsShort', 'turnsLong'].map((load) => ({ target: 'switchyard', load })),
    compare: (figures) => [cpuOf(figures, ['switchyard', 'turnsLong'], ['switchyard', 'turnsShort'], { against: '10 messages', bar: 1.15, aim: 1.05 })],
  },
  {
    name: 'two-hosts',
    title: 'durable turn at 64 in flight on two actor hosts, against one',
    needs: ['turns64OneHost', 'turns64TwoHosts'].map((load) => ({ target: 'switchyard', load })),
    compare: (figures) => [cpuOf(figures, ['switchyard', 'turns64TwoHosts'], ['switchyard', 'turns64OneHost'], { against: 'one host', bar: 1.1, aim: 1 })],
  },
  {
    name: 'standalone-turn',
    title: 'durable turn at 16 in flight of one process on embedded drivers',
    needs: ['switchyard', 'standalone'].map((target) => ({ target, load: 'turns16' })),
    compare: (figures) => [cpuOf(figures, ['standalone', 'turns16'], ['switchyard', 'turns16'], { against: 'switchyard', bar: 1.5, aim: 1.2 })],
  },
];

/**
 * @param {Figures} figures
 * @param {[string, string]} own target and load
 * @param {[string, string]} other
 * @param {{ against: string, bar: number, aim: number }} row
 */
function cpuOf(figures, own, other, { against, ...limits }) {
  const value = figures.median(...own, 'cpuPerThousand');
  return { ...plain('CPU per 1,000', 's', value, limits), against, baseline: figures.median(...other, 'cpuPerThousand') };
}
