import { describe, expect, it } from 'vitest';
import { initialTransition, transition } from 'xstate';
import { effectLease } from '#bus/renew-lease.ts';
import type { RunError } from '#shared/contracts/agent/run-error.ts';
import type { StepMessage, ToolOutcome } from '../../tool-loop/types.ts';
import { runMachine } from './machine.ts';
import type { RunActions, RunEventBody, RunInput, RunReply } from './types.ts';

const DEADLINE_AT_MS = 121_000;
const VIOLATION = { path: '/verdict', schemaPath: '#/required', keyword: 'required', message: "must have required property 'verdict'" };

const INPUT: RunInput = {
  runId: 'run_1',
  atMs: 1_000,
  deadlineAtMs: DEADLINE_AT_MS,
  timeoutMs: 120_000,
  maxIterations: 3,
  servers: [],
  hasFallbackModel: false,
  refusal: null,
};

describe('the run machine', () => {
  describe('when it begins', () => {
    it('fails at once with the violation of its input, and requests nothing', () => {
      const refusal: RunError = { code: 'input_validation_failed', message: 'the input must be string', details: { path: '/a' } };

      const [next, actions] = started({ refusal, servers: ['crm'] });

      expect(next.status).toBe('done');
      expect(linesOf(actions)).toEqual([
        'started',
        'acknowledged',
        'error(input_validation_failed: the input must be string)',
        'ready',
        'disarm run_1-deadline',
        'settle input_validation_failed {"path":"/a"}',
      ]);
    });

    it('fails at once when its time is over before it begins', () => {
      expect(linesOf(started({ deadlineAtMs: 1_000 })[1]).at(-1)).toBe('settle timeout {"timeout_seconds":120}');
    });

    it('arms its deadline and calls the model when it has no tools', () => {
      const [next, actions] = started();

      expect(next.value).toBe('thinking');
      expect(linesOf(actions)).toEqual([
        'started',
        'acknowledged',
        'processing/thinking',
        `timer run_1-deadline ${DEADLINE_AT_MS}`,
        'router-call run_1-1 steps 0',
      ]);
    });

    it('waits for its tool lists longer than the redelivery after two dead workers takes', () => {
      const deadline = linesOf(started({ servers: ['crm'] })[1])
        .find((line) => line.startsWith('tool-list'))
        ?.match(/\d+$/)?.[0];

      expect(Number(deadline) - INPUT.atMs).toBeGreaterThan(2 * effectLease.ackWaitMs + 10_000);
    });

    it('requests the tool lists of its servers first', () => {
      const [next, actions] = started({ servers: ['crm', 'erp'] });

      expect(next.value).toBe('listing');
      expect(linesOf(actions).slice(4)).toEqual(['tool-list run_1-1 crm,erp until 46000', 'timer run_1-1-overdue 51000']);
    });
  });

  describe('while tools are listed', () => {
    const listing = { servers: ['crm', 'erp'] };

    it.each<[string, Record<string, string>, Record<string, 'unreachable' | 'auth_failed'>, string]>([
      ['is unreachable', { crm: 'h1' }, { erp: 'unreachable' }, '{"tool_id":"erp:*","reason":"unreachable"}'],
      ['refuses the key', {}, { erp: 'auth_failed', crm: 'auth_failed' }, '{"tool_id":"crm:*","reason":"auth_failed"}'],
      ['was forgotten', { erp: 'h2' }, {}, '{"tool_id":"crm:*","reason":"unreachable"}'],
    ])('fails when a server %s, whatever the others have', (_what, lists, unavailable, details) => {
      const [next, actions] = afterEvents(listing, { type: 'tools.listed', callId: 'run_1-1', lists, unavailable, timedOut: false });

      expect(next.value).toBe('failed');
      expect(linesOf(actions)[0]).toBe('disarm run_1-1-overdue');
      expect(linesOf(actions).at(-1)).toBe(`settle tool_error ${details}`);
    });

    it('rule 134: fails when a tool that it needs is in no list, by the name of the tool', () => {
      const [next, actions] = afterEvents(listing, {
        ...{ type: 'tools.listed', callId: 'run_1-1', lists: { crm: 'h1', erp: 'h2' }, unavailable: {}, timedOut: false },
        missingTool: 'crm:pay',
      });

      expect(next.value).toBe('failed');
      expect(linesOf(actions)[0]).toBe('disarm run_1-1-overdue');
      expect(linesOf(actions).at(-1)).toBe('settle tool_error {"tool_id":"crm:pay","reason":"missing"}');
    });

    it('fixes the lists for the whole run and calls the model', () => {
      const [next, actions] = afterEvents(listing, listed({ crm: 'h1', erp: 'h2' }));

      expect(next.context).toMatchObject({ lists: { crm: 'h1', erp: 'h2' }, iteration: 1 });
      expect(linesOf(actions)).toEqual(['disarm run_1-1-overdue', 'router-call run_1-2 steps 0 crm=h1,erp=h2']);
    });

    it('supersedes the tool list when its time is over', () => {
      const [, actions] = afterEvents(listing, { type: 'run.deadline', actorId: 'run_1' });

      expect(linesOf(actions).slice(0, 2)).toEqual(['supersede run_1-1', 'disarm run_1-1-overdue']);
    });

    it.each<TimedEvent>([listed({ crm: 'h1', erp: 'h2' }, 'run_1-2'), replied('run_1-1', output()), settled('run_1-1')])(
      'ignores what it does not wait for',
      (event) => {
        expectIgnored(listing, [], event);
      },
    );
  });

  describe('while the model is called', () => {
    it.each<TimedEvent>([
      replied('run_1-2', output()),
      replied('run_0-1', output()),
      { type: 'call.failed', callId: 'run_1-7', failure: { code: 'router.timeout', message: '', details: {} } },
      settled('run_1-1'),
      { type: 'run.deadline', actorId: 'run_0' },
    ])('ignores %j, which it does not wait for', (event) => {
      expectIgnored({}, [], event);
    });

    it('ignores a repeated answer', () => {
      expectIgnored({}, [replied('run_1-1', text())], replied('run_1-1', text()));
    });

    it('succeeds with the output', () => {
      const [next, actions] = afterEvents({}, replied('run_1-1', output()));

      expect(next.value).toBe('succeeded');
      expect(next.status).toBe('done');
      expect(linesOf(actions)).toEqual(['ready', 'disarm run_1-deadline', 'settle succeeded {"verdict":"yes"}']);
    });

    it('fails with a code and no inner detail when the call fails', () => {
      const [, actions] = afterEvents({}, { type: 'call.failed', callId: 'run_1-1', failure: { code: 'router.no_provider', message: 'secret', details: {} } });

      expect(linesOf(actions)).toEqual([
        'error(engine_error: the model call failed (router.no_provider))',
        'ready',
        'disarm run_1-deadline',
        'settle engine_error {}',
      ]);
    });

    it('stages text and calls the model again, as the next iteration', () => {
      const [next, actions] = afterEvents({}, replied('run_1-1', text()));

      expect(next.context).toMatchObject({ iteration: 2, stepCount: 2 });
      expect(linesOf(actions)).toEqual(['stage assistant', 'stage user', 'router-call run_1-2 steps 2']);
    });

    it('stages an invalid output and calls the model again', () => {
      const [next, actions] = afterEvents({}, replied('run_1-1', invalid()));

      expect(next.context).toMatchObject({ iteration: 2, invalidOutput: VIOLATION });
      expect(linesOf(actions)).toEqual(['stage assistant', 'stage tool', 'router-call run_1-2 steps 2']);
    });

    it('calls the model again at once when all tool calls were refused: nothing is awaited, and the log has no batch', () => {
      const [next, actions] = afterEvents({}, replied('run_1-1', batch(0, 2)));

      expect(next.context.iteration).toBe(2);
      expect(linesOf(actions)).toEqual(['stage assistant', 'stage tool', 'stage tool', 'router-call run_1-2 steps 3']);
    });

    it('fails when the last iteration has no output', () => {
      const [, actions] = afterEvents({ maxIterations: 2 }, replied('run_1-1', text()), replied('run_1-2', text()));

      expect(linesOf(actions)).toEqual([
        'stage assistant',
        'stage user',
        'error(max_engine_iterations_reached: the model was called 2 times without calling emit_output)',
        'ready',
        'disarm run_1-deadline',
        'settle max_engine_iterations_reached {}',
      ]);
    });

    it('calls no tools in the last iteration, since their results would not be read', () => {
      const [next, actions] = afterEvents({ maxIterations: 1 }, replied('run_1-1', batch(2)));

      expect(next.value).toBe('failed');
      expect(linesOf(actions).filter((line) => line.startsWith('tool-call'))).toEqual([]);
      expect(linesOf(actions).at(-1)).toBe('settle max_engine_iterations_reached {}');
    });

    it.each<[string, RunReply[]]>([
      ['last of all', [text(), invalid()]],
      ['last, before other answers', [invalid(), text()]],
    ])('fails for the invalid output when that came %s', (_when, [first, second]) => {
      const [, actions] = afterEvents({ maxIterations: 2 }, replied('run_1-1', first ?? text()), replied('run_1-2', second ?? text()));

      expect(linesOf(actions).at(-1)).toBe('settle output_validation_failed {"path":"/verdict","schema_path":"#/required","keyword":"required"}');
    });

    it('calls the same model once more when the answer can not be used, in the same iteration', () => {
      const [next, actions] = afterEvents({}, replied('run_1-1', unusable()));

      expect(next.context).toMatchObject({ iteration: 1, unusable: 1 });
      expect(linesOf(actions)).toEqual(['router-call run_1-2 steps 0']);
    });

    it('fails when that can not be used either and there is no other model', () => {
      const [, actions] = afterEvents({}, replied('run_1-1', unusable()), replied('run_1-2', unusable()));

      expect(linesOf(actions)[0]).toBe('error(engine_error: the model gave no usable answer (length))');
    });

    it('calls the fallback model then, and fails after its unusable answer', () => {
      const events = [replied('run_1-1', unusable()), replied('run_1-2', unusable())];

      expect(linesOf(afterEvents({ hasFallbackModel: true }, ...events)[1])).toEqual(['router-call run_1-3 steps 0 fallback']);
      expect(linesOf(afterEvents({ hasFallbackModel: true }, ...events, replied('run_1-3', unusable()))[1]).at(-1)).toBe('settle engine_error {}');
    });

    it('begins each iteration with its own model', () => {
      const events = [replied('run_1-1', unusable()), replied('run_1-2', unusable()), replied('run_1-3', text())];

      const [next, actions] = afterEvents({ hasFallbackModel: true }, ...events);

      expect(next.context).toMatchObject({ iteration: 2, unusable: 0 });
      expect(linesOf(actions).at(-1)).toBe('router-call run_1-4 steps 2');
    });
  });

  describe('while tools are called', () => {
    const called = replied('run_1-1', batch(2, 1));

    it('DESIGN 6 rule 5: tool calls are requested at once, each with its own deadline and timer', () => {
      const [next, actions] = afterEvents({}, called);

      expect(next.value).toBe('tooling');
      expect(linesOf(actions)).toEqual([
        'stage assistant',
        'stage tool',
        'processing/tools',
        'tool-call run_1-2 c0 crm:tool0 h1 until 95000',
        'timer run_1-2-overdue 100000',
        'tool-call run_1-3 c1 crm:tool1 h1 until 95000',
        'timer run_1-3-overdue 100000',
      ]);
    });

    it('limits the deadline of a call to that of the run', () => {
      const [, actions] = afterEvents({ deadlineAtMs: 50_000 }, called);

      expect(linesOf(actions)).toContain('tool-call run_1-2 c0 crm:tool0 h1 until 50000');
    });

    it('stages each result at once and waits for the others', () => {
      const [next, actions] = afterEvents({}, called, settled('run_1-3'));

      expect(next.value).toBe('tooling');
      expect(linesOf(actions)).toEqual(['disarm run_1-3-overdue', 'stage tool c1 "found"']);
    });

    it('appends one event for the batch, in the order of the calls, and calls the model again', () => {
      const [next, actions] = afterEvents({}, called, settled('run_1-3'), settled('run_1-2'));

      expect(next.context).toMatchObject({ iteration: 2, pending: [], batch: [] });
      expect(linesOf(actions)).toEqual(['disarm run_1-2-overdue', 'stage tool c0 "found"', 'tools c0,c1,c2', 'router-call run_1-4 steps 4']);
    });

    it.each<[string, ToolOutcome, RegExp]>([
      ['a failure of the tool itself', { type: 'result', data: 'no stock', metadata: {}, isError: true }, /"error":"tool_failed","result":"no stock"/],
      ['an unknown outcome', failed('outcome_unknown'), /"error":"outcome_unknown"/],
      ['a refusal', failed('refused'), /"error":"refused"/],
      ['a timeout', failed('timeout'), /"error":"timeout"/],
    ])('reports %s to the model and goes on', (_what, outcome, content) => {
      const [next, actions] = afterEvents({}, called, settled('run_1-2', outcome));

      expect(next.value).toBe('tooling');
      expect(linesOf(actions)[1]).toMatch(content);
    });

    it.each(['unreachable', 'auth_failed'] as const)('fails when the server is %s, and supersedes the other calls', (reason) => {
      const [next, actions] = afterEvents({}, called, settled('run_1-3', failed(reason)));

      expect(next.value).toBe('failed');
      expect(linesOf(actions)).toEqual([
        'disarm run_1-3-overdue',
        expect.stringContaining('stage tool c1'),
        'supersede run_1-2',
        'disarm run_1-2-overdue',
        expect.stringMatching(/^error\(tool_error: the server of the tool crm:tool1 /),
        'ready',
        'disarm run_1-deadline',
        `settle tool_error {"tool_id":"crm:tool1","reason":"${reason}"}`,
      ]);
    });

    it.each<[TimedEvent, string]>([
      [{ type: 'run.deadline', actorId: 'run_1' }, 'settle timeout {"timeout_seconds":120}'],
      [{ type: 'run.poisoned' }, 'settle engine_error {}'],
      [{ type: 'run.orphaned' }, 'settle session_error {}'],
    ])('supersedes the open calls on %j', (event, settlement) => {
      const [next, actions] = afterEvents({}, called, settled('run_1-2'), event);

      expect(next.status).toBe('done');
      expect(linesOf(actions).slice(0, 2)).toEqual(['supersede run_1-3', 'disarm run_1-3-overdue']);
      expect(linesOf(actions).slice(-3)).toEqual(['ready', 'disarm run_1-deadline', settlement]);
    });

    it.each<TimedEvent>([{ type: 'run.cancel', claimed: [] }, { type: 'run.deadline', actorId: 'run_1' }, { type: 'run.poisoned' }, { type: 'run.orphaned' }])(
      'has in the log what had settled when %j ends it',
      (event) => {
        const [, actions] = afterEvents({}, called, settled('run_1-2'), event);

        expect(linesOf(actions)[2]).toBe('tools c0,c2');
      },
    );

    it('has no event of tools when none had settled', () => {
      const [, actions] = afterEvents({}, replied('run_1-1', batch(2)), { type: 'run.cancel', claimed: [] });

      expect(linesOf(actions).filter((line) => line.startsWith('tools'))).toEqual([]);
    });

    it.each<TimedEvent>([settled('run_1-2'), settled('run_1-9'), replied('run_1-1', output()), replied('run_1-3', output())])(
      'ignores %j, which is repeated, unknown or late',
      (event) => {
        expectIgnored({}, [called, settled('run_1-2')], event);
      },
    );
  });

  describe('at its deadline', () => {
    const TIMEOUT = 'settle timeout {"timeout_seconds":120}';
    const deadline: TimedEvent = { type: 'run.deadline', actorId: 'run_1' };
    const called = replied('run_1-1', batch(2));
    const unanswered: TimedEvent = { type: 'call.failed', callId: 'run_1-1', failure: { code: 'router.timeout', message: '', details: {} } };
    const broken = (callId: string): TimedEvent => ({
      type: 'call.failed',
      callId,
      failure: { code: 'router.provider_unavailable', message: '', details: {} },
    });
    const unlisted: TimedEvent = { type: 'tools.listed', callId: 'run_1-1', lists: {}, unavailable: { crm: 'unreachable' }, timedOut: false };
    const twiceUnusable = [replied('run_1-1', unusable()), replied('run_1-2', unusable())];

    it.each<[string, Partial<RunInput>, TimedEvent[], TimedEvent]>([
      ['a model call', {}, [], broken('run_1-1')],
      ['the model call after tools', {}, [called, settled('run_1-2'), settled('run_1-3')], broken('run_1-4')],
      ['the fallback model', { hasFallbackModel: true }, twiceUnusable, broken('run_1-3')],
      ['an answer that can not be used', {}, [replied('run_1-1', unusable())], replied('run_1-2', unusable())],
      ['the last iteration', { maxIterations: 1 }, [], replied('run_1-1', text())],
      ['a tool call', {}, [called], settled('run_1-2', failed('unreachable'))],
      ['a tool list', { servers: ['crm'] }, [], unlisted],
      ['a command that can not be applied', {}, [], { type: 'run.poisoned' }],
      ['a session that is deleted', {}, [], { type: 'run.orphaned' }],
    ])('settles as the timeout in either order with its timer when %s fails', (_what, input, before, failure) => {
      const late = { ...failure, atMs: DEADLINE_AT_MS };
      const [settledByResult, resultFirst] = afterEvents(input, ...before, late);
      const [settledByTimer, timerFirst] = afterEvents(input, ...before, { ...deadline, atMs: DEADLINE_AT_MS });

      expect([linesOf(resultFirst).at(-1), linesOf(timerFirst).at(-1)]).toEqual([TIMEOUT, TIMEOUT]);
      expect(linesOf(resultFirst)).toContain('error(timeout: the run took longer than 120 seconds)');
      for (const state of [settledByResult, settledByTimer])
        for (const event of [late, deadline]) expect(transition(runMachine, state, timed(event))[1]).toEqual([]);
    });

    it.each<[string, Partial<RunInput>, TimedEvent]>([
      ['a model call', {}, unanswered],
      ['a tool list whose limit the deadline was', { servers: ['crm'], deadlineAtMs: 20_000 }, { ...unlisted, timedOut: true }],
    ])('counts as reached when %s was ended by it, though the clock of its worker ran ahead', (_what, input, failure) => {
      const [, actions] = afterEvents(input, { ...failure, atMs: 19_000 });

      expect(linesOf(actions).at(-1)).toBe(TIMEOUT);
    });

    it.each<[string, Partial<RunInput>, TimedEvent, string]>([
      ['a provider fails', {}, broken('run_1-1'), 'settle engine_error {}'],
      ['a tool server is gone', { servers: ['crm'] }, unlisted, 'settle tool_error {"tool_id":"crm:*","reason":"unreachable"}'],
      [
        "a tool list's own limit is shorter",
        { servers: ['crm'] },
        { ...unlisted, timedOut: true },
        'settle tool_error {"tool_id":"crm:*","reason":"unreachable"}',
      ],
    ])('is not reached a millisecond earlier when %s', (_what, input, failure, settlement) => {
      const [, actions] = afterEvents(input, { ...failure, atMs: DEADLINE_AT_MS - 1 });

      expect(linesOf(actions).at(-1)).toBe(settlement);
    });

    it('succeeds with an output that is applied before its timer', () => {
      const [, actions] = afterEvents({}, { ...replied('run_1-1', output()), atMs: DEADLINE_AT_MS });

      expect(linesOf(actions).at(-1)).toBe('settle succeeded {"verdict":"yes"}');
    });
  });

  it.each<TimedEvent>([
    { type: 'run.deadline', actorId: 'run_1' },
    { type: 'run.poisoned' },
    { type: 'run.orphaned' },
    replied('run_1-1', output()),
    replied('run_1-1', text()),
  ])('ignores %j once it has settled', (event) => {
    expectIgnored({}, [replied('run_1-1', output())], event);
    expectIgnored({}, [{ type: 'run.poisoned' }], event);
  });
});

function started(input: Partial<RunInput> = {}) {
  return initialTransition(runMachine, { ...INPUT, ...input });
}

/** Applied long before the deadline, unless `atMs` is given. */
type TimedEvent = RunEventBody & { atMs?: number };

function timed(event: TimedEvent) {
  return { ...event, atMs: event.atMs ?? 5_000 };
}

/** The state after all events, and the actions of the last one. */
function afterEvents(input: Partial<RunInput>, ...events: TimedEvent[]) {
  return events.reduce((step, event) => transition(runMachine, step[0], timed(event)), started(input));
}

function expectIgnored(input: Partial<RunInput>, before: TimedEvent[], event: TimedEvent): void {
  const [state] = afterEvents(input, ...before);
  const [next, actions] = transition(runMachine, state, timed(event));

  expect(actions).toEqual([]);
  expect({ value: next.value, context: next.context }).toEqual({ value: state.value, context: state.context });
}

function listed(lists: Record<string, string>, callId = 'run_1-1'): TimedEvent {
  return { type: 'tools.listed', callId, lists, unavailable: {}, timedOut: false };
}

function replied(callId: string, reply: RunReply): TimedEvent {
  return { type: 'call.replied', callId, reply };
}

function settled(callId: string, outcome: ToolOutcome = { type: 'result', data: 'found', metadata: {}, isError: false }): TimedEvent {
  return { type: 'tool.settled', callId, outcome, atMs: 6_000 };
}

function failed(reason: Extract<ToolOutcome, { type: 'failed' }>['reason']): ToolOutcome {
  return { type: 'failed', reason, message: 'as its worker says' };
}

function output(): RunReply {
  return { type: 'output', output: { verdict: 'yes' } };
}

function text(): RunReply {
  return {
    type: 'text',
    messages: [
      { role: 'assistant', content: 'Well …' },
      { role: 'user', content: 'Call a function.' },
    ],
  };
}

function unusable(): RunReply {
  return { type: 'unusable', finishReason: 'length' };
}

function invalid(): RunReply {
  return { type: 'invalid-output', violation: VIOLATION, messages: [{ role: 'assistant', content: null }, toolStep('c0')] };
}

/** Calls to be made, and refused ones. */
function batch(made: number, refused = 0): RunReply {
  const order = Array.from({ length: made + refused }, (_, index) => ({ toolCallId: `c${index}`, toolId: `crm:tool${index}` }));
  return {
    type: 'tools',
    messages: [{ role: 'assistant', content: null }, ...order.slice(made).map(({ toolCallId }) => toolStep(toolCallId))],
    calls: order.slice(0, made).map((call) => ({ ...call, listHash: 'h1' })),
    order,
  };
}

function toolStep(toolCallId: string): StepMessage {
  return { role: 'tool', tool_call_id: toolCallId, content: '{}', result: null };
}

type ActionData = { type: string; params?: unknown };

/** Actions in order, as short strings. */
function linesOf(actions: readonly ActionData[]): string[] {
  return actions.map(({ type, params }) =>
    lineOf({ type, params } as { [Type in keyof RunActions]: { type: Type; params: RunActions[Type] } }[keyof RunActions]),
  );
}

function lineOf(action: { [Type in keyof RunActions]: { type: Type; params: RunActions[Type] } }[keyof RunActions]): string {
  switch (action.type) {
    case 'started':
      return 'started';
    case 'fact': {
      const { content } = action.params;
      if (content.kind !== 'status') return content.kind;
      return `${content.status}${content.stage === null ? '' : `/${content.stage}`}${content.error_detail === null ? '' : `(${content.error_detail})`}`;
    }
    case 'stage': {
      const { message } = action.params;
      if (message.role !== 'tool') return `stage ${message.role}`;
      if (message.result === null) return 'stage tool';
      const { content } = message;
      return `stage tool ${message.tool_call_id} ${content.startsWith('{') ? content : JSON.stringify(content)}`;
    }
    case 'toolEvent':
      return `tools ${action.params.calls.map(({ toolCallId }) => toolCallId)}`;
    case 'effect':
      return effectLine(action.params);
    case 'supersede':
      return `supersede ${action.params.id}`;
    case 'timer':
      return `timer ${action.params.key} ${action.params.atMs}`;
    case 'disarm':
      return `disarm ${action.params.key}`;
    case 'settle':
      return action.params.state === 'succeeded'
        ? `settle succeeded ${JSON.stringify(action.params.output)}`
        : `settle ${action.params.error.code} ${JSON.stringify(action.params.error.details)}`;
  }
}

function effectLine(effect: RunActions['effect']): string {
  switch (effect.kind) {
    case 'router-call': {
      const lists = Object.entries(effect.lists).map(([server, hash]) => `${server}=${hash}`);
      return [
        `router-call ${effect.id} steps ${effect.stepCount}`,
        ...(effect.useFallbackModel ? ['fallback'] : []),
        ...(lists.length > 0 ? [lists.join()] : []),
      ].join(' ');
    }
    case 'tool-list':
      return `tool-list ${effect.id} ${effect.servers} until ${effect.deadlineAtMs}`;
    case 'tool-call':
      return `tool-call ${effect.id} ${effect.toolCallId} ${effect.toolId} ${effect.listHash} until ${effect.deadlineAtMs}`;
  }
}
