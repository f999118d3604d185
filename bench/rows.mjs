import { billedRows } from './billed-rows.mjs';
import { burstRows } from './burst-rows.mjs';
import { minus, plain } from './comparison.mjs';
import { conversationRows } from './conversation-rows.mjs';
import { engineRows } from './engine-rows.mjs';
import { median } from './figures.mjs';
import { need, needSingle, needStreams } from './needs.mjs';
import { EVENTS_PER_SECOND, TURN_DELAY_MS } from './settings.mjs';
import { trafficRows } from './traffic-rows.mjs';

/** @typedef {import('./rounds.mjs').Measured} Measured */
/** @typedef {import('./rounds.mjs').Need} Need */

/**
 * @typedef {object} Comparison
 * @property {string} what
 * @property {string} unit
 * @property {number | null} value Switchyard's
 * @property {string | null} against the baseline's name; null: none
 * @property {number | null} baseline its value
 * @property {number} bar of the ratio, or of the value where there is no baseline
 * @property {number | null} aim the same; null: there is none
 * @property {'at most' | 'at least'} sense of both
 */

/** @typedef {import('./shape.mjs').Traffic} Traffic */
/** @typedef {{ name: string, title: string, needs: Need[], traffic?: Traffic, isNotQuick?: true, compare: (figures: Figures) => Comparison[] }} Row `traffic`: of its bars; plain by default. `isNotQuick`: has no ratio, and starts a cluster for itself: a quick run measures it only when it is named */

/** The figures of all rounds, as one number each. */
export class Figures {
  /** @type {readonly Measured[]} */
  #measured;

  /** @param {readonly Measured[]} measured */
  constructor(measured) {
    this.#measured = measured;
  }

  /** @param {string} target @param {string} load @param {string} figure @returns {number | null} null: it was not measured */
  median(target, load, figure) {
    return median(this.#all(target, load, figure));
  }

  /** Sum over all rounds: a median would hide a single violation. @param {string} target @param {string} load @param {string} figure */
  sum(target, load, figure) {
    const all = this.#all(target, load, figure);
    return all.length === 0 ? null : all.reduce((sum, one) => sum + one, 0);
  }

  /** @param {string} target @param {string} load @param {string} figure */
  least(target, load, figure) {
    const all = this.#all(target, load, figure);
    return all.length === 0 ? null : Math.min(...all);
  }

  /** @param {string} target @param {string} load @param {string} figure */
  most(target, load, figure) {
    const all = this.#all(target, load, figure);
    return all.length === 0 ? null : Math.max(...all);
  }

  /** Delay of the first token against the upstream itself. @param {string} target @param {string} load */
  firstTokenAdded(target, load) {
    return minus(this.median(target, load, 'firstTokenP50Ms'), this.median('direct', load, 'firstTokenP50Ms'));
  }

  /** @param {string} target @param {string} load @param {string} figure */
  #all(target, load, figure) {
    return this.#measured.flatMap((one) => {
      const value = one.target === target && one.load === load ? one.figures[figure] : null;
      return value === null || value === undefined || !Number.isFinite(value) ? [] : [value];
    });
  }
}

/** @type {readonly Row[]} */
export const rows = [
  {
    name: 'request-cpu',
    title: 'CPU per 1,000 non-stream requests at 64 in flight',
    needs: need('whole64', ['raw-proxy', 'portkey', 'switchyard']),
    compare: (figures) => [
      versus(figures, 'portkey', 'whole64', 'cpuPerThousand', { unit: 's', bar: 0.25, aim: 0.15 }),
      versus(figures, 'raw-proxy', 'whole64', 'cpuPerThousand', { unit: 's', bar: 5, aim: 3 }),
    ],
  },
  {
    name: 'request-rate',
    title: 'requests per second at 64 in flight',
    traffic: 'vendor',
    needs: need('whole64', ['portkey', 'switchyard']),
    compare: (figures) => [versus(figures, 'portkey', 'whole64', 'perSecond', { unit: '/s', bar: 5, aim: 7, sense: 'at least' })],
  },
  {
    name: 'request-latency',
    title: 'p50 at 1 in flight',
    needs: needSingle(['portkey', 'switchyard']),
    compare: (figures) => [versus(figures, 'portkey', 'whole1', 'p50Ms', { unit: 'ms', bar: 0.6, aim: 0.5 })],
  },
  {
    name: 'co-located-latency',
    title: 'p50 at 1 in flight, gateway and worker in one process',
    needs: needSingle(['portkey', 'switchyard', 'co-located']),
    compare: (figures) => {
      const of = (/** @type {string} */ target) => figures.median(target, 'whole1', 'p50Ms');
      return [
        { ...plain('', 'ms', of('co-located'), { bar: 0.4, aim: 0.3 }), against: 'portkey', baseline: of('portkey') },
        { ...plain('', 'ms', of('co-located'), { bar: 1, aim: null }), against: 'switchyard', baseline: of('switchyard') },
      ];
    },
  },
  {
    name: 'first-token',
    title: 'first token added p50, 200 streams × 50 tokens/s',
    needs: need('tokens', ['direct', 'raw-proxy', 'switchyard']),
    compare: (figures) => [
      {
        ...plain('added', 'ms', figures.firstTokenAdded('switchyard', 'tokens'), { bar: 4, aim: 2 }),
        against: 'raw-proxy',
        baseline: figures.firstTokenAdded('raw-proxy', 'tokens'),
      },
    ],
  },
  {
    name: 'token-cpu',
    title: 'CPU per 1,000 streamed tokens at that load',
    traffic: 'vendor',
    needs: need('tokens', ['portkey', 'switchyard']),
    compare: (figures) => [versus(figures, 'portkey', 'tokens', 'cpuPerThousand', { unit: 's', bar: 0.8, aim: 0.6 })],
  },
  {
    name: 'delivery',
    title: '1,000 streams × 10 tokens/s',
    needs: need('streams', ['direct', 'raw-proxy', 'switchyard']),
    compare: (figures) => [
      plain('delivered', '%', figures.least('switchyard', 'streams', 'deliveredPercent'), { bar: 100, aim: null, sense: 'at least' }),
      ...['lost', 'doubled', 'reordered', 'foreign'].map((what) => plain(what, '', figures.sum('switchyard', 'streams', what), { bar: 0, aim: null })),
      {
        ...plain('first token added p50', 'ms', figures.firstTokenAdded('switchyard', 'streams'), { bar: Number.POSITIVE_INFINITY, aim: 5 }),
        against: 'raw-proxy',
        baseline: figures.firstTokenAdded('raw-proxy', 'streams'),
      },
    ],
  },
  {
    name: 'leaving',
    title: '200 clients that leave mid-stream',
    needs: needStreams('leaving', ['switchyard']),
    compare: (figures) => [
      plain('aborts seen upstream', '%', figures.least('switchyard', 'leaving', 'seenPercent'), { bar: 100, aim: null, sense: 'at least' }),
      plain('p99', 'ms', figures.median('switchyard', 'leaving', 'p99Ms'), { bar: 50, aim: 25 }),
    ],
  },
  {
    name: 'stream-memory',
    title: 'memory of 1,000 open streams, all processes',
    needs: need('streams', ['raw-proxy', 'switchyard']),
    compare: (figures) => {
      const own = figures.median('switchyard', 'streams', 'memoryPerThousandMb');
      const theirs = figures.median('raw-proxy', 'streams', 'memoryPerThousandMb');
      return [
        plain('in total', 'MB', figures.median('switchyard', 'streams', 'memoryTotalMb'), { bar: 320, aim: 250 }),
        plain('growth', 'MB', own, { bar: 100, aim: null }),
        { ...plain('growth', 'MB', own, { bar: Number.POSITIVE_INFINITY, aim: 2 }), against: 'raw-proxy', baseline: theirs },
      ];
    },
  },
  {
    name: 'turn',
    title: 'durable turn (one 20 ms model call)',
    needs: [...need('turns16', ['dbos', 'switchyard']), ...need('turn1', ['dbos', 'switchyard'])],
    compare: (figures) => [
      versus(figures, 'dbos', 'turns16', 'cpuPerThousand', { what: 'CPU per 1,000 turns at 16 in flight', unit: 's', bar: 0.5, aim: 0.35 }),
      versus(figures, 'dbos', 'turns16', 'perSecond', { what: 'turns/s at 16 in flight', unit: '/s', bar: 2, aim: 3, sense: 'at least' }),
      versus(figures, 'dbos', 'turn1', 'cpuPerThousand', { what: 'CPU per 1,000 turns at 1', unit: 's', bar: 1, aim: 0.6 }),
      {
        ...plain('overhead p50 at 1', 'ms', minus(figures.median('switchyard', 'turn1', 'p50Ms'), TURN_DELAY_MS), { bar: 1, aim: 0.6 }),
        against: 'dbos',
        baseline: minus(figures.median('dbos', 'turn1', 'p50Ms'), TURN_DELAY_MS),
      },
    ],
  },
  {
    name: 'co-located-turn',
    title: 'durable turn, agent gateway and actor host in one process',
    needs: [...need('turns16', ['switchyard', 'co-located']), ...need('turn1', ['switchyard', 'co-located'])],
    compare: (figures) => [
      coLocatedTurn(figures, 'turns16', 'cpuPerThousand', 'CPU per 1,000 turns at 16 in flight', 's'),
      coLocatedTurn(figures, 'turn1', 'cpuPerThousand', 'CPU per 1,000 turns at 1', 's'),
      coLocatedTurn(figures, 'turn1', 'p50Ms', 'p50 at 1', 'ms'),
    ],
  },
  {
    name: 'tool-event',
    title: 'tool events at 16 in flight, against messages that begin no turn',
    needs: [...need('posts16', ['switchyard']), ...need('toolEvents16', ['switchyard'])],
    compare: (figures) => [
      againstPosts(figures, 'p50Ms', { what: 'p50', unit: 'ms', bar: Number.POSITIVE_INFINITY, aim: 1.2 }),
      againstPosts(figures, 'cpuPerThousand', { what: 'CPU per 1,000', unit: 's', bar: Number.POSITIVE_INFINITY, aim: 1.2 }),
    ],
  },
  {
    name: 'webhooks',
    title: 'deliveries of 4 KiB to a webhook at 16 in flight',
    needs: [...need('deliveries16', ['switchyard']), ...need('repeats16', ['switchyard'])],
    compare: (figures) => [
      plain('first', '/s', figures.median('switchyard', 'deliveries16', 'perSecond'), { bar: 0, aim: null, sense: 'at least' }),
      plain('CPU of the gateway, first', 'ms', figures.median('switchyard', 'deliveries16', 'gatewayMs'), { bar: Number.POSITIVE_INFINITY, aim: 1.5 }),
      plain('repeated', '/s', figures.median('switchyard', 'repeats16', 'perSecond'), { bar: 0, aim: null, sense: 'at least' }),
      plain('CPU of the gateway, repeated', 'ms', figures.median('switchyard', 'repeats16', 'gatewayMs'), { bar: Number.POSITIVE_INFINITY, aim: 0.4 }),
    ],
  },
  {
    name: 'idle-polls',
    isNotQuick: true,
    title: '10,000 idle long-polls on one gateway',
    needs: need('polls', ['switchyard']),
    compare: (figures) => [
      plain("the gateway's own queries in 30 s", '', figures.median('switchyard', 'polls', 'queries'), { bar: 2, aim: null }),
      plain('memory', 'MB', figures.median('switchyard', 'polls', 'memoryMb'), { bar: 400, aim: 300 }),
    ],
  },
  {
    name: 'event-webhooks',
    isNotQuick: true,
    title: `${EVENTS_PER_SECOND} events/s of 100 sessions to event webhooks, by one worker`,
    needs: need('events', ['switchyard']),
    compare: (figures) => [
      plain('posted per second', '/s', figures.least('switchyard', 'events', 'perSecond'), { bar: EVENTS_PER_SECOND * 0.98, aim: null, sense: 'at least' }),
      plain('lag p99', 'ms', figures.most('switchyard', 'events', 'lagP99Ms'), { bar: 1_000, aim: 100 }),
      plain('out of order', '', figures.sum('switchyard', 'events', 'unordered'), { bar: 0, aim: null }),
      plain('memory growth of the worker', 'MB', figures.median('switchyard', 'events', 'workerGrownMb'), { bar: 32, aim: null }),
    ],
  },
  ...burstRows,
  ...conversationRows,
  ...trafficRows,
  ...engineRows,
  ...billedRows,
];

/**
 * Switchyard's figure against that of a baseline.
 *
 * @param {Figures} figures
 * @param {string} against
 * @param {string} load
 * @param {string} figure
 * @param {{ what?: string, unit: string, bar: number, aim: number | null, sense?: Comparison['sense'] }} row
 * @returns {Comparison}
 */
function versus(figures, against, load, figure, { what = '', unit, ...limits }) {
  return { ...plain(what, unit, figures.median('switchyard', load, figure), limits), against, baseline: figures.median(against, load, figure) };
}

/**
 * One process of both roles against a process of each.
 *
 * @param {Figures} figures
 * @param {string} load
 * @param {string} figure
 * @param {string} what
 * @param {string} unit
 * @returns {Comparison}
 */
function coLocatedTurn(figures, load, figure, what, unit) {
  const baseline = figures.median('switchyard', load, figure);
  return { ...plain(what, unit, figures.median('co-located', load, figure), { bar: 1, aim: null }), against: 'switchyard', baseline };
}

/**
 * Tool events against plain posts of the same target.
 *
 * @param {Figures} figures
 * @param {string} figure
 * @param {{ what: string, unit: string, bar: number, aim: number | null }} row
 * @returns {Comparison}
 */
function againstPosts(figures, figure, { what, unit, ...limits }) {
  const value = figures.median('switchyard', 'toolEvents16', figure);
  return { ...plain(what, unit, value, limits), against: 'messages', baseline: figures.median('switchyard', 'posts16', figure) };
}
