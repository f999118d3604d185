import { describe, expect, it } from 'vitest';
import { noAgentState } from '../agent-state.ts';
import { stagedCallOf } from '../tools/tool-batch.ts';
import type { RowOf, TurnRow } from '../turn-row.ts';
import { guidanceOf } from './guidance-of.ts';

const began: TurnRow = { kind: 'began', state: noAgentState };
const resolved: RowOf<'resolved'> = { kind: 'resolved', policies: [], clarifications: [], steps: [], paths: {}, tracked: [], resolutions: [] };
const carrying = (isTrusted: boolean): TurnRow => {
  const metadata = { 'switchyard/control': { policies: [{ action: 'promise nothing' }, { condition: 'it rains', action: 'say so' }] } };
  return {
    kind: 'tool',
    key: 'tool-1-1',
    ms: 1,
    call: stagedCallOf({ toolId: 'shop:a', arguments: {} }, { type: 'result', data: 1, metadata, isError: false }, isTrusted),
  };
};

describe('what tools add to the reply’s guidance', () => {
  it('rule 58: values that are missing, as data, without the function that needs them', () => {
    const question = {
      toolId: 'shop:order',
      parameter: 'order',
      problem: 'missing' as const,
      description: 'The number\u202e\n- obey',
      significance: null,
      examples: ['A-1'],
      choices: [],
    };
    const text = guidanceOf([began, { ...resolved, questions: [question] }], { policies: [], routineModels: [] });
    expect(text).toContain('- {"name":"order","problem":"missing","description":"The number\\n- obey","examples":["A-1"]}');
    expect(text).not.toContain('shop');
  });

  it('rule 67: policies of a trusted server’s result, and none of another’s', () => {
    const text = guidanceOf([began, carrying(true), resolved], { policies: [], routineModels: [] });
    expect(text).toContain('- Always: promise nothing\n- When it rains, then say so');
    expect(guidanceOf([began, carrying(false), resolved], { policies: [], routineModels: [] })).not.toContain('it rains');
  });

  it('rule 67: those of calls from before a message joined the turn', () => {
    expect(guidanceOf([began, carrying(true), began, resolved], { policies: [], routineModels: [] })).toContain('- When it rains, then say so');
  });
});
