import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentRows } from '#shared/config/agent-rows.ts';
import { type Manifest, manifest as schema } from '#shared/contracts/manifest/manifest.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { agentEntryOf, type Registrar, registrarOf, startRegistration } from './registration.ts';

function manifestWith({ endpoint = true, platform = {} }: { endpoint?: boolean; platform?: object } = {}): Manifest {
  return schema.parse({
    ...{ id: 'shop', name: 'Shop', version: '7', endpoint },
    agent_config: {
      runtime: { api_key: '${A}' },
      platform: { public_key: '${PUBLIC}', secret_key: '${SECRET}', ...platform },
      llms: { default: 'openai/gpt-5', api_key: '${A}' },
      context: { system_prompt: { id: 'acme', version: 1 }, language: 'match_user' },
    },
  });
}

const environment = { PUBLIC: 'pk', SECRET: 'sk', NO_PROXY: '*' };
const entry = { id: 'shop', name: 'Shop', version: '7', url: 'https://shop.example' };
const noDatabase = { query: () => Promise.reject(new Error('no database is used')) };
const quick = { renewEveryMs: 5, retryMs: 1 };

/** Counts its calls. */
function countingRegistrar(outcomes: (call: number) => Promise<void>) {
  const state = { calls: 0, isClosed: false };
  const registrar: Registrar = {
    register: () => {
      state.calls += 1;
      return outcomes(state.calls);
    },
    close: async () => {
      state.isClosed = true;
    },
  };
  return { state, registrar };
}

function recordingLog() {
  const lines: string[] = [];
  const log: Log = {
    ...silentLog,
    info: (_facts: object, message: string) => void lines.push(`info ${message}`),
    warn: (_facts: object, message: string) => void lines.push(`warn ${message}`),
  };
  return { log, lines };
}

describe('an agent with an endpoint', () => {
  it('needs its address, and one without registers nothing', () => {
    expect(agentEntryOf(manifestWith(), 'https://shop.example')).toEqual(entry);
    expect(() => agentEntryOf(manifestWith(), null)).toThrow('endpoint: AGENT_PUBLIC_URL is not set');
    expect(agentEntryOf(manifestWith({ endpoint: false }), 'https://shop.example')).toBeNull();
    expect(agentEntryOf(manifestWith({ endpoint: false }), null)).toBeNull();
  });

  it('is renewed until the gateway stops', async () => {
    const { state, registrar } = countingRegistrar(async () => {});
    const { log, lines } = recordingLog();
    const registration = startRegistration({ agent: entry, registrar, log, times: quick });
    await expect.poll(() => state.calls, { timeout: 60_000 }).toBeGreaterThan(3);

    await registration.stop();
    const { calls } = state;
    await new Promise((resolve) => setTimeout(resolve, 30));

    expect([state.calls, state.isClosed, lines.length]).toEqual([calls, true, 1]);
  });

  it('is tried again after a failure, with one line of the log for an outage', async () => {
    const { state, registrar } = countingRegistrar((call) => (call <= 3 || (call > 5 && call <= 8) ? Promise.reject(new Error('away')) : Promise.resolve()));
    const { log, lines } = recordingLog();
    const registration = startRegistration({ agent: entry, registrar, log, times: quick });
    await expect.poll(() => state.calls, { timeout: 60_000 }).toBeGreaterThan(9);
    await registration.stop();

    expect(lines.map((line) => line.slice(0, 4))).toEqual(['warn', 'info', 'warn', 'info']);
  });

  it('ends a request in flight when the gateway stops, without a line', async () => {
    const { log, lines } = recordingLog();
    let begun = () => {};
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const registrar: Registrar = {
      register: (_agent, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
          begun();
        }),
      close: async () => {},
    };
    const registration = startRegistration({ agent: entry, registrar, log });
    await isBegun;

    await registration.stop();
    expect(lines).toEqual([]);
  });
});

describe('its platform', () => {
  it('is not registered at without a key: the variable is named', () => {
    const manifest = manifestWith({ platform: { base_url: 'https://platform.example' } });
    const open = (given: Record<string, string>) => () => registrarOf({ manifest, publicBaseUrl: null, environment: given, database: noDatabase });

    expect(open({ SECRET: 'sk' })).toThrow('agent_config.platform.public_key: the environment variable PUBLIC is not set');
    expect(open({ PUBLIC: 'pk' })).toThrow('agent_config.platform.secret_key: the environment variable SECRET is not set');
  });

  async function platformServer(status: number): Promise<{ url: string; seen: { request: IncomingMessage; body: string }[] }> {
    const seen: { request: IncomingMessage; body: string }[] = [];
    const server: Server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on('end', () => {
        seen.push({ request, body });
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.closeAllConnections());
    onTestFinished(() => void server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }

  const registrarAt = (baseUrl: string) => {
    const manifest = manifestWith({ platform: { base_url: baseUrl } });
    const registrar = registrarOf({ manifest, publicBaseUrl: null, environment, database: noDatabase });
    onTestFinished(() => registrar.close());
    return registrar;
  };

  it('at another address gets it by PUT, with both keys', async () => {
    const { url, seen } = await platformServer(201);

    await registrarAt(`${url}/`).register(entry, new AbortController().signal);

    const [{ request, body } = { request: null, body: '' }] = seen;
    expect([request?.method, request?.url, request?.headers.authorization]).toEqual([
      'PUT',
      '/api/v1/platform/agents/shop',
      `Basic ${Buffer.from('pk:sk').toString('base64')}`,
    ]);
    expect(JSON.parse(body)).toEqual(entry);
  });

  it.each([401, 409, 503, 302])('that answers %i has not registered it', async (status) => {
    const { url, seen } = await platformServer(status);

    await expect(registrarAt(url).register(entry, new AbortController().signal)).rejects.toThrow(`answers ${status}`);
    expect(seen).toHaveLength(1);
  });

  it('that is this deployment has it in its own table', async () => {
    const database = await openTestDatabase();
    onTestFinished(() => database.close());
    await migrate(database);
    for (const [baseUrl, publicBaseUrl] of [
      [null, null],
      ['https://switchyard.example/', 'https://switchyard.example'],
    ] as const) {
      const manifest = manifestWith({ platform: { base_url: baseUrl } });
      await database.query('truncate agents');

      await registrarOf({ manifest, publicBaseUrl, environment, database }).register(entry, new AbortController().signal);

      expect(await new AgentRows(database).read('shop')).toMatchObject({ ...entry, isLive: true });
    }
  });
});
