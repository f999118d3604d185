import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SIGNATURE_HEADER, signatureOf } from '../../services/agent-gateway/test-support/signed.ts';
import { BEARER } from '../../services/agent-gateway/test-support/test-deployment.ts';
import { createLog } from '../../shared/telemetry/log.ts';
import { type AttackedAgent, openAttackedAgent, type Target } from './attacked-agent.ts';

const MIB = 1_024 * 1_024;
const JSON_TYPE = { ...BEARER, 'content-type': 'application/json' };

let agent: AttackedAgent;
beforeAll(async () => {
  agent = await openAttackedAgent();
});
afterEach(() => agent.deployment.closeApps());
afterAll(() => agent.deployment.close());

const withBodies = (): Target[] => agent.targets.filter(({ method }) => method !== 'GET' && method !== 'DELETE');
const nested = (depth: number, open: string, close: string) => `{"a":${open.repeat(depth)}1${close.repeat(depth)}}`;

/** Each way to an address that the operator has not allowed; the last ones are other spellings of what precedes them. */
const ADDRESSES = [
  'http://hooks.allowed.example/',
  'ftp://hooks.allowed.example/',
  'file:///etc/passwd',
  'https://user:hunter2@hooks.allowed.example/',
  'https://localhost/',
  'https://127.0.0.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://10.0.0.1/',
  'https://[::1]/',
  'https://[fe80::1]/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://①②⑦.⓪.⓪.①/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:a9fe:a9fe]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[2002:7f00:1::]/',
  'https://localhost./',
  'https://LOCALHOST%2e/',
  'https://hooks.allowed.example\\@127.0.0.1/',
  'https://hooks.allowed.example\n.evil.example/',
];

describe('addresses of callers', () => {
  it.each(ADDRESSES)('SECURITY 2.1: %j is no callback and no event webhook', async (url) => {
    const app = agent.app();
    const before = agent.deployment.owner.commands.length;
    const tries: [method: 'POST' | 'PUT', address: string, body: object, path: string][] = [
      ['POST', '/routines/open/trigger', { callback_url: url }, '/callback_url'],
      ['POST', '/routines/triage/trigger', { callback_url: url }, '/callback_url'],
      ['POST', '/sessions', { event_webhook_url: url }, '/event_webhook_url'],
      ['PUT', `/sessions/${agent.session}/event_webhook`, { url }, '/url'],
    ];
    for (const [method, address, payload, path] of tries) {
      const reply = await app.inject({ method, url: address, headers: JSON_TYPE, payload });
      expect([address, reply.statusCode, reply.json().path]).toEqual([address, 400, path]);
      expect(reply.body).not.toContain('hunter2');
    }
    expect(agent.deployment.owner.commands.length).toBe(before);
  });

  it.each([
    'https://allowed.example.evil.example/',
    'https://notallowed.example/',
    'https://evil.example/.allowed.example',
    'https://evil.example#.allowed.example',
    'https://allowed。example.evil.example/',
    'https://8.8.8.8/',
  ])('SECURITY 2.2: %j is not on the list of its routine', async (callback_url) => {
    const reply = await agent.app().inject({ method: 'POST', url: '/routines/triage/trigger', headers: JSON_TYPE, payload: { callback_url } });

    expect([reply.statusCode, reply.json().path]).toEqual([400, '/callback_url']);
  });
});

describe('bodies', () => {
  it('SECURITY 3.1: of more than 1 MiB are refused by every operation, however they are sent', async () => {
    const app = agent.app();
    const large = JSON.stringify({ text: 'x'.repeat(MIB) });

    expect(withBodies().length).toBeGreaterThan(10);
    for (const { name, method, url } of withBodies()) {
      expect([name, (await app.inject({ method, url, headers: JSON_TYPE, payload: large })).statusCode]).toEqual([name, 413]);
      // Without a length: it is counted as it comes.
      expect([name, (await app.inject({ method, url, headers: JSON_TYPE, payload: Readable.from([large]) })).statusCode]).toEqual([name, 413]);
    }
  });

  it('SECURITY 3.1: that are compressed are refused before they grow', async () => {
    const app = agent.app();
    for (const { name, method, url } of withBodies())
      for (const encoding of ['gzip', 'br', 'deflate', 'zstd', 'identity, gzip']) {
        const reply = await app.inject({ method, url, headers: { ...JSON_TYPE, 'content-encoding': encoding }, payload: '{}' });
        expect([name, encoding, reply.statusCode]).toEqual([name, encoding, 415]);
      }
  });

  it.each<[string, string]>([
    ['lists in lists, 200 deep', nested(200, '[', ']')],
    ['lists in lists, 400,000 deep', nested(400_000, '[', ']')],
    ['objects in objects, 100,000 deep', nested(100_000, '{"a":', '}')],
    ['that never end', '['.repeat(500_000)],
    ['a prototype', '{"__proto__":{"isAdmin":true}}'],
    ['a prototype within', '{"metadata":{"__proto__":{"isAdmin":true}}}'],
    ['the prototype of a constructor', '{"constructor":{"prototype":{"isAdmin":true}}}'],
  ])('SECURITY 3.2: of %s are 400 at every operation, and change nothing', async (_, payload) => {
    const app = agent.app();
    const before = agent.deployment.owner.commands.length;
    for (const { name, method, url } of withBodies()) {
      const reply = await app.inject({ method, url, headers: JSON_TYPE, payload });
      expect([name, reply.statusCode, reply.json().code]).toEqual([name, 400, 'validation_failed']);
    }
    expect(agent.deployment.owner.commands.length).toBe(before);
    expect(Reflect.get({}, 'isAdmin')).toBeUndefined();
    expect((await app.inject('/health/live')).statusCode).toBe(200);
  });

  it('SECURITY 3.2: of a signed delivery are bounded in the same way', async () => {
    const app = agent.app();
    const statusOf = async (payload: string) => {
      const headers = { [SIGNATURE_HEADER]: `sha256=${signatureOf(payload)}` };
      return (await app.inject({ method: 'POST', url: '/webhooks/triage', headers, payload })).statusCode;
    };

    expect(await statusOf(nested(400_000, '[', ']'))).toBe(400);
    expect(await statusOf('{"__proto__":{"isAdmin":true}}')).toBe(400);
    expect(await statusOf(JSON.stringify({ text: 'x'.repeat(MIB) }))).toBe(413);
  });
});

describe('headers and log lines', () => {
  const BREAKS = ['x\r\nset-cookie: a=b', 'x\nHTTP/1.1 200 OK', 'x\u0085y', 'x\u2028y', 'x\u0000y', '\u001b[2Jx', '{"level":"error"}\n{"level":"info"}'];

  it.each(BREAKS)('SECURITY 4.1: %j of a caller is in no header of an answer', async (text) => {
    const app = agent.app();
    const encoded = encodeURIComponent(text);
    const replies = [
      await app.inject({ url: `/auth/login?next=/${encoded}` }),
      await app.inject({ url: `/chat?x=${encoded}`, headers: { accept: 'text/html' } }),
      await app.inject({ url: `/sessions/${encoded}`, headers: BEARER }),
      await app.inject({ method: 'POST', url: '/auth/login', headers: { 'content-type': 'application/json' }, payload: { key: text, next: `/${text}` } }),
      await app.inject({ method: 'POST', url: '/sessions', headers: { ...JSON_TYPE, 'idempotency-key': encoded }, payload: { title: text } }),
      await app.inject({ method: 'POST', url: `/webhooks/${encoded}`, payload: '{}' }),
    ];
    for (const { headers } of replies)
      for (const [name, value] of Object.entries(headers)) {
        expect(name).not.toBe('set-cookie');
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
        expect(`${name}: ${value}`).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f]/);
      }
  });

  it('SECURITY 4.1: a request id that could not be a header or a field of a log is replaced', async () => {
    const app = agent.app();
    for (const id of ['x y', 'ü', '"', 'x'.repeat(129)]) {
      const reply = await app.inject({ url: '/health/live', headers: { 'x-request-id': id } });
      if (id !== '"') expect(reply.headers['x-request-id']).toMatch(/^req_/);
      expect(String(reply.headers['x-request-id'])).toMatch(/^[\x21-\x7e]{1,128}$/);
    }
  });

  it('SECURITY 4.1: a request that smuggles another one is refused, and its connection closed', async () => {
    const address = new URL(await agent.app().listen({ host: '127.0.0.1', port: 0 }));
    const inner = 'GET /runs HTTP/1.1\r\nHost: x\r\n\r\n';
    const attacks = [
      `POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
      `POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `POST /sessions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n${inner}`,
      `GET /health/live HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c: d\nX-B: e\r\n\r\n`,
    ];
    for (const attack of attacks)
      expect([attack, await answerTo(address, attack)]).toEqual([attack, expect.stringMatching(/^HTTP\/1\.1 40[01] (?:(?!HTTP\/1\.1)[\s\S])*$/)]);
  });

  it('SECURITY 4.2: a line of the log is one line, whatever callers send, and none has their text', async () => {
    const lines: string[] = [];
    const log = createLog({ level: 'info', format: 'json', service: 'agent-gateway', output: { write: (line) => void lines.push(line) } });
    const app = agent.app({ log });
    for (const text of BREAKS) {
      const payload = { kind: 'user_message', text: `hush ${text}`, title: `hush ${text}`, key: `hush ${text}` };
      for (const { method, url } of withBodies()) await app.inject({ method, url, headers: JSON_TYPE, payload });
      await app.inject({ url: `/sessions/hush${encodeURIComponent(text)}`, headers: { ...BEARER, 'user-agent': `hush` } });
      await app.inject({ method: 'POST', url: `/webhooks/hush${encodeURIComponent(text)}`, payload: '{}' });
    }
    for (const line of lines.join('').split('\n').filter(Boolean)) expect(JSON.parse(line)).toMatchObject({ service: 'agent-gateway' });
    expect(lines.join('')).not.toContain('hush');
  });
});

/** All that comes back until the server closes the connection, or falls silent. */
function answerTo({ hostname, port }: URL, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => socket.write(request));
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', reject).on('close', () => resolve(text));
  });
}
