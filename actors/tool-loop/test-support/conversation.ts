import { setup } from 'xstate';
import { type Asker, asking } from '../asking.ts';
import { statusFact } from '../status-fact.ts';
import { toolLoop } from '../tool-loop.ts';
import type { LoopActions, LoopContext, LoopFailure, LoopReply, LoopResult } from '../types.ts';

interface ConversationInput {
  maxIterations: number;
  servers: readonly string[];
}

interface Context extends LoopContext {
  failure: LoopFailure | null;
}

type Event = (LoopResult<LoopReply> | { type: 'joined' } | { type: 'cancelled' } | { type: 'expired' }) & { atMs: number };

interface Actions extends Omit<LoopActions, 'effect'> {
  effect: LoopActions['effect'] | { kind: 'router-call'; id: string; mayCallTools: boolean };
}

type Action = { [Type in keyof Actions]: { type: Type; params: Actions[Type] } }[keyof Actions];

const conversationSetup = setup({
  types: { input: {} as ConversationInput, context: {} as Context, events: {} as Event },
  actions: {
    fact: (_, _params: Actions['fact']) => {},
    stage: (_, _params: Actions['stage']) => {},
    toolEvent: (_, _params: Actions['toolEvent']) => {},
    effect: (_, _params: Actions['effect']) => {},
    supersede: (_, _params: Actions['supersede']) => {},
    timer: (_, _params: Actions['timer']) => {},
    disarm: (_, _params: Actions['disarm']) => {},
  },
});

const common = {
  actorIdOf: () => 'con_1',
  loopOf: (context) => context,
  keep: (change) => change,
  modelsOf: () => ['default', 'fallback'],
  onEnd: [],
  failed: (_, failure) => ({ failure }),
  interruptions: [
    { on: 'cancelled', target: 'cancelled', actions: [] },
    { on: 'expired', target: 'failed', actions: [] },
  ],
  joins: ['joined'],
} as const satisfies Partial<Asker<Context, Event, LoopReply, Action>>;

const loop = toolLoop<Context, Event, LoopReply, Action>({
  ...common,
  meaningOf: (reply) => reply,
  states: { asking: 'asking', tooling: 'tooling', ended: 'answered', failed: 'failed' },
  callOf: (_, { id }) => ({ kind: 'router-call', id, mayCallTools: true }),
  noted: () => ({}),
  spent: { target: 'closing', actions: [] },
});

/** The model is asked once more, without tools. */
const closing = asking<Context, Event, LoopReply, Action>({
  ...common,
  meaningOf: (reply) => (reply.type === 'end' ? reply : { type: 'unusable', finishReason: 'stop' }),
  states: { asking: 'closing', ended: 'answered', failed: 'failed' },
  callOf: (_, { id }) => ({ kind: 'router-call', id, mayCallTools: false }),
});

const ready = { type: 'fact' as const, params: statusFact('ready') };

/** Uses the loop unlike a run: at its limit it replies all the same, messages join it, and it can be cancelled. */
export const conversation = conversationSetup.createMachine({
  id: 'conversation',
  context: ({ input: { maxIterations, servers } }) => ({
    ...{ startedAtMs: 1_000, deadlineAtMs: 121_000, maxIterations, servers, iteration: 0, unusable: 0, effectNo: 0, stepCount: 0 },
    ...{ lists: {}, unavailable: {}, pending: [], batch: [], failure: null },
  }),
  initial: 'starting',
  states: {
    starting: {
      always: [
        { guard: ({ context }) => context.servers.length > 0, target: 'listing' },
        { target: 'asking', actions: conversationSetup.assign({ iteration: 1 }) },
      ],
    },
    listing: loop.listing,
    asking: loop.asking,
    tooling: loop.tooling,
    closing,
    answered: { type: 'final', entry: ready },
    cancelled: { type: 'final', entry: ready },
    failed: { type: 'final', entry: ready },
  },
});
