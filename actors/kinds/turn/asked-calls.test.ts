import { describe, expect, it } from 'vitest';
import { noAgentState } from '../../engine/agent-state.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import type { RowOf, TurnRow } from '../../engine/turn-row.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { askedCall, decideNext } from './asked-calls.ts';

const documents = testEngineDocuments({ policies: ['leak', 'refund', 'greet'].map((id) => testPolicy(id)), batchSize: 1 });
/** Of which nothing is asked. */
const others = testEngineDocuments({ policies: [] });

/** Its first row, and the calls that were asked for. */
function begun() {
  const began: TurnRow = { kind: 'began', state: noAgentState };
  const decision = decideNext(documents, [began]);
  if (decision.type !== 'ask') throw new TypeError('nothing is asked');
  return { began, calls: decision.calls };
}

const answered = ({ key, reference }: { key: string; reference: unknown }): TurnRow =>
  ({ kind: 'match', key, reference, answer: { class: 'actionable', verdicts: [] }, model: 'm', ms: 0, tokens: 0 }) as unknown as RowOf<'match'>;

describe('a call that a turn awaits', () => {
  it('is the one that was asked for, whatever has been answered since', () => {
    const { began, calls } = begun();
    const [first, second, third] = calls;
    if (first === undefined) throw new TypeError('there are three policies');

    // By documents that need no call: nothing is decided anew.
    expect(askedCall(second?.key ?? '', others, [began, answered(first)])).toBe(second);
    expect(askedCall(third?.key ?? '', others, [began])).toBe(third);
  });

  it('is found from the rows alone where another process has asked for it', () => {
    const { began, calls } = begun();
    const stored = JSON.parse(JSON.stringify([began])) as TurnRow[];

    expect(askedCall(calls[1]?.key ?? '', documents, stored)).toEqual(calls[1]);
    expect(askedCall(calls[1]?.key ?? '', others, JSON.parse(JSON.stringify([began])) as TurnRow[])).toBeUndefined();
  });

  it('is none of before a message joined', () => {
    const { began, calls } = begun();

    expect(askedCall(calls[0]?.key ?? '', others, [began, { kind: 'began', state: noAgentState }])).toBeUndefined();
  });
});
