import { describe, expect, it } from 'vitest';
import { routine as routineSchema } from '#shared/contracts/documents/routine.ts';
import { graphOf } from './graph.ts';

const chat = (id: string) => ({ kind: 'chat', id, chat_state: `Say ${id}.` });
const graphWith = (parts: object) =>
  graphOf(routineSchema.parse({ id: 'r', version: 1, conditions: ['The customer asks'], steps: [chat('a'), chat('b')], ...parts }));

const edgesOf = (parts: object) => graphWith(parts).edges.map(({ id, source, target, condition }) => [id, source, target, condition]);

describe('the graph of a routine', () => {
  it('rule 30: has the root first and the end last, and each step with what it does', () => {
    const steps = [
      { ...chat('a'), description: 'first', labels: ['x'], metadata: { team: 1 } },
      { kind: 'tool', id: 't', tool_state: ['s:tool'], tool_instruction: 'Look it up.' },
      { kind: 'tool', id: 'u', tool_state: ['s:other'] },
      { kind: 'fork', id: 'f' },
    ];
    const transitions = [
      { from: 'a', to: 't' },
      { from: 't', to: 'u' },
      { from: 'u', to: 'f' },
      { from: 'f', to: 'a', when: 'no' },
      { from: 'f', to: 'end', when: 'yes' },
    ];
    const nodes = [...graphWith({ steps, transitions }).nodes.values()];
    const none = { description: null, tools: [], labels: [], metadata: {} };
    expect(nodes).toEqual([
      { id: 'root', kind: 'root', action: null, ...none },
      { id: 'a', kind: 'chat', action: 'Say a.', description: 'first', tools: [], labels: ['x'], metadata: { team: 1 } },
      { id: 't', kind: 'tool', action: 'Look it up.', ...none, tools: ['s:tool'] },
      { id: 'u', kind: 'tool', action: null, ...none, tools: ['s:other'] },
      { id: 'f', kind: 'fork', action: null, ...none },
      { id: 'end', kind: 'end', action: null, ...none },
    ]);
  });

  it('begins with the first step, and numbers transitions without an id', () => {
    expect(edgesOf({ transitions: [{ from: 'a', to: 'b' }] })).toEqual([
      ['transition:0', 'root', 'a', null],
      ['transition:1', 'a', 'b', null],
    ]);
  });

  it('begins with the initial step, beside conditional transitions from the root', () => {
    const transitions = [
      { id: 'urgent', from: 'root', to: 'a', when: 'It is urgent' },
      { from: 'a', to: 'b' },
    ];
    expect(edgesOf({ initial_step: 'b', transitions })).toEqual([
      ['transition:0', 'root', 'b', null],
      ['urgent', 'root', 'a', 'It is urgent'],
      ['transition:2', 'a', 'b', null],
    ]);
    expect(edgesOf({ transitions: [...transitions.slice(0, 1), { from: 'root', to: 'b' }] })).toEqual([
      ['urgent', 'root', 'a', 'It is urgent'],
      ['transition:2', 'root', 'b', null],
    ]);
  });

  it('begins only on a condition when transitions from the root have conditions and no step is the initial one', () => {
    const transitions = [
      { from: 'root', to: 'a', when: 'It is urgent' },
      { from: 'root', to: 'b', when: 'It is not' },
    ];
    expect(edgesOf({ transitions }).map(([id]) => id)).toEqual(['transition:1', 'transition:2']);
  });

  it('leads from the root to the end without steps', () => {
    const parsed = routineSchema.parse({ id: 'r', version: 1, kind: 'autonomous', instructions: 'Do it.' });
    expect(graphOf(parsed).edges).toEqual([{ id: 'transition:0', source: 'root', target: 'end', condition: null }]);
  });
});
