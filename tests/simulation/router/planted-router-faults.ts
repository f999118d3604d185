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
    caughtAt: 32,
    rule: 'one row',
    patch: {
      file: 'services/router-worker/usage-recorder.ts',
      find: 'await unlessEnded(usage.append(generationId, body), end);',
      replace: 'usage.append(generationId, body).catch(() => {});',
    },
  },
  {
    name: 'a record lost: a batch counts as written although its transaction failed',
    caughtAt: 34,
    rule: 'one row',
    patch: {
      file: 'services/router-worker/ledger/ledger.ts',
      find: "if (!UNUSABLE_VALUE.test(sqlStateOf(error) ?? '')) throw error;",
      replace: "if (!UNUSABLE_VALUE.test(sqlStateOf(error) ?? '')) return;",
    },
  },
  { name: 'a record twice: no check of the generation id', caughtAt: 8, rule: 'one row', options: { ledger: { ...ALL_RULES, dedupes: false } } },
  {
    name: 'a redelivered record counted again in what its key has spent',
    caughtAt: 8,
    rule: 'sum',
    options: { ledger: { ...ALL_RULES, countsInserted: false } },
  },
  { name: 'a reservation that stays behind its record', caughtAt: 8, rule: 'limit', options: { ledger: { ...ALL_RULES, settles: false } } },
  { name: 'a reservation that lapses before its end', caughtAt: 8, rule: 'lapse', options: { ledger: { ...ALL_RULES, waitsForEnd: false } } },
  {
    name: 'a reservation that lapses while its record waits in the log',
    caughtAt: 487,
    rule: 'lapse',
    patch: {
      file: 'services/router-worker/ledger/lapse-reservations.ts',
      find: 'oldestAtMs === null ? nowMs : Math.min(nowMs, oldestAtMs)',
      replace: 'oldestAtMs === null ? nowMs : nowMs',
    },
  },
  { name: 'an interim record of a dead call that is not found', caughtAt: 458, rule: 'one row', options: { ledger: { ...ALL_RULES, findsOverdue: false } } },
  {
    name: 'two deliveries with one number taken for one: attempts have no tag',
    caughtAt: 583,
    rule: 'text',
    patch: { file: 'bus/messages/attempt-number.ts', find: 'return delivery * TAGS + (tag % TAGS);', replace: 'return delivery + 0 * tag;' },
  },
  {
    name: 'two deliveries with one number taken for one: frames have the number of the delivery',
    caughtAt: 583,
    rule: 'text',
    patch: { file: 'services/router-worker/call-items.ts', find: 'attempt: running.attempt,', replace: 'attempt: running.delivery,' },
  },
  {
    name: 'a terminal frame that does not wait for the record',
    caughtAt: 1,
    rule: 'record first',
    patch: { file: 'services/router-worker/call-record.ts', find: 'return isReserved ? this.#stored : null;', replace: 'return null;' },
  },
  {
    name: 'a call that is sent before its credit is reserved',
    caughtAt: 8,
    rule: 'limit',
    patch: {
      file: 'services/router-gateway/key-admission.ts',
      find: 'await reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs });',
      replace: 'reservations.reserve({ callId, keyId, amountNano, limitNano, limitReset, deadlineAtMs }).catch(() => {});',
    },
  },
  {
    name: 'a call that is not queued when its worker is lost behind content',
    caughtAt: 87,
    rule: 'one row',
    patch: {
      file: 'services/router-gateway/call-sender.ts',
      find: 'settle: () => this.#queueDispatched(callId, dispatched, 1),',
      replace: 'settle: () => {},',
    },
  },
  {
    name: 'requests of a minute that are read before they are counted',
    caughtAt: 87,
    rule: 'rate',
    patch: {
      file: 'shared/rates/rate-limits.ts',
      find: 'requestsPerMinute === null ? 0 : cache.increment(requestCounter, 1, RATE_COUNTER_MS),',
      replace:
        'requestsPerMinute === null ? 0 : cache.get(requestCounter).then((sum) => (cache.increment(requestCounter, 1, RATE_COUNTER_MS).catch(() => {}), Number(sum ?? 0) + 1)),',
    },
  },
  {
    name: 'tokens of a minute that are counted by a process alone',
    caughtAt: 8,
    rule: 'rate',
    patch: {
      file: 'shared/rates/rate-limits.ts',
      find: 'tokensPerMinute === null ? 0 : cache.increment(tokenCounter, tokens, RATE_COUNTER_MS),',
      replace: 'tokensPerMinute === null ? 0 : this.#local.add(keyId, nowMs, { requests: 0, tokens, calls: 0 }).tokens,',
    },
  },
  {
    name: 'a stream that is resumed behind its next event',
    caughtAt: 22,
    rule: 'text',
    patch: {
      file: 'services/router-gateway/routes/resume-generation.ts',
      find: 'seq: Number(seq), events',
      replace: 'seq: Number(seq) + 1, events',
    },
  },
  {
    name: 'an interim record that is given up when the record of its call is in the log',
    caughtAt: 143,
    rule: 'one row',
    patch: {
      file: 'services/router-worker/interim/interim-records.ts',
      find: 'if (this.#followed.size === 0) this.stop();',
      replace:
        "const ended = followed.hasContent ? recordOf() : null;\n      if (ended !== null) this.#deps.database.query(WRITE_INTERIM, [[ended.generationId], '{}', VALID_MS]).catch(() => {});\n      if (this.#followed.size === 0) this.stop();",
    },
  },
  {
    name: 'a publish that is repeated under another message id',
    caughtAt: 8,
    rule: 'message id',
    patch: {
      file: 'bus/nats/connection/stored-publish.ts',
      find: 'const message = { subject, messageId, bytes,',
      replace:
        'const sent = bytes as Uint8Array & { tries?: number };\n        sent.tries = (sent.tries ?? 0) + 1;\n        const message = { subject, messageId: sent.tries === 1 ? messageId : `${messageId}-${sent.tries}`, bytes,',
    },
  },
  {
    name: 'a publish that counts as stored when a broker without a leader refuses it',
    caughtAt: 32,
    rule: 'stored',
    patch: {
      file: 'bus/nats/connection/store-message.ts',
      find: 'if (error !== undefined) throw new JetStreamApiError(error);',
      replace: 'if (error !== undefined) return { sequence: 0, duplicate: error instanceof JetStreamApiError };',
    },
  },
  {
    name: 'a publish that counts as stored when its leader answers without a sequence',
    caughtAt: 38,
    rule: 'stored',
    patch: {
      file: 'bus/nats/connection/store-message.ts',
      find: 'if (error?.err_code === IN_PROCESS || (duplicate && seq === 0)) throw new InProcessError();',
      replace: 'if (error?.err_code === IN_PROCESS) throw new InProcessError();',
    },
  },
  {
    name: 'a publish that is repeated under another message id as soon as its leader has it in process',
    caughtAt: 264,
    rule: 'doubled',
    patch: {
      file: 'bus/nats/connection/stored-publish.ts',
      find: 'if (askedAt - inProcessSince >= LOST_AFTER_MS) {',
      replace: 'if (inProcessSince !== null) {',
    },
  },
  {
    name: 'a call that counts as not sent when the reply to its publish is late',
    caughtAt: 8,
    rule: 'released',
    patch: {
      file: 'services/router-gateway/call-sender.ts',
      find: "await within(limits.publishMs, bus.work.publish('router.call', callId, body.toString(), earlierDeliveries), late);",
      // Sooner than in production, where a reply is seldom late: as a refusal of the bus.
      replace:
        "await within(20, bus.work.publish('router.call', callId, body.toString(), earlierDeliveries), () => { throw new SwitchyardError('bus.full', 'late'); });",
    },
  },
  {
    name: 'a call whose file is read, and is sent without its text',
    caughtAt: 2,
    rule: 'file',
    patch: {
      file: 'services/router-worker/pipeline/file-parser.ts',
      find: 'request: withItems(staged.request, placed),',
      replace: 'request: staged.request,',
    },
  },
];
