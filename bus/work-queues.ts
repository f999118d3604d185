import type { WorkKind } from './bus.ts';
import type { BusRole } from './subjects.ts';

interface WorkQueueRow {
  /** Its items' subject. */
  pattern: string;
  /** Name of its durable consumer, which all workers of the kind share. */
  consumer: string;
  publish: readonly BusRole[];
  read: readonly BusRole[];
  /** Gateways that admit requests by its queueing delay. */
  admits: readonly BusRole[];
}

/** Every kind of work: streams, consumers, permissions and queue depths derive from these rows. */
export const workQueues = {
  /** Model calls of turns and runs. */
  'router.turn': {
    pattern: 'work.router.turn',
    consumer: 'router-turn',
    publish: ['actor-host', 'router-worker'],
    read: ['router-worker'],
    admits: ['agent-gateway'],
  },
  /** Model calls of the router's clients, of agent gateways for webhooks, and of actor hosts that evaluate documents. */
  'router.call': {
    pattern: 'work.router.call',
    consumer: 'router-call',
    publish: ['router-gateway', 'agent-gateway', 'router-worker', 'actor-host'],
    read: ['router-worker'],
    admits: ['router-gateway', 'agent-gateway'],
  },
  /** Calls and lists of the agent's tool servers. */
  tool: { pattern: 'work.tool', consumer: 'tool', publish: ['actor-host'], read: ['effect-worker'], admits: [] },
  /** Callbacks of settled runs. */
  delivery: { pattern: 'work.delivery', consumer: 'delivery', publish: ['actor-host', 'operator'], read: ['effect-worker'], admits: [] },
} as const satisfies Record<WorkKind, WorkQueueRow>;

/** A number for each kind. */
export function perWorkKind(numberOf: (kind: WorkKind) => number): Record<WorkKind, number> {
  return Object.fromEntries(Object.keys(workQueues).map((kind) => [kind, numberOf(kind as WorkKind)])) as Record<WorkKind, number>;
}
