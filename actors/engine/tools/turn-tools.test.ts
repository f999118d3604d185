import { describe, expect, it } from 'vitest';
import { planInference, reasonKeyOf } from './turn-tools.ts';

const listed = (name: string) => ({ name, title: null, description: null, inputSchema: { type: 'object' }, repeatable: false });
const lists = { shop: { hash: 'h1', tools: [listed('order'), listed('refund'), listed('steal')] }, crm: { hash: 'h2', tools: [listed('ticket')] } };
const policy = (id: string, ...tools: string[]) => ({ id, condition: `when ${id}`, action: `do ${id}`, tools });
const none = { policies: [], steps: [], lists, inferred: new Set<string>() };

describe('the tools of a turn', () => {
  it('rule 50: are those of matched policies and current steps, and no others', () => {
    const steps = [{ routineId: 'r1', stepId: 's2', tools: ['crm:ticket', 'shop:order'], instruction: 'open a ticket' }];
    const { groups } = planInference({ ...none, policies: [policy('p1', 'shop:refund', 'shop:order')], steps });
    expect(groups).toEqual([
      {
        tools: [
          { toolId: 'crm:ticket', reasons: [{ by: 'step', id: 'r1:s2', condition: null, action: 'open a ticket' }] },
          {
            toolId: 'shop:order',
            reasons: [
              { by: 'policy', id: 'p1', condition: 'when p1', action: 'do p1' },
              { by: 'step', id: 'r1:s2', condition: null, action: 'open a ticket' },
            ],
          },
          { toolId: 'shop:refund', reasons: [{ by: 'policy', id: 'p1', condition: 'when p1', action: 'do p1' }] },
        ],
        lists,
      },
    ]);
    expect(planInference(none).groups).toEqual([]);
  });

  it('rule 50: without a stored list are left out, and named', () => {
    const { groups, unlisted } = planInference({ ...none, policies: [policy('p1', 'shop:gone', 'away:a', 'constructor:name', 'shop:order')] });
    expect(groups.flatMap(({ tools }) => tools.map(({ toolId }) => toolId))).toEqual(['shop:order']);
    expect(unlisted).toEqual(['away:a', 'constructor:name', 'shop:gone']);
  });

  it('rule 51: are asked about once for each policy and step', () => {
    const inferred = new Set([reasonKeyOf({ by: 'policy', id: 'p1' })]);
    const { groups } = planInference({ ...none, inferred, policies: [policy('p1', 'shop:order', 'shop:refund'), policy('p2', 'shop:refund')] });
    expect(groups.flatMap(({ tools }) => tools)).toEqual([{ toolId: 'shop:refund', reasons: [expect.objectContaining({ id: 'p2' })] }]);
  });

  it('rule 52: are one group, up to 32, in the order of their ids, whatever the order of policies', () => {
    const many = { big: { hash: 'h3', tools: Array.from({ length: 70 }, (_, index) => listed(`t${index}`)) } };
    const ids = many.big.tools.map(({ name }) => `big:${name}`);
    const plan = (tools: string[]) => planInference({ ...none, lists: { ...lists, ...many }, policies: [policy('p1', 'shop:order', ...tools)] });
    const { groups } = plan(ids);
    expect(groups.map(({ tools }) => tools.length)).toEqual([32, 32, 7]);
    expect(groups.map((group) => Object.keys(group.lists))).toEqual([['big'], ['big'], ['shop', 'big']]);
    expect(plan(ids.toReversed())).toEqual(plan(ids));
  });
});
