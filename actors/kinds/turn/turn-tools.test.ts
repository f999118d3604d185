import { describe, expect, it } from 'vitest';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import type { TurnRow } from '../../engine/turn-row.ts';
import { deleteEvents } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { matched, result, toolCallsIn } from '../../test-support/tool-turn.ts';

const kindsOf = (rows: readonly TurnRow[]) => rows.map(({ kind }) => kind);

describe('tools in a turn', () => {
  it('rule 62: are inferred, called side by side, and stand in the log as one event, in the order of inference', () => {
    const { session, id } = matched();
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching', 'processing/tools']);
    session.infer(id(2), ['shop__refund', { id: 1 }], ['shop__order', {}]);
    expect([...session.open.values()].map((effect) => [effect.id, effect.kind, effect.inputs])).toEqual([
      [id(3), 'turn-tool-call', expect.objectContaining({ toolId: 'shop:refund', listHash: 'list-shop', from: { key: 'infer-1-1', index: 0 }, staged: 3 })],
      [id(4), 'turn-tool-call', expect.objectContaining({ toolId: 'shop:order', listHash: 'list-shop', from: { key: 'infer-1-1', index: 1 }, staged: 3 })],
    ]);
    session.tool(id(4), result({ state: 'sent' }));
    expect(toolCallsIn(session)).toEqual([]);
    session.tool(id(3), { type: 'failed', reason: 'outcome_unknown', message: 'lost' });
    expect(toolCallsIn(session)).toEqual([
      [
        { tool_id: 'shop:refund', arguments: { id: 1 }, result: { data: { error: 'outcome_unknown' }, metadata: { error: 'lost' } } },
        { tool_id: 'shop:order', arguments: {}, result: { data: { state: 'sent' }, metadata: {} } },
      ],
    ]);
    session.finish();
    expect(session.lines.slice(3)).toEqual(['processing/tools', 'tool ', 'typing', 'assistant_message a reply', 'ready']);
    expect(kindsOf(session.rows())).toEqual(['began', 'match', 'infer-tools', 'tool', 'tool', 'resolved']);
  });

  it.each([
    ['order', 'timeout'],
    ['refund', 'outcome_unknown'],
  ])('rule 63: a failed call does not fail the turn, nor does one whose publishing was not confirmed: %s, %s', (tool, error) => {
    const { session, id } = matched();
    session.infer(id(2), [`shop__${tool}`, {}]);
    const failure = { code: 'router.timeout' as const, message: 'late', details: {} };
    session.apply({ ...session.resultOf(id(3), ''), type: 'call.failed', failure } as never);
    session.finish();
    expect(toolCallsIn(session)[0]?.[0]?.result.data).toEqual({ error });
    expect(session.lines.at(-1)).toBe('ready');
    expect(session.lines.some((line) => line.startsWith('error'))).toBe(false);
  });

  it.each([
    ['order', 'timeout'],
    ['refund', 'outcome_unknown'],
  ])('rule 63: a call whose item or result is lost ends with its own deadline, and the turn goes on: %s, %s', (tool, error) => {
    const { session, id } = matched();
    session.infer(id(2), [`shop__${tool}`, {}]);
    expect(session.ring(`${id(3)}-overdue`)).toBe(95_000);
    session.tool(id(3), result('too late'));
    session.finish();
    expect(toolCallsIn(session)).toMatchObject([[{ result: { data: { error } } }]]);
    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
  });

  it('rule 63: nothing of a call is awaited after its result, or after the end of its turn', () => {
    const { session, turnId, id } = matched();
    session.infer(id(2), ['shop__refund', {}], ['shop__order', {}]);
    expect([...session.timers.keys()]).toEqual([`${turnId}-deadline`, `${id(3)}-overdue`, `${id(4)}-overdue`]);
    session.tool(id(4), result('sent'));
    expect([...session.timers.keys()]).toEqual([`${turnId}-deadline`, `${id(3)}-overdue`]);
    session.deadline(turnId, 180_000);
    expect([...session.timers.keys()]).toEqual([]);
  });

  it('rule 58: what is missing is a question, and no call is made', () => {
    const { session, id } = matched();
    session.infer(id(2), ['leave_out', { function: 'shop__order', outcome: 'cannot_run', missing: ['id'] }]);
    session.finish();
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', questions: [{ toolId: 'shop:order', parameter: 'id', problem: 'missing' }] });
    expect(toolCallsIn(session)).toEqual([]);
  });

  it('rule 57: a malformed answer is asked for once more, then the turn fails', () => {
    const { session, id } = matched();
    session.infer(id(2), ['shop__steal', {}]);
    session.infer(id(3), ['shop__steal', {}]);
    expect(session.lines.slice(-2)).toEqual(['error (engine_error: the model gave no answer that can be read)', 'ready']);
  });

  it('DESIGN 5: rule 57: a number that cannot be kept exactly is asked for as a string, and of two calls that differ by it none is lost', () => {
    const { session, id } = matched();
    const call = (order: string) => ({ id: '', name: 'shop__order', arguments: `{"order":${order}}` });
    session.apply({ ...session.resultOf(id(2), ''), toolCalls: [call('9007199254740993'), call('9007199254740992')] });
    expect(session.rows().at(-1)).toMatchObject({
      kind: 'malformed',
      asked: 'infer-tools',
      reason: expect.stringMatching(/send it as a string \(at \/order\)$/),
    });
    // Its prompt is rendered from this row, too.
    expect([...session.open.values()]).toMatchObject([{ id: id(3), inputs: { staged: session.rows().length } }]);

    session.apply({ ...session.resultOf(id(3), ''), toolCalls: [call('"9007199254740993"'), call('9007199254740992')] });
    const asked = [...session.open.values()].map(({ inputs }) => inputs['toolId']);
    expect(asked).toEqual(['shop:order', 'shop:order']);
    session.tool(id(4), result('first'));
    session.tool(id(5), result('second'));
    expect(toolCallsIn(session)).toMatchObject([[{ arguments: { order: '9007199254740993' } }, { arguments: { order: 9007199254740992 } }]]);
  });

  it('rule 57: such a number in the second answer, too, leaves its tool out, and the turn goes on', () => {
    const { session, id } = matched();
    const toolCalls = [{ id: '', name: 'shop__order', arguments: '{"id":9007199254740993}' }];
    session.apply({ ...session.resultOf(id(2), ''), toolCalls });
    session.apply({ ...session.resultOf(id(3), ''), toolCalls });
    session.finish();
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', questions: [{ toolId: 'shop:order', parameter: 'id', problem: 'invalid' }] });
    expect(session.lines.at(-1)).toBe('ready');
    expect(toolCallsIn(session)).toEqual([]);
  });

  it('rule 57: the answer by which a host reports a call that it can not render is asked for again', () => {
    const { session, turnId, id } = matched();
    const unreadable = { toolCalls: [{ id: '', name: '', arguments: '' }], finishReason: 'error' };
    session.apply({ ...session.resultOf(id(2), ''), ...unreadable });
    expect([...session.open.values()]).toMatchObject([{ id: id(3), actorId: turnId, inputs: { template: 'infer-tools@2' } }]);
  });

  it('rule 50: a tool that no stored list holds is left out, and the turn says so', () => {
    const tools = ['shop:order', 'shop:lost', 'crm:call'];
    const session = new EngineSession(testEngineDocuments({ policies: [testPolicy('ask', { tools })], toolServers: new Set(['shop', 'crm']) }), {
      shop: [{ name: 'order', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }],
    });
    session.say('Where is my order?');
    session.judge(`${session.turnId}-1`, ['ask']);
    session.infer(`${session.turnId}-2`, ['shop__order', {}]);
    session.tool(`${session.turnId}-3`, result('sent'));
    session.finish();
    expect(session.rows().find(({ kind }) => kind === 'infer-tools')).toMatchObject({ reference: { tools: [{ toolId: 'shop:order' }] } });
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', unlisted: ['crm:call', 'shop:lost'] });
  });

  it('rules 64, 114: a tool that forces it has policies matched again, for what does not apply yet, until the cap', () => {
    const { session, id } = matched({ reevaluationTools: ['shop:order', 'shop:refund'], maxIterations: 2 });
    session.infer(id(2), ['shop__order', { id: 1 }]);
    session.tool(id(3), { type: 'failed', reason: 'timeout', message: '' });
    expect(session.asked).toEqual([`${id(4)} [late never]`]);
    session.judge(id(4), ['late']);
    session.infer(id(5), ['shop__refund', {}]);
    session.tool(id(6), result('done'));
    expect(session.asked).toEqual([]);
    session.finish();
    expect(kindsOf(session.rows())).toEqual(['began', 'match', 'infer-tools', 'tool', 'match', 'infer-tools', 'tool', 'resolved']);
    expect(session.rows().at(-1)).toMatchObject({ policies: [{ id: 'ask' }, { id: 'late' }], cutShort: 'iterations' });
    expect(session.lines.filter((line) => line.startsWith('processing'))).toEqual([
      'processing/matching',
      'processing/tools',
      'processing/matching',
      'processing/tools',
    ]);
  });

  it('rule 114: one iteration allows one batch of tools; a turn that is not cut short does not say so', () => {
    const cutShortOf = (reevaluationTools: string[]) => {
      const { session, id } = matched({ reevaluationTools, maxIterations: 1 });
      session.infer(id(2), ['shop__order', {}]);
      session.tool(id(3), result('sent'));
      session.finish();
      const resolved = session.rows().at(-1);
      expect(session.notes.some((note) => note.startsWith('a turn answers before it has matched all'))).toBe(reevaluationTools.length > 0);
      return resolved?.kind === 'resolved' ? (resolved.cutShort ?? null) : expect.fail('no decision');
    };
    expect([cutShortOf(['shop:order']), cutShortOf([])]).toEqual(['iterations', null]);
  });

  it('rule 65: a tool that asks for a human has this turn answer, and no later one', () => {
    const { session, id } = matched();
    session.infer(id(2), ['shop__order', {}]);
    session.tool(id(3), result('ask a colleague', { 'switchyard/control': { mode: 'manual' } }));
    session.finish();
    expect(session.lines.at(-1)).toBe('ready');
    expect(session.state?.record.mode).toBe('manual');
    session.say('Hello?');
    expect(session.lines.at(-1)).toBe('user_message Hello?');
    expect(session.open.size).toBe(0);
  });

  it.each(['fails', 'is cancelled', 'is cancelled while the call runs'])('rule 65: hands the session over all the same when the turn %s', (how) => {
    const { session, id } = matched();
    const isCalled = how === 'is cancelled while the call runs';
    session.infer(id(2), ['shop__refund', {}]);
    if (isCalled) session.say('Hello?');
    session.tool(id(3), result('ask a colleague', { 'switchyard/control': { mode: 'manual' } }));
    if (how === 'is cancelled') session.say('Hello?');
    if (how === 'fails') session.fail(id(4));
    expect(session.state?.record.mode).toBe('manual');
    // The message that has cancelled the turn was posted to the agent.
    session.finish();
    expect(session.lines.slice(-2)).toEqual([expect.stringMatching(how === 'fails' ? /^error/ : /^assistant_message/), 'ready']);
    session.say('Is someone there?');
    expect([session.lines.at(-1), session.open.size]).toEqual(['user_message Is someone there?', 0]);
  });

  it('rule 60: counts a repeated or late result once', () => {
    const { session, id } = matched();
    session.infer(id(2), ['shop__order', {}], ['shop__refund', {}]);
    for (let repeat = 0; repeat < 3; repeat += 1) session.tool(id(3), result(repeat));
    session.tool(id(4), result('done'));
    session.tool(id(4), result('again'));
    session.finish();
    expect(toolCallsIn(session)).toEqual([
      [expect.objectContaining({ result: { data: 0, metadata: {} } }), expect.objectContaining({ result: { data: 'done', metadata: {} } })],
    ]);
    expect(session.lines.at(-1)).toBe('ready');
  });
});

describe('a turn that is cancelled while tools run', () => {
  it('rule 69: ends at once when its calls can be made again', () => {
    const { session, turnId, id } = matched();
    session.infer(id(2), ['shop__order', {}]);
    session.say('Never mind');
    expect(session.lines.slice(4, 8)).toEqual(['cancelled', 'ready', 'user_message Never mind', 'acknowledged']);
    expect(session.aborted).toContain(id(3));
    expect(session.turnId).not.toBe(turnId);
  });

  it('rule 69: waits for a call that can not be taken back, whose event comes first; the next turn begins then', () => {
    const { session, turnId, id } = matched();
    session.infer(id(2), ['shop__refund', {}], ['shop__order', {}]);
    session.say('Stop!');
    session.say('Really', 100);
    expect(session.aborted).toEqual([id(4)]);
    expect(session.lines.slice(4)).toEqual(['user_message Stop!', 'user_message Really']);
    expect([...session.timers.keys()]).toEqual([`${turnId}-deadline`, `${id(3)}-overdue`]);
    session.tool(id(4), result('too late'));
    session.tool(id(3), result('refunded'));
    expect(session.lines.slice(6)).toEqual(['tool ', 'cancelled', 'ready', 'acknowledged', 'processing/matching']);
    expect(toolCallsIn(session)).toEqual([[{ tool_id: 'shop:refund', arguments: {}, result: { data: 'refunded', metadata: {} } }]]);
    expect(session.turnId).not.toBe(turnId);
    session.finish();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(2);
    expect(session.log.at(-1)?.trace_id).toBe(session.log.find((event) => event.kind === 'user_message' && event.text === 'Stop!')?.trace_id);
  });

  it('rule 69: waits 30 s at most; what became of the call is not known then', () => {
    const { session, turnId, id } = matched();
    session.infer(id(2), ['shop__refund', {}]);
    session.say('Stop!');
    expect(session.ring(`${turnId}-deadline`)).toBe(30_000);
    expect(session.lines.slice(5)).toEqual(['tool ', 'cancelled', 'ready', 'acknowledged', 'processing/matching']);
    expect(toolCallsIn(session)[0]?.[0]?.result.data).toEqual({ error: 'outcome_unknown' });
    expect(session.rows(turnId).at(-1)).toMatchObject({ kind: 'tool', key: 'tool-1-1', call: { hasFailed: true } });
    session.tool(id(3), result('refunded'));
    expect(toolCallsIn(session)).toHaveLength(1);
  });

  it('rule 69: begins no turn after it whose message a forced deletion has deleted, and later messages begin theirs', () => {
    const { session, turnId, id } = matched();
    session.infer(id(2), ['shop__refund', {}]);
    session.say('Stop!');
    session.apply(deleteEvents(4, true));

    expect(session.lines.slice(4)).toEqual(['tool ', 'cancelled', 'ready']);
    expect([session.open.size, session.turnIds]).toEqual([0, [turnId]]);
    session.say('Another');
    session.finish();
    expect(session.lines.slice(7, 9)).toEqual(['user_message Another', 'acknowledged']);
    expect(session.lines.at(-1)).toBe('ready');
    expect(session.turnIds).toHaveLength(2);
  });
});
