import { expect, it } from 'vitest';
import type { ListedTool } from '#bus/messages/tool.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { createLog } from '#shared/telemetry/log.ts';
import { discoverTools } from './discover-tools.ts';

it('lists a server once, and again when it has announced a change', async () => {
  const bundle = bundleOf();
  const stale = new Set<string>();
  const listed: string[] = [];
  let polls = 0;
  const newest = async () => {
    polls += 1;
    return bundle;
  };
  const lists = {
    isStale: (_: Bundle | null, id: string) => stale.has(id),
    current: async (_: Bundle, id: string) => {
      listed.push(id);
      stale.delete(id);
      return { listHash: id };
    },
    tool: async () => null,
  };
  const discovery = discoverTools({ bundles: { newest }, lists, log: createLog({ level: 'silent', service: 'test' }), pollMs: 1 });
  await expect.poll(() => polls).toBeGreaterThan(5);
  expect(listed).toEqual(['shop', 'crm']);
  stale.add('crm');
  await expect.poll(() => listed).toEqual(['shop', 'crm', 'crm']);
  await discovery.stop();
});

it('rule 50: warns of tools that the documents name and their server does not list, once for each list', async () => {
  const step = (tools: string[]) => ({ kind: 'tool', id: 'call', tool_state: tools });
  const bundle = bundleOf({
    policies: [
      { enabled: true, tools: ['shop:order', 'shop:ordr'] },
      { enabled: false, tools: ['shop:off'] },
    ],
    routines: [{ enabled: true, tools: ['shop:*', 'crm:note'], steps: [step(['crm:call', 'shop:ordr']), { kind: 'chat', id: 'ask', chat_state: 'Ask.' }] }],
    variable_sets: [{ variables: [{ tool_id: 'crm:level' }, { tool_id: null }] }],
  });
  let hash = 'first';
  let polls = 0;
  const listed: Record<string, string[]> = { first: ['order', 'note'], second: ['order', 'ordr', 'call', 'level', 'again'] };
  const lines: object[] = [];
  const log = { ...createLog({ level: 'silent', service: 'test' }), warn: (fields: object) => void lines.push(fields) };
  const lists = {
    isStale: () => true,
    current: async () => {
      polls += 1;
      return { listHash: hash };
    },
    tool: async (listHash: string, name: string) => (listed[listHash]?.includes(name) === true ? ({ name } as ListedTool) : null),
  };
  const discovery = discoverTools({ bundles: { newest: async () => bundle }, lists, log, pollMs: 1 });
  await expect.poll(() => polls, { timeout: 60_000 }).toBeGreaterThan(8);
  expect(lines).toEqual([
    { server: 'shop', tools: ['ordr'] },
    { server: 'crm', tools: ['call', 'level', 'again'] },
  ]);
  hash = 'second';
  await expect.poll(() => lines, { timeout: 60_000 }).toHaveLength(3);
  expect(lines[2]).toEqual({ server: 'crm', tools: ['note'] });
  await discovery.stop();
});

function bundleOf(documents: object = {}): Bundle {
  const agent_config = { mcps: [{ id: 'shop' }, { id: 'crm' }], context: { reevaluation_tools: [{ id: 'crm:again' }] } };
  return { hash: 'b1', body: { manifest: { agent_config }, documents: { policies: [], routines: [], variable_sets: [], ...documents } } } as unknown as Bundle;
}
