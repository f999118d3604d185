import type { Patch } from '../planted-faults.ts';
import { ALL_RULES } from './ledger-tables.ts';
import type { RouterSimulationOptions } from './router-simulation.ts';

interface PlantedRouterFault {
  name: string;
  /** A seed at which it was detected last. A change of the product may move it. */
  caughtAt: number;
  /** The rule that detects it. */
  rule: string;
  /** Where the fault is injected: in the model of the ledger's statements, or in a copy of a source file. */
  options?: Omit<RouterSimulationOptions, 'seed'>;
  patch?: Patch;
}

/** Faults in how calls are billed, each injected by itself. */
export const plantedRouterFaults: readonly PlantedRouterFault[] = [
  {
    name: 'a record lost: its append is not awaited',
    caughtAt: 4,
    rule: 'one row',
    patch: {
      file: 'services/router-worker/usage-recorder.ts',
      find: 'await unlessEnded(usage.append(generationId, body), end);',
      replace: 'usage.append(generationId, body).catch(() => {});',
    },
  },
  {
    name: 'a record lost: a batch counts as written although its transaction failed',
    caughtAt: 18,
    rule: 'one row',
    patch: {
      file: 'services/router-worker/ledger/ledger.ts',
      find: "if (!UNUSABLE_VALUE.test(sqlStateOf(error) ?? '')) throw error;",
      replace: "if (!UNUSABLE_VALUE.test(sqlStateOf(error) ?? '')) return;",
    },
  },
  { name: 'a record twice: no check of the generation id', caughtAt: 3, rule: 'one row', options: { ledger: { ...ALL_RULES, dedupes: false } } },
  {
    name: 'a redelivered record counted again in what its key has spent',
    caughtAt: 7,
    rule: 'sum',
    options: { ledger: { ...ALL_RULES, countsInserted: false } },
  },
  { name: 'a reservation that stays behind its record', caughtAt: 8, rule: 'limit', options: { ledger: { ...ALL_RULES, settles: false } } },
  { name: 'a reservation that lapses before its end', caughtAt: 4, rule: 'lapse', options: { ledger: { ...ALL_RULES, waitsForEnd: false } } },
  {
    name: 'a reservation that lapses while its record waits in the log',
    caughtAt: 213,
    rule: 'lapse',
    patch: {
      file: 'services/router-worker/ledger/lapse-reservations.ts',
      find: 'oldestAtMs === null ? nowMs : Math.min(nowMs, oldestAtMs)',
      replace: 'oldestAtMs === null ? nowMs : nowMs',
    },
  },
  { name: 'an interim record of a dead call that is not found', caughtAt: 126, rule: 'one row', options: { ledger: { ...ALL_RULES, findsOverdue: false } } },
  {
    name: 'a terminal frame that does not wait for the record',
    caughtAt: 65,
    rule: 'record first',
    patch: { file: 'services/router-worker/call-record.ts', find: 'return isReserved ? this.#stored : null;', replace: 'return null;' },
  },
  {
    name: 'a call that is sent before its credit is reserved',
    caughtAt: 1,
    rule: 'limit',
    patch: {
      file: 'services/router-gateway/key-admission.ts',
      find: 'await reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs });',
      replace: 'reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs }).catch(() => {});',
    },
  },
  {
    name: 'a call that is not queued when its worker is lost behind content',
    caughtAt: 54,
    rule: 'one row',
    patch: {
      file: 'services/router-gateway/call-sender.ts',
      find: 'settle: () => this.#queueDispatched(callId, dispatched, 1),',
      replace: 'settle: () => {},',
    },
  },
  {
    name: 'a call whose file is read, and is sent without its text',
    caughtAt: 1,
    rule: 'file',
    patch: {
      file: 'services/router-worker/pipeline/file-parser.ts',
      find: 'request: withItems(staged.request, placed),',
      replace: 'request: staged.request,',
    },
  },
];
