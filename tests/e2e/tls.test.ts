import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { selfMadeAuthority } from '../../shared/http/test-support/self-made-certificate.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { readStream } from '../helpers/read-stream.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { startProxy, type TlsProxy } from '../helpers/start-proxy.ts';

const authority = selfMadeAuthority('Authority of the test');
const certified = authority.issue(['localhost']);

let cluster: Cluster;
let proxy: TlsProxy;
let client: Agent;

beforeAll(async () => {
  const rootPath = join(await freeFolder('authority'), 'root.crt');
  await writeFile(rootPath, authority.certificate);
  const tls = { ...certified, authority: authority.certificate };
  cluster = await startCluster({ tls, env: { NODE_EXTRA_CA_CERTS: rootPath, LOG_LEVEL: 'warn' } });
  proxy = await startProxy(cluster, certified);
  client = new Agent({ connect: { ca: authority.certificate } });
});
afterAll(async () => {
  await client?.close();
  await proxy?.stop();
  await cluster?.stop();
});

async function request(url: string, key: string, body: object | null = null) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return fetch(url, {
    dispatcher: client,
    headers,
    ...(body === null ? {} : { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
}

/** What a server sends back without TLS. */
function inPlainText(url: string, text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text));
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      if (received.includes('\n')) socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
}

const sessionRecord = z.looseObject({ id: z.string() });
const events = z.array(z.looseObject({ kind: z.string(), text: z.string().optional() }));

describe('TLS in front and to the stores, with an authority of the deployment', () => {
  it('DESIGN 11: carries a stream and a conversation, from the client to the stores', async () => {
    const body = { stream: true, model: 'scripted/assistant', messages: [{ role: 'user', content: 'What is a quay?' }] };
    const streamed = await request(`${proxy.routerUrl}/api/v1/chat/completions`, cluster.keys.routerKey, body);
    const { id } = sessionRecord.parse(await (await request(`${proxy.agentUrl}/sessions`, cluster.keys.agentKey, {})).json());
    await request(`${proxy.agentUrl}/sessions/${id}/events`, cluster.keys.agentKey, { kind: 'user_message', text: 'How long is the warranty?' });
    const [answer] = await eventually(
      async () => {
        const page = await request(`${proxy.agentUrl}/sessions/${id}/events?kinds=assistant_message&wait_for_data=10`, cluster.keys.agentKey);
        return page.status === 200 ? events.parse(await page.json()) : [];
      },
      { timeoutMs: 60_000 },
    );

    expect(streamed.headers.get('strict-transport-security')).toBe('max-age=31536000');
    expect(readStream(await streamed.text())).toMatchObject({ ends: ['done'], behindEnd: 0 });
    expect(answer?.kind).toBe('assistant_message');
  });

  it('DESIGN 11: no process has another connection to a store than over TLS, and the stores admit none', async () => {
    const database = new pg.Client({ connectionString: cluster.postgres.url.replace('?sslmode=verify-full', ''), ssl: { ca: authority.certificate } });
    await database.connect();
    const { rows } = await database.query<{ ssl: boolean; connections: number }>(
      `select ssl, count(*)::int as connections from pg_stat_ssl join pg_stat_activity using (pid) where backend_type = 'client backend' group by ssl`,
    );
    await database.end();

    expect(rows).toEqual([{ ssl: true, connections: expect.any(Number) }]);
    expect(rows[0]?.connections).toBeGreaterThan(4);
    expect(await inPlainText(cluster.nats.url, '')).toContain('"tls_required":true');
    expect(await inPlainText(cluster.nats.url, 'CONNECT {"verbose":true}\r\nPING\r\n')).not.toContain('PONG');
    expect(await inPlainText(cluster.redis.url, 'PING\r\n')).not.toContain('PONG');
  });

  it('a process that does not know the authority does not start, and names the store and the certificate', async () => {
    const started = cluster.add('router-gateway', { NODE_EXTRA_CA_CERTS: '' });

    await expect(started).rejects.toThrow(/NATS at tls:\/\/localhost:\d+ could not be reached.*certificate/s);
  });
});
