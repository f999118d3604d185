import { expect, it } from 'vitest';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { createLog } from '#shared/telemetry/log.ts';
import { discoverTools } from './discover-tools.ts';

it('lists a server once, and again when it has announced a change', async () => {
  const bundle = { hash: 'b1', body: { manifest: { agent_config: { mcps: [{ id: 'shop' }, { id: 'crm' }] } } } } as unknown as Bundle;
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
  };
  const discovery = discoverTools({ bundles: { newest }, lists, log: createLog({ level: 'silent', service: 'test' }), pollMs: 1 });
  await expect.poll(() => polls).toBeGreaterThan(5);
  expect(listed).toEqual(['shop', 'crm']);
  stale.add('crm');
  await expect.poll(() => listed).toEqual(['shop', 'crm', 'crm']);
  await discovery.stop();
});
