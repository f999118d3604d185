import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { locationOfKey, requestedKeys, routerKeyLocations } from './callers-keys.ts';

const keys = [
  { key: '${ROUTER_API_KEY}', disabled: false, management: false },
  { key: '${SHOP_FRONT_KEY}', disabled: false, management: false },
  { key: '${OLD_KEY}', disabled: true, management: false },
  { key: '${ROUTER_MANAGEMENT_KEY}', disabled: false, management: true },
  { key: `sha256:${'0'.repeat(64)}`, disabled: false, management: false },
];

it('places a generated key in the key file, and one that the operator gave in its variable', () => {
  expect(locationOfKey('${AGENT_API_KEY}', {})).toEqual({ field: 'agent_key' });
  expect(locationOfKey('${AGENT_API_KEY}', { AGENT_API_KEY: '' })).toEqual({ field: 'agent_key' });
  expect(locationOfKey('${AGENT_API_KEY}', { AGENT_API_KEY: 'mine' })).toEqual({ variable: 'AGENT_API_KEY' });
  expect(locationOfKey('${SUPPORT_KEY}', { SUPPORT_KEY: 'mine' })).toEqual({ variable: 'SUPPORT_KEY' });
});

it('places the keys of the router, without those that are disabled or known by their hash', () => {
  expect(routerKeyLocations({ keys }, {})).toEqual([{ field: 'router_key' }, { variable: 'SHOP_FRONT_KEY' }]);
  expect(routerKeyLocations({ keys: keys.slice(2) }, {})).toEqual([]);
  expect(routerKeyLocations({ keys }, {}, { management: true })).toEqual([{ field: 'router_management_key' }]);
  expect(routerKeyLocations({ keys }, { ROUTER_MANAGEMENT_KEY: 'mine' }, { management: true })).toEqual([{ variable: 'ROUTER_MANAGEMENT_KEY' }]);
});

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-wanted-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('requires no key that would be refused: none that neither configuration names as a caller’s', async () => {
  const [routerConfigPath, manifestPath] = [join(folder, 'router.yaml'), join(folder, 'manifest.yaml')];
  await writeFile(routerConfigPath, 'keys: [{ id: a, key: "${MY_KEY}" }]');
  await writeFile(manifestPath, 'runtime: { api_key: "${SUPPORT_KEY}" }, llms: { api_key: "${ROUTER_API_KEY}" }');
  expect(await requestedKeys({ routerConfigPath, manifestPath, isSampleAgent: true })).toEqual([]);

  await writeFile(routerConfigPath, 'keys: [{ id: a, key: "${ROUTER_API_KEY}" }]');
  expect(await requestedKeys({ routerConfigPath, manifestPath, isSampleAgent: true })).toEqual(['ROUTER_API_KEY']);
  expect(await requestedKeys({ routerConfigPath: null, isSampleAgent: true, manifestPath: 'examples/acme-support/manifest.yaml' })).toEqual([
    'ROUTER_API_KEY',
    'ROUTER_MANAGEMENT_KEY',
    'AGENT_API_KEY',
  ]);
});
