import { minus, plain } from './comparison.mjs';
import { STEADY_PER_SECOND } from './settings.mjs';

/** @typedef {import('./rows.mjs').Figures} Figures */
/** @typedef {import('./rows.mjs').Comparison} Comparison */

const NO_BAR = { bar: Number.POSITIVE_INFINITY, aim: null };
/** The generator misses some of its times on a busy machine. */
const REACHED = 0.98;
/** What a gateway holds for a reader at most, 256 KiB, for 1,000 of them, and their sockets and calls. */
const SLOW_READERS_MB = 350;

/** @param {string} load @param {string[]} targets */
function need(load, targets) {
  return targets.map((target) => ({ target, load }));
}

/** A figure of the billed setting against that of the plain one. @param {Figures} figures @param {string} load @param {string} figure @param {{ unit: string, bar: number, aim: number | null }} row @returns {Comparison} */
function againstPlain(figures, load, figure, { unit, ...limits }) {
  return { ...plain('', unit, figures.median('billed', load, figure), limits), against: 'switchyard', baseline: figures.median('switchyard', load, figure) };
}

/** What a key with a limit and rate limits, prices, the ledger and traces cost. @type {readonly import('./rows.mjs').Row[]} */
export const billedRows = [
  {
    name: 'billed-cpu',
    title: 'billed: CPU per 1,000 non-stream requests at 64 in flight',
    needs: need('whole64', ['switchyard', 'billed']),
    compare: (figures) => [againstPlain(figures, 'whole64', 'cpuPerThousand', { unit: 's', bar: 1.6, aim: 1.3 })],
  },
  {
    name: 'billed-latency',
    title: 'billed: p50 at 1 in flight',
    // Processes that have had no load of many are measured while they compile.
    needs: ['whole64', 'whole1'].flatMap((load) => need(load, ['switchyard', 'billed'])),
    compare: (figures) => {
      const [own, theirs] = ['billed', 'switchyard'].map((target) => figures.median(target, 'whole1', 'p50Ms'));
      return [plain('beyond plain', 'ms', minus(own ?? null, theirs ?? null), { bar: 3, aim: null })];
    },
  },
  {
    name: 'billed-token-cpu',
    title: 'billed: CPU per 1,000 streamed tokens',
    needs: need('tokens', ['switchyard', 'billed']),
    compare: (figures) => [againstPlain(figures, 'tokens', 'cpuPerThousand', { unit: 's', bar: 1.1, aim: null })],
  },
  {
    name: 'ledger-lag',
    title: `billed: ${STEADY_PER_SECOND} requests/s`,
    needs: need('steady', ['billed']),
    compare: (figures) => [
      plain('answered', '/s', figures.least('billed', 'steady', 'perSecond'), { bar: STEADY_PER_SECOND * REACHED, aim: null, sense: 'at least' }),
      plain('ledger behind, most', 's', figures.most('billed', 'steady', 'lagMostSeconds'), { bar: 5, aim: null }),
    ],
  },
  {
    name: 'admission',
    title: 'reservations alone, with the database',
    needs: [...need('admission64', ['billed']), ...need('admission1', ['billed'])],
    compare: (figures) => [
      plain('CPU of the gateway per call at 64', 'µs', figures.median('billed', 'admission64', 'ownMicros'), NO_BAR),
      plain('CPU of the database per call at 64', 'µs', figures.median('billed', 'admission64', 'databaseMicros'), NO_BAR),
      plain('p50 at 64', 'ms', figures.median('billed', 'admission64', 'p50Ms'), NO_BAR),
      plain('p50 at 1', 'ms', figures.median('billed', 'admission1', 'p50Ms'), NO_BAR),
    ],
  },
  {
    name: 'slow-readers',
    title: '1,000 streams whose clients do not read',
    needs: need('slowReaders', ['billed']),
    compare: (figures) => [
      plain("the gateway's growth", 'MB', figures.most('billed', 'slowReaders', 'gatewayPerThousandMb'), { bar: SLOW_READERS_MB, aim: null }),
      plain('growth of all processes', 'MB', figures.most('billed', 'slowReaders', 'memoryPerThousandMb'), NO_BAR),
    ],
  },
];
