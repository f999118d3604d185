import { describe, expect, it } from 'vitest';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import type { InferAnswer, ParameterProblem } from './infer-answer.ts';
import { parameterQuestions } from './parameter-questions.ts';
import { callsToMake, stagedCallOf, toolEventOf, toolsToReevaluate } from './tool-batch.ts';

const runs = (toolId: string, args: Record<string, unknown> = {}): InferAnswer['tools'][number] => ({
  outcome: 'needs_to_run',
  toolId,
  listHash: 'h1',
  arguments: args,
});
const result = (data: unknown, metadata: Record<string, unknown> = {}, isError = false): ToolOutcome => ({ type: 'result', data, metadata, isError });
const controlled = (control: unknown) => result('x', { 'switchyard/control': control });
const call = { toolId: 'shop:order', arguments: { id: 1 } };
const keyed = (answers: InferAnswer[]) => answers.map((answer, index) => ({ key: `infer-1-${index + 1}`, answer }));
const AUTO = { mode: null, lifespan: 'session', policies: [] };

describe('a batch of calls', () => {
  it('rule 60: makes the same call once a turn, whatever the order of its arguments', () => {
    const answers = [
      { tools: [runs('shop:order', { a: 1, b: 2 }), runs('shop:order', { b: 2, a: 1 }), runs('shop:order', { a: 2 })] },
      { tools: [runs('shop:order', { a: 2 })] },
    ];
    expect(callsToMake(keyed(answers), []).map((one) => one.arguments)).toEqual([{ a: 1, b: 2 }, { a: 2 }]);
    expect(callsToMake(keyed(answers), [{ toolId: 'shop:order', arguments: { b: 2, a: 1 } }]).map((one) => one.arguments)).toEqual([{ a: 2 }]);
    expect(callsToMake(keyed(answers), [{ toolId: 'crm:order', arguments: { a: 1, b: 2 } }])).toHaveLength(2);
  });

  it('rule 61: has 16 calls at most, the first ones', () => {
    const tools = Array.from({ length: 20 }, (_, index) => runs('shop:order', { index }));
    expect(callsToMake(keyed([{ tools }]), []).map((one) => one.arguments['index'])).toEqual(Array.from({ length: 16 }, (_, index) => index));
  });

  it('rule 62: is one event in the order of inference, with its failures', () => {
    const calls = [
      stagedCallOf({ toolId: 'shop:b', arguments: { n: 1 } }, result({ sum: 3 }), false),
      stagedCallOf({ toolId: 'shop:a', arguments: {} }, { type: 'failed', reason: 'outcome_unknown', message: 'no answer' }, false),
    ];
    expect(toolEventOf(calls)).toEqual({
      kind: 'tool',
      tool_calls: [
        { tool_id: 'shop:b', arguments: { n: 1 }, result: { data: { sum: 3 }, metadata: {} } },
        { tool_id: 'shop:a', arguments: {}, result: { data: { error: 'outcome_unknown' }, metadata: { error: 'no answer' } } },
      ],
    });
  });

  it.each<[string, ToolOutcome, unknown, boolean]>([
    ['a failure', { type: 'failed', reason: 'unreachable', message: 'the server says: secret' }, { error: 'unreachable' }, true],
    ['an error of the tool', result('sold out', {}, true), 'sold out', true],
    ['a result', result(null), null, false],
  ])('rule 63: keeps %s as data for the model', (_, outcome, data, hasFailed) => {
    expect(stagedCallOf(call, outcome, false)).toMatchObject({ hasFailed, result: { data } });
    expect(JSON.stringify(stagedCallOf(call, outcome, false).result.data)).not.toContain('secret');
  });

  it.each<[string, ToolOutcome]>([
    ['succeeded', result('x')],
    ['failed', { type: 'failed', reason: 'timeout', message: '' }],
    ['is an error', result('x', {}, true)],
  ])('rule 64: forces another pass by a named tool whose call %s', (_, outcome) => {
    const calls = [stagedCallOf(call, outcome, false), stagedCallOf({ toolId: 'shop:refund', arguments: {} }, outcome, false)];
    expect(toolsToReevaluate(calls, ['shop:order'], [])).toEqual(['shop:order']);
    expect(toolsToReevaluate(calls, [], ['shop:refund'])).toEqual(['shop:refund']);
    expect(toolsToReevaluate(calls, ['shop:steal'], [])).toEqual([]);
    expect(toolsToReevaluate([], ['shop:order'], ['shop:order'])).toEqual([]);
  });

  it.each<[string, unknown, object]>([
    ['nothing', undefined, AUTO],
    ['another mode', { mode: 'manual' }, { ...AUTO, mode: 'manual' }],
    ['a mode that does not exist', { mode: 'root', lifespan: 'response' }, { ...AUTO, lifespan: 'response' }],
    ['a lifespan that does not exist', { lifespan: 'forever', mode: 'auto' }, { ...AUTO, mode: 'auto' }],
    ['unknown fields', { delete_session: true }, AUTO],
    ['a text', 'manual', AUTO],
    ['a list', ['manual'], AUTO],
    ['null', null, AUTO],
  ])('rule 65: is asked for %s', (_, control, expected) => {
    expect(stagedCallOf(call, controlled(control), true).control).toEqual(expected);
  });

  it('rule 65: a failed call asks for nothing', () => {
    expect(stagedCallOf(call, { type: 'failed', reason: 'refused', message: '' }, true).control).toEqual(AUTO);
  });

  it('rule 66: leaves results for this reply out of the log', () => {
    const passing = stagedCallOf(call, controlled({ lifespan: 'response' }), false);
    const lasting = stagedCallOf({ toolId: 'shop:refund', arguments: {} }, result('y'), false);
    expect(toolEventOf([passing])).toBeNull();
    expect(toolEventOf([])).toBeNull();
    expect(toolEventOf([passing, lasting])?.tool_calls.map((one) => one.tool_id)).toEqual(['shop:refund']);
  });

  it('rule 67: takes policies from trusted servers alone, 16 at most, and well formed ones only', () => {
    const policies = [
      { action: 'serve\u202e tea' },
      { condition: 'it rains', action: 'say so' },
      { condition: 'no action' },
      { action: 7 },
      { action: '' },
      { action: 'x'.repeat(2_001) },
    ];
    const taken = [
      { condition: null, action: 'serve tea' },
      { condition: 'it rains', action: 'say so' },
    ];
    expect(stagedCallOf(call, controlled({ policies }), true).control.policies).toEqual(taken);
    expect(stagedCallOf(call, controlled({ policies }), false).control.policies).toEqual([]);
    const many = Array.from({ length: 40 }, (_, index) => ({ action: `do ${index}` }));
    expect(stagedCallOf(call, controlled({ policies: many }), true).control.policies).toHaveLength(16);
  });
});

describe('questions to the customer', () => {
  const problem = (parameter: string, more: Partial<ParameterProblem> = {}): ParameterProblem => ({
    parameter,
    problem: 'missing',
    description: null,
    significance: null,
    examples: [],
    choices: [],
    precedence: 0,
    hidden: false,
    ...more,
  });
  const stuck = (toolId: string, ...problems: ParameterProblem[]): InferAnswer => ({ tools: [{ outcome: 'cannot_run', toolId, problems, rationale: null }] });
  const asked = (answers: InferAnswer[], ran: string[] = []) =>
    parameterQuestions(answers, new Set(ran)).map(({ toolId, parameter }) => `${toolId} ${parameter}`);

  it('rule 58: ask for the lowest precedence among all tools', () => {
    const answers = [
      stuck('shop:a', problem('late', { precedence: 2 }), problem('early', { precedence: -1 })),
      stuck('shop:b', problem('too', { precedence: -1 }), problem('zero')),
    ];
    expect(asked(answers)).toEqual(['shop:a early', 'shop:b too']);
  });

  it('rule 58: never mention hidden parameters, which hold back no others', () => {
    expect(asked([stuck('shop:a', problem('secret', { hidden: true, precedence: -5 }), problem('size'))])).toEqual(['shop:a size']);
    expect(asked([stuck('shop:a', problem('secret', { hidden: true }))])).toEqual([]);
  });

  it('rule 58: show what the schema says, and nothing of how it is ordered', () => {
    const shown = { problem: 'invalid' as const, description: 'The size', significance: 'It must fit.', examples: ['m'], choices: ['s', 'm'] };
    expect(parameterQuestions([stuck('shop:a', problem('size', { ...shown, precedence: 3 }))], new Set())).toEqual([
      { toolId: 'shop:a', parameter: 'size', ...shown },
    ]);
  });

  it('rule 59: ask nothing for a tool that was called', () => {
    expect(asked([stuck('shop:a', problem('size')), stuck('shop:b', problem('size'))], ['shop:a'])).toEqual(['shop:b size']);
  });
});
