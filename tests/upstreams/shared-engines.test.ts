import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openEngines, sharedEngines } from '../../services/router-worker/pipeline/engines.ts';
import { ItemAbortController } from '../../services/work/item-signal.ts';
import { pluginSettings } from '../../shared/config/plugin-settings.ts';
import { type EngineServer, openEngineServer } from './engine-server.ts';

const WAIT = { timeout: 60_000 };
const environment = { ENGINE_KEY: 'sk-engine' };

let server: EngineServer;
beforeAll(async () => {
  server = await openEngineServer('/v1/moderations', () => ({ results: [] }));
});
afterAll(() => server.close());

const settingsOf = (timeoutMs: number) =>
  pluginSettings.parse({
    moderation: { endpoint: { url: server.url, api_key: '${ENGINE_KEY}', timeout_ms: timeoutMs } },
    web: { name: 'acme', url: server.url },
  });

it('keeps the engine of a block that a reload does not change, with its requests, and closes it with the last configuration that has it', async () => {
  const shared = sharedEngines();
  const open = (timeoutMs = 60_000, connectTimeoutMs = 1_000) => openEngines({ settings: settingsOf(timeoutMs), environment, connectTimeoutMs, shared });
  const [first, second, changed] = [open(), open(), open(59_000)];

  expect(second.moderation).toBe(first.moderation);
  expect([changed.moderation === first.moderation, changed.web === first.web]).toEqual([false, true]);
  expect([shared.moderation.count, shared.web.count]).toEqual([2, 1]);
  await changed.close();

  server.fault = 'silent';
  const checking = second.moderation?.flaggedIn(['hello'], new ItemAbortController(), 'messages');
  checking?.catch(() => {});
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
  await first.close();
  await first.close();
  expect([shared.moderation.count, shared.web.count, server.aborts]).toEqual([1, 1, 0]);
  await second.close();
  await expect(checking).rejects.toMatchObject({ code: 'router.plugin_unavailable' });
  expect([shared.moderation.count, shared.web.count]).toEqual([0, 0]);
});

it('leaves nothing open where a later block can not be opened', () => {
  const shared = sharedEngines();
  const settings = pluginSettings.parse({
    moderation: { patterns: [{ reason: 'r', pattern: 'x' }] },
    web: { name: 'acme', url: server.url, api_key: '${NONE}' },
  });

  expect(() => openEngines({ settings, environment, connectTimeoutMs: 1_000, shared })).toThrow('NONE');
  expect([shared.moderation.count, shared.web.count]).toEqual([0, 0]);
});
