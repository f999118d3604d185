import { setup } from 'xstate';
import type { RunError } from '#shared/contracts/agent/run-error.ts';
import { deadlineKeyOf } from '../../tool-loop/effect-ids.ts';
import { statusFact } from '../../tool-loop/status-fact.ts';
import { toolLoop } from '../../tool-loop/tool-loop.ts';
import type { LoopReply } from '../../tool-loop/types.ts';
import { cancelledError, capError, engineError, errorOf, sentenceOf, sessionError, timeoutError, withinTime } from './failures.ts';
import type { RunActions, RunContext, RunEvent, RunInput, RunReply } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const RUN_MACHINE_VERSION = 1;

const runSetup = setup({
  types: { input: {} as RunInput, context: {} as RunContext, events: {} as RunEvent },
  actions: {
    // Only named here; kind.ts executes them.
    started: (_, _params: RunActions['started']) => {},
    fact: (_, _params: RunActions['fact']) => {},
    stage: (_, _params: RunActions['stage']) => {},
    toolEvent: (_, _params: RunActions['toolEvent']) => {},
    effect: (_, _params: RunActions['effect']) => {},
    supersede: (_, _params: RunActions['supersede']) => {},
    timer: (_, _params: RunActions['timer']) => {},
    disarm: (_, _params: RunActions['disarm']) => {},
    settle: (_, _params: RunActions['settle']) => {},
  },
});

const failAs = (error: RunError) => runSetup.assign({ failure: error });

const loop = toolLoop<RunContext, RunEvent, RunReply, RunAction>({
  states: { asking: 'thinking', tooling: 'tooling', ended: 'succeeded', failed: 'failed' },
  actorIdOf: ({ runId }) => runId,
  loopOf: (context) => context,
  keep: (change) => change,
  modelsOf: ({ hasFallbackModel }) => (hasFallbackModel ? ['default', 'default', 'fallback'] : ['default', 'default']),
  callOf: ({ deadlineAtMs, stepCount, lists }, { id, model }) => ({
    kind: 'router-call',
    id,
    deadlineAtMs,
    stepCount,
    useFallbackModel: model === 'fallback',
    lists,
  }),
  meaningOf,
  noted: (reply) => (reply.type === 'invalid-output' ? { invalidOutput: reply.violation } : {}),
  onEnd: [
    { type: 'fact', params: statusFact('ready') },
    { type: 'disarm', params: deadlineKey },
    { type: 'settle', params: ({ event: { reply } }) => ({ state: 'succeeded', output: reply.type === 'output' ? reply.output : {} }) },
  ],
  spent: { target: 'failed', actions: [runSetup.assign({ failure: ({ context }) => capError(context) })] },
  failed: (context, failure) => ({ failure: errorOf(failure, context) }),
  interruptions: [
    {
      on: 'run.deadline',
      guard: ({ context, event }) => event.type === 'run.deadline' && event.actorId === context.runId,
      target: 'failed',
      actions: [runSetup.assign({ failure: ({ context }) => timeoutError(context.timeoutMs) })],
    },
    { on: 'run.poisoned', target: 'failed', actions: [failAs(engineError('a command of this run could not be applied'))] },
    { on: 'run.cancel', target: 'failed', actions: [failAs(cancelledError)] },
    { on: 'run.orphaned', target: 'failed', actions: [failAs(sessionError('the session of this run was deleted'))] },
  ],
  windUp: {
    on: 'run.cancel',
    state: 'windingUp',
    keeps: (event) => (event.type === 'run.cancel' ? event.claimed : []),
    actions: [failAs(cancelledError)],
  },
  joins: [],
});

/**
 * One run of an autonomous routine:
 *
 *   starting ──▶ the tool loop (actors/tool-loop): listing, thinking, tooling ──emit_output with a valid value──▶ succeeded
 *       │                                                    │
 *       └──refused──▶ failed ◀── a failure of the loop, its last iteration, run.deadline | run.cancel | run.poisoned | run.orphaned
 *
 * Text, an invalid output and refused tools are staged with what is wrong, and the model is asked again. Every transition to a final state supersedes
 * open effects, disarms their timers, appends exactly one `ready`, and settles once. Pure: no clock, no I/O. The runtime calls `transition()` and
 * stores what the returned actions name in one commit.
 */
export const runMachine = runSetup.createMachine({
  id: 'run',
  context: ({ input }) => contextOf(input),
  initial: 'starting',
  states: {
    starting: {
      entry: [
        { type: 'started', params: {} },
        { type: 'fact', params: statusFact('acknowledged') },
      ],
      always: [
        { guard: ({ context }) => context.failure !== null, target: 'failed' },
        { guard: ({ context }) => context.servers.length > 0, target: 'listing', actions: begin() },
        { target: 'thinking', actions: [...begin(), runSetup.assign({ iteration: 1 })] },
      ],
    },
    listing: loop.listing,
    thinking: loop.asking,
    tooling: loop.tooling,
    windingUp: loop.windingUp,
    succeeded: { type: 'final' },
    failed: {
      type: 'final',
      entry: [
        runSetup.assign({ failure: ({ context, event }) => settledFailure(context, event) }),
        { type: 'fact', params: ({ context }) => statusFact('error', { detail: sentenceOf(failureOf(context)) }) },
        { type: 'fact', params: statusFact('ready') },
        { type: 'disarm', params: deadlineKey },
        { type: 'settle', params: ({ context }) => ({ state: 'failed', error: failureOf(context) }) },
      ],
    },
  },
});

type RunAction = { [Type in keyof RunActions]: { type: Type; params: RunActions[Type] } }[keyof RunActions];

function contextOf(input: RunInput): RunContext {
  const { runId, atMs, deadlineAtMs, timeoutMs, maxIterations, servers, hasFallbackModel, refusal } = input;
  return {
    runId,
    startedAtMs: atMs,
    deadlineAtMs,
    timeoutMs,
    maxIterations,
    hasFallbackModel,
    servers,
    iteration: 0,
    unusable: 0,
    effectNo: 0,
    stepCount: 0,
    lists: {},
    unavailable: {},
    pending: [],
    batch: [],
    invalidOutput: null,
    failure: refusal ?? (deadlineAtMs <= atMs ? timeoutError(timeoutMs) : null),
  };
}

function begin() {
  return [
    { type: 'fact' as const, params: statusFact('processing', { stage: 'thinking' }) },
    {
      type: 'timer' as const,
      params: ({ context }: { context: RunContext }): RunActions['timer'] => ({
        key: deadlineKeyOf(context.runId),
        atMs: context.deadlineAtMs,
        command: 'run.deadline',
      }),
    },
  ];
}

/** Only `emit_output` with a valid value ends a run. */
function meaningOf(reply: RunReply): LoopReply {
  switch (reply.type) {
    case 'output':
      return { type: 'end' };
    case 'invalid-output':
    case 'text':
      return { type: 'again', messages: reply.messages };
    case 'tools':
    case 'unusable':
      return reply;
  }
}

function deadlineKey({ context }: { context: RunContext }): RunActions['disarm'] {
  return { key: deadlineKeyOf(context.runId) };
}

function failureOf({ failure }: RunContext): RunError {
  return failure ?? engineError('the run failed');
}

/** @param event what ended the run; XState's init event, without `atMs`, at its start */
function settledFailure(context: RunContext, event: RunEvent): RunError {
  return withinTime(failureOf(context), context, 'atMs' in event ? event.atMs : context.startedAtMs);
}
