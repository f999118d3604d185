import type { Kind } from './edge-stores-traffic.ts';

export type StoreName = 'postgres' | 'nats' | 'redis';

/** The answers to one kind of request while a store is away. */
interface Row {
  /** As {@link Kind}; `on its way` is what was begun before the loss of the store was noticed, in a row of its own. */
  asked: Kind | 'command on its way' | 'router call on its way' | 'router stream on its way' | 'event stream on its way';
  /** Alternatives: each is a status and the words of its body. */
  answered: readonly string[];
  /** Upper bound, on a busy machine. */
  withinMs: number;
}

interface StoreAway {
  name: string;
  /** The status of the readiness probes of the two gateways meanwhile. */
  ready: { 'router-gateway': 200 | 503; 'agent-gateway': 200 | 503 };
  rows: readonly Row[];
  afterwards: string;
}

/** Refused, with a Retry-After. */
const NOT_READY = ['503 not_ready'];
/** Nothing is waited for: the seconds allow for a busy machine. */
const AT_ONCE_MS = 4_000;
/** A second or so; the rest allows for a busy machine. */
const SOON_MS = 8_000;
/** The 10 s after which a command is answered in any case, and the 500 ms of its last read. */
const ANSWER_MS = 16_000;

/** The agent's requests, all refused. */
const agentRefuses: readonly Row[] = (
  ['post a message', 'create a session', 'change a session', 'trigger a run', 'read a run', 'read a session', 'long-poll', 'open an event stream'] as const
).map((asked) => ({ asked, answered: NOT_READY, withinMs: AT_ONCE_MS }));

/** The agent's requests, as without a fault. */
const agentAnswers: readonly Row[] = [
  { asked: 'post a message', answered: ['201', '202'], withinMs: ANSWER_MS },
  { asked: 'create a session', answered: ['201'], withinMs: SOON_MS },
  { asked: 'change a session', answered: ['200'], withinMs: SOON_MS },
  { asked: 'trigger a run', answered: ['202'], withinMs: SOON_MS },
  { asked: 'read a run', answered: ['200'], withinMs: SOON_MS },
  { asked: 'read a session', answered: ['200'], withinMs: SOON_MS },
  { asked: 'long-poll', answered: ['504 timeout'], withinMs: SOON_MS },
  { asked: 'open an event stream', answered: ['200'], withinMs: SOON_MS },
];

const routerAnswers: readonly Row[] = [
  { asked: 'router call', answered: ['200'], withinMs: SOON_MS },
  { asked: 'router stream', answered: ['200 then done'], withinMs: ANSWER_MS },
  { asked: 'list the models', answered: ['200'], withinMs: AT_ONCE_MS },
];
const limitedCall: Row = { asked: 'call with a credit limit', answered: ['200'], withinMs: SOON_MS };
const callingKey: Row = { asked: 'read the calling key', answered: ['200'], withinMs: AT_ONCE_MS };
const wrongKey: Row = { asked: 'wrong key', answered: ['401 authentication'], withinMs: AT_ONCE_MS };

const nothingBreaks: readonly Row[] = [
  { asked: 'router call on its way', answered: ['200'], withinMs: 60_000 },
  { asked: 'router stream on its way', answered: ['200 then done'], withinMs: 60_000 },
];

/** The source of the table in docs/guarantees.md, asserted by edge-stores.test.ts. */
export const storesAway: Record<StoreName, StoreAway> = {
  postgres: {
    name: 'PostgreSQL',
    ready: { 'router-gateway': 200, 'agent-gateway': 503 },
    rows: [
      ...agentRefuses,
      ...routerAnswers,
      { ...limitedCall, answered: ['503 server'] },
      { ...callingKey, answered: ['503 server'] },
      // It may have been made while the database could not be reached.
      { asked: 'wrong key', answered: ['503 server'], withinMs: AT_ONCE_MS },
      { asked: 'command on its way', answered: ['200', '201', '202', '503 not_ready'], withinMs: ANSWER_MS },
      ...nothingBreaks,
      { asked: 'event stream on its way', answered: ['goes on'], withinMs: 60_000 },
    ],
    afterwards: 'A command that was stored in the broker is applied, also where its client received 503: a repeat with the same key finds its answer.',
  },
  nats: {
    name: 'NATS',
    ready: { 'router-gateway': 503, 'agent-gateway': 503 },
    rows: [
      ...agentRefuses,
      { asked: 'router call', answered: ['503 server'], withinMs: AT_ONCE_MS },
      { asked: 'router stream', answered: ['503 server'], withinMs: AT_ONCE_MS },
      { ...limitedCall, answered: ['503 server'], withinMs: AT_ONCE_MS },
      { asked: 'list the models', answered: ['200'], withinMs: AT_ONCE_MS },
      callingKey,
      wrongKey,
      { asked: 'command on its way', answered: ['200', '201', '202', '503 not_ready'], withinMs: ANSWER_MS },
      { asked: 'router call on its way', answered: ['200', '503 server', '502 provider_unavailable'], withinMs: 60_000 },
      { asked: 'router stream on its way', answered: ['200 then error 502'], withinMs: 60_000 },
      { asked: 'event stream on its way', answered: ['goes on'], withinMs: 60_000 },
    ],
    afterwards: 'A command of which it is unknown whether the broker stored it is applied once or not at all: a repeat with the same key settles it.',
  },
  redis: {
    name: 'Redis',
    ready: { 'router-gateway': 200, 'agent-gateway': 200 },
    rows: [
      ...agentAnswers,
      ...routerAnswers,
      limitedCall,
      callingKey,
      wrongKey,
      { asked: 'command on its way', answered: ['200', '201', '202'], withinMs: ANSWER_MS },
      ...nothingBreaks,
      { asked: 'event stream on its way', answered: ['goes on'], withinMs: 60_000 },
    ],
    afterwards: 'Nothing was missed. `X-Polling-Backoff` begins anew.',
  },
};

/** The table as it stands in docs/guarantees.md. */
export function tableOfStoresAway(): string {
  const lines = Object.values(storesAway).flatMap(({ name, rows }) =>
    rows.map(({ asked, answered, withinMs }) => {
      const words = answered.map((one) => `\`${one}\``).join(' or ');
      const again = answered.includes('503 not_ready') || answered.includes('503 server') ? ', with `Retry-After: 1`' : '';
      return `| ${name} | ${asked} | ${words}${again} | ${withinMs / 1_000} s |`;
    }),
  );
  return ['| Away | Asked | Answered meanwhile | Within |', '|---|---|---|---|', ...lines].join('\n');
}
