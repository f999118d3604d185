import { expect, it, onTestFinished } from 'vitest';
import { openHttpDouble } from '#services/effect-worker/test-support/http-double.ts';
import { openSdkToolServer } from '#services/effect-worker/test-support/tool-server-doubles.ts';
import { systemClock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { probeToolServers } from './probe-tool-servers.ts';

const environment = { SHOP_KEY: 'shop-secret' };
const trying = (mcps: object[]) => probeToolServers(bundleWith(mcps), { environment, clock: systemClock });

it('reports nothing about a server that answers', async () => {
  const server = await openSdkToolServer(() => {});
  onTestFinished(() => server.close());

  expect(await trying([{ id: 'shop', hostname: 'http://127.0.0.1', port: server.port }])).toEqual([]);
  expect(server.messages('initialize')).toHaveLength(1);
});

it('names each that can’t be used with what to do, all together', async () => {
  const refusing = await openHttpDouble((_, response) => void response.writeHead(401).end());
  onTestFinished(() => refusing.close());
  const at = { hostname: 'http://127.0.0.1' };

  expect(
    await trying([
      { id: 'gone', ...at, port: 9 },
      { id: 'open', ...at, port: refusing.port },
      { id: 'shut', ...at, port: refusing.port, api_key: '${SHOP_KEY}' },
    ]),
  ).toEqual([
    'the tool server "gone" at http://127.0.0.1:9/mcp is unavailable (it can\'t be reached): start it, or correct agent_config.mcps[0]; until it responds the agent runs without its tools',
    `the tool server "open" at http://127.0.0.1:${refusing.port}/mcp requires a key (401): set agent_config.mcps[1].api_key`,
    `the tool server "shut" at http://127.0.0.1:${refusing.port}/mcp rejects the key (401): correct $SHOP_KEY`,
  ]);
});

it('waits for none that does not answer', async () => {
  const silent = await openHttpDouble(() => {});
  onTestFinished(() => silent.close());

  expect(await trying([{ id: 'silent', hostname: 'http://127.0.0.1', port: silent.port }])).toEqual([
    expect.stringContaining('is unavailable (no response within 3 s)'),
  ]);
});

function bundleWith(mcps: object[]): Bundle {
  const config = {
    runtime: { api_key: '${A}' },
    platform: { public_key: '${B}', secret_key: '${C}' },
    llms: { default: 'a/b', api_key: '${D}' },
    context: { system_prompt: { id: 'p', version: 1 }, language: 'match_user' },
    mcps,
  };
  const documents = { prompts: [], routines: [], policies: [], glossaries: [], macros: [], variable_sets: [] };
  return { hash: 'h', body: { manifest: manifest.parse({ id: 'a', name: 'A', version: '1', agent_config: config }), documents } };
}
