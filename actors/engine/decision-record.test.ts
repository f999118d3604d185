import { expect, it } from 'vitest';
import type { ConversationEvent, EventContent } from '#shared/contracts/agent/conversation-event.ts';
import { noAgentState } from './agent-state.ts';
import { recordOf, summaryOf } from './decision-record.ts';
import type { TurnRow } from './turn-row.ts';

const began: TurnRow = { kind: 'began', state: noAgentState };
const call = { model: 'a/b', ms: 12, tokens: 30 };
const none = { clarifications: [], steps: [], paths: {}, tracked: [], resolutions: [] };

function match(id: string, applies: boolean): TurnRow {
  const answer = { verdicts: [{ id, applies, rationale: 'so' }], clarification: null };
  return { kind: 'match', key: `1:${id}`, ...call, reference: { id: 'actionable-1', class: 'actionable', policyIds: [id] }, answer };
}

function tool(toolId: string): TurnRow {
  const result = { data: 'secret result', metadata: {} };
  return {
    kind: 'tool',
    key: `tool-1-${toolId}`,
    ms: 5,
    call: { toolId, arguments: { id: 7 }, hasFailed: false, result, control: { mode: null, lifespan: 'session', policies: [] } },
  };
}

it('rows of before a message joined do not count, but the tools that ran then', () => {
  const rows: TurnRow[] = [began, match('old', true), tool('shop:order'), began, match('new', false), { kind: 'resolved', policies: [], ...none }];
  const record = recordOf([status('acknowledged', 1)], rows, []);

  expect(record.evidence.map(({ id, applies }) => [id, applies])).toEqual([['new', false]]);
  expect(record.tools).toEqual([{ tool_id: 'shop:order', failed: false, arguments: { id: 7 }, ms: 5 }]);
  expect(JSON.stringify(record)).not.toContain('secret result');
});

it('answers that could not be read are named, also of before a message joined', () => {
  const fault = (asked: string): TurnRow => ({ kind: 'malformed', asked, key: '1/actionable-1', reason: 'the answer lacks item 1 of 2', ...call });
  const { faults } = recordOf([status('acknowledged', 1)], [began, fault('match'), began, { ...fault('applied'), ms: null } as TurnRow], []);

  const named = { batch: '1/actionable-1', reason: 'the answer lacks item 1 of 2', model: 'a/b' };
  expect(faults).toEqual([
    { kind: 'match', ...named, ms: 12 },
    { kind: 'applied', ...named, ms: null },
  ]);
});

it('rule 14: it says what a message was like, and by what that was decided', () => {
  const likenessOf = (...rows: TurnRow[]) => recordOf([status('acknowledged', 1)], rows, []).likeness;
  const compared: TurnRow = { kind: 'likeness', key: 'likeness', ...call, likeliest: 'order', terms: [4, 9], failure: null };
  const words: TurnRow = { ...began, likeliest: 'refund' };
  const byModel = { model: 'a/b', ms: 12, failure: null };

  expect(likenessOf(words, compared)).toEqual({ routine: { id: 'order', by: 'vectors' }, terms: 2, ...byModel });
  expect(likenessOf(words, { ...compared, likeliest: null, terms: undefined })).toEqual({ routine: { id: null, by: 'vectors' }, terms: null, ...byModel });
  expect(likenessOf(words, { ...compared, likeliest: undefined })).toMatchObject({ routine: { id: 'refund', by: 'words' }, terms: 2 });
  const failed: TurnRow = { kind: 'likeness', key: 'likeness', model: null, ms: 2_000, tokens: 0, failure: 'unavailable' };
  expect(likenessOf(words, failed)).toEqual({ routine: { id: 'refund', by: 'words' }, terms: null, model: null, ms: 2_000, failure: 'unavailable' });
  expect(likenessOf(words)).toEqual({ routine: { id: 'refund', by: 'words' }, terms: null, model: null, ms: null, failure: null });
  expect([likenessOf(began), likenessOf(words, compared, began)]).toEqual([null, null]);
});

it('what was decided is in force with the decision alone', () => {
  expect(recordOf([status('acknowledged', 1)], [began, match('leak', true)], [])).toMatchObject({ policies: [], evidence: [{ id: 'leak' }], check: null });
  const resolved: TurnRow = { kind: 'resolved', ...none, policies: [{ id: 'leak', rationale: 'so' }], steps: [{ routineId: 'refund', stepId: 'ask' }] };
  expect(summaryOf([status('acknowledged', 1)], [began, resolved])).toMatchObject({
    policies: [{ id: 'leak', rationale: 'so' }],
    steps: [{ routine_id: 'refund', step_id: 'ask' }],
  });
});

it('rules 50, 88, 114: tools that no list holds, and what has cut a turn short, are named', () => {
  const recordWith = (fields: object) => recordOf([status('acknowledged', 1)], [began, { kind: 'resolved', ...none, policies: [], ...fields } as TurnRow], []);

  expect(recordWith({ unlisted: ['shop:lost'], cutShort: 'iterations' })).toMatchObject({ unlisted_tools: ['shop:lost'], cut_short: 'iterations' });
  expect(recordWith({ cutShort: 'budget' })).toMatchObject({ unlisted_tools: [], cut_short: 'budget' });
  expect(recordWith({})).toMatchObject({ unlisted_tools: [], cut_short: null });
});

it('routines, tools that can not be called, and a reply without its check are named', () => {
  const rows: TurnRow[] = [
    began,
    {
      ...{ kind: 'routine', key: 'next', ...call },
      reference: { kind: 'next-step', routineId: 'refund', pass: 1, path: [], at: 'ask', prefix: [], evaluation: null },
      answer: { kind: 'next-step', isCompleted: true, follow: ['pay'], rationale: 'paid' },
    },
    {
      ...{ kind: 'infer-tools', key: 'infer-1-1', ...call },
      reference: { tools: [], policyIds: [], steps: [] } as never,
      answer: { tools: [{ outcome: 'cannot_run', toolId: 'shop:refund', problems: [], rationale: 'no id' }] },
    },
    { kind: 'unchecked', reason: 'malformed' },
  ];
  const { routines, inferences, check } = recordOf([status('acknowledged', 1)], rows, []);

  expect(routines).toEqual([
    { routine_id: 'refund', question: 'next-step', answer: { isCompleted: true, follow: ['pay'], rationale: 'paid' }, model: 'a/b', ms: 12 },
  ]);
  expect(inferences).toEqual([{ tool_id: 'shop:refund', outcome: 'cannot_run', rationale: 'no id' }]);
  expect(check).toEqual({ outcome: 'unchecked', reason: 'malformed', policies: [] });
});

it('messages that moderation reads are named with what it has found, a caller’s own mark too, and never with their text', () => {
  const said = (offset: number, moderation: unknown) => ({ ...event({ kind: 'user_message', text: 'secret words' }, offset), metadata: { moderation } });
  const messages = [
    said(0, { mode: 'auto', status: 'passed', flagged: false, tags: [] }),
    said(1, { mode: 'paranoid', status: 'flagged', flagged: true, tags: ['violence'] }),
    said(2, { flagged: true, tags: ['by the caller'] }),
    said(3, { mode: 'auto', status: 'unavailable' }),
    said(4, { mode: 'auto', status: 'pending' }),
    said(5, 'something else'),
  ];
  const record = recordOf([status('acknowledged', 6)], [], [], messages);

  expect(record.moderation.map(({ event_id, offset, mode, status: found, tags }) => [event_id, offset, mode, found, tags])).toEqual([
    ['evt_0', 0, 'auto', 'passed', []],
    ['evt_1', 1, 'paranoid', 'flagged', ['violence']],
    ['evt_2', 2, null, 'flagged', ['by the caller']],
    ['evt_3', 3, 'auto', 'unavailable', []],
    ['evt_4', 4, 'auto', 'pending', []],
  ]);
  expect(JSON.stringify(record)).not.toContain('secret words');
});

it('a turn of one model call has its events alone', () => {
  const reply = event({ kind: 'assistant_message', text: 'Hello' }, 3);
  expect(recordOf([status('acknowledged', 1), status('typing', 2), reply, status('ready', 4)], [], [])).toMatchObject({
    ...{ begin_offset: 1, end_offset: 4, outcome: 'replied', policies: [], evidence: [] },
    reply: { event_id: 'evt_3', offset: 3, model: null, provider: null },
  });
});

function status(name: 'acknowledged' | 'typing' | 'ready', offset: number): ConversationEvent {
  return event({ kind: 'status', status: name, stage: null, error_detail: null }, offset);
}

function event(content: EventContent, offset: number): ConversationEvent {
  const common = { created_at: '2030-01-01T00:00:00.000Z', source: 'ai_agent' as const, trace_id: 'f'.repeat(32), metadata: {} };
  return { id: `evt_${offset}`, offset, ...common, ...content };
}
