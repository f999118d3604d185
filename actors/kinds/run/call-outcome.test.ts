import { expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import { outcomeOf, superseded } from './call-outcome.ts';
import type { RunReply } from './types.ts';

const header = {
  v: 1,
  sessionId: 'ses_1',
  commandId: 'run_1-1',
  sentAtMs: 0,
  answerTo: null,
  traceparent: null,
  ...actorFields('run_1'),
  callId: 'run_1-1',
} as const;
const completed: CommandOf<'call.completed'> = {
  ...header,
  type: 'call.completed',
  ...{ text: 'a secret', toolCalls: [], model: 'scripted/assistant', provider: 'Scripted', finishReason: 'stop' },
  usage: { promptTokens: 12, completionTokens: 3 },
};
const answered = { model: 'scripted/assistant', provider: 'Scripted', usage: { prompt_tokens: 12, completion_tokens: 3 } };
const { type: _, ...nothing } = superseded;

it.each<[RunReply, object]>([
  [
    { type: 'output', output: { a: 'a secret' } },
    { type: 'output', reason: null },
  ],
  [
    { type: 'text', messages: [{ role: 'assistant', content: 'a secret' }] },
    { type: 'text', reason: null },
  ],
  [
    { type: 'unusable', finishReason: 'length' },
    { type: 'unusable', reason: 'length' },
  ],
])('of a model call has the kind of answer, the model and the tokens: %j', (reply, outcome) => {
  expect(outcomeOf({ type: 'call.replied', callId: 'run_1-1', reply }, completed)).toEqual({ ...answered, ...outcome });
});

it('of a failed one has its code only', () => {
  const failure = { code: 'router.no_provider' as const, message: 'a secret', details: { a: 'secret' } };
  const command = { ...header, type: 'call.failed' as const, failure };

  expect(outcomeOf({ type: 'call.failed', callId: 'run_1-1', failure }, command)).toEqual({ ...nothing, type: 'failed', reason: 'router.no_provider' });
});

it.each<[ToolOutcome, string]>([
  [{ type: 'result', data: 'a secret', metadata: {}, isError: false }, 'result'],
  [{ type: 'result', data: 'a secret', metadata: {}, isError: true }, 'error'],
  [{ type: 'failed', reason: 'outcome_unknown', message: 'a secret' }, 'outcome_unknown'],
])('of a tool call has its end: %j', (outcome, type) => {
  const command = { ...header, type: 'tool.completed' as const, outcome };

  expect(outcomeOf({ type: 'tool.settled', callId: 'run_1-1', outcome }, command)).toEqual({ ...nothing, type });
});

it('of a tool list names the servers that have none', () => {
  const lists = { shop: 'h1' };
  const unavailable = { crm: 'unreachable' as const };
  const command = { ...header, type: 'tools.listed' as const, lists, unavailable };

  expect(outcomeOf({ type: 'tools.listed', callId: 'run_1-1', lists, unavailable, timedOut: false }, command)).toEqual({
    ...{ ...nothing, type: 'unavailable' },
    reason: 'crm: unreachable',
  });
  expect(outcomeOf({ type: 'tools.listed', callId: 'run_1-1', lists, unavailable: {}, timedOut: false }, command)).toEqual({ ...nothing, type: 'listed' });
});
