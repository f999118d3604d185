import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { API_KEY, BEARER } from '../../services/agent-gateway/test-support/test-deployment.ts';
import { type AttackedAgent, faceOf, openAttackedAgent } from './attacked-agent.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const COOKIE = `agent_auth=${API_KEY}`;

let agent: AttackedAgent;
beforeAll(async () => {
  agent = await openAttackedAgent();
});
afterEach(() => agent.deployment.closeApps());
afterAll(() => agent.deployment.close());

const changing = () => agent.targets.filter(({ method }) => method !== 'GET');

describe('the key of the agent', () => {
  it.each<[string, Record<string, string>]>([
    ['none', {}],
    ['an empty one', { authorization: 'Bearer ' }],
    ['its beginning', { authorization: `Bearer ${API_KEY.slice(0, -1)}` }],
    ['more than it', { authorization: `Bearer ${API_KEY}x` }],
    ['it in capitals', { authorization: `Bearer ${API_KEY.toUpperCase()}` }],
    ['it under another scheme', { authorization: `Basic ${Buffer.from(`:${API_KEY}`).toString('base64')}` }],
    ['it twice', { authorization: `Bearer ${API_KEY}, Bearer ${API_KEY}` }],
    ['it behind another', { authorization: `Bearer x ${API_KEY}` }],
    ['it in other headers', { 'x-api-key': API_KEY, 'proxy-authorization': `Bearer ${API_KEY}`, 'x-original-url': '/health' }],
    ['it in a cookie beside a wrong header', { authorization: 'Bearer sk-wrong', cookie: COOKIE, 'sec-fetch-site': 'same-origin' }],
  ])('SECURITY 1.1: %s opens no operation, and the refusals are the same', async (_, headers) => {
    const app = agent.app();
    const before = agent.deployment.owner.commands.length;
    const expected = faceOf(await app.inject({ url: '/runs' }));

    expect(expected).toMatchObject({ statusCode: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(agent.targets.length).toBeGreaterThan(25);
    for (const { name, method, url } of agent.targets) expect({ name, ...faceOf(await app.inject({ method, url, headers })) }).toEqual({ name, ...expected });
    expect(agent.deployment.owner.commands.length).toBe(before);
  });

  it('SECURITY 1.1: is needed to learn what exists, also by requests that can not be served', async () => {
    const app = agent.app();
    const faces = [];
    for (const session of [agent.session, 'ses_unknown'])
      faces.push(faceOf(await app.inject({ url: `/sessions/${session}/events`, headers: { expect: 'other' } })));

    expect(faces[0]).toMatchObject({ statusCode: 400 });
    expect(faces[1]).toEqual(faces[0]);
  });

  it('SECURITY 1.1: in the address opens nothing', async () => {
    const app = agent.app();
    for (const query of [`api_key=${API_KEY}`, `key=${API_KEY}`, `access_token=${API_KEY}`, `authorization=Bearer%20${API_KEY}`])
      expect((await app.inject(`/runs?${query}`)).statusCode).toBe(401);
  });
});

describe('the cookie of a login', () => {
  it.each<[string, Record<string, string>]>([
    ['of another site', { host: 'agent.example', 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['of a sibling domain', { host: 'agent.example', 'sec-fetch-site': 'same-site', origin: 'https://www.agent.example' }],
    ['of another port of the host', { host: 'agent.example:8080', origin: 'http://agent.example:3000' }],
    ['of a sandboxed frame', { host: 'agent.example', origin: 'null' }],
    ['of a host that begins with this one', { host: 'agent.example', origin: 'https://agent.example.evil.example' }],
    ['of no known page', { host: 'agent.example' }],
  ])('SECURITY 1.2: changes nothing for a page %s, at any operation', async (_, headers) => {
    const app = agent.app();
    const before = agent.deployment.owner.commands.length;

    expect(changing().length).toBeGreaterThan(12);
    for (const { name, method, url } of changing()) {
      const reply = await app.inject({ method, url, headers: { ...headers, cookie: COOKIE, 'content-type': 'application/json' }, payload: '{}' });
      expect([name, reply.statusCode]).toEqual([name, 403]);
    }
    expect(agent.deployment.owner.commands.length).toBe(before);
  });

  it('SECURITY 1.2: forms, which browsers send to any site without asking first, are no body of an operation', async () => {
    const app = agent.app();
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x'])
      for (const { name, method, url } of changing().filter(({ method: one }) => one !== 'DELETE')) {
        const reply = await app.inject({ method, url, headers: { ...BEARER, 'content-type': type }, payload: 'name=Ada' });
        expect([name, type, [400, 415].includes(reply.statusCode)]).toEqual([name, type, true]);
      }
  });
});

/** Where a credential of a caller, or a tag made with a secret, is compared. */
const COMPARED = [
  'bus/command-tags.ts',
  'services/agent-gateway/plugins/agent-auth.ts',
  'services/agent-gateway/webhooks/signature.ts',
  'services/router-gateway/account/code-challenge.ts',
  'services/router-gateway/plugins/bearer-auth.ts',
  'services/router-gateway/plugins/platform-auth.ts',
  'shared/generation-id.ts',
];
const NAME = String.raw`[\w.$#?]*(?:secret|apikey|password|signature|credential|digest|hmac)\w*`;
const VALUE = String.raw`(?!null\b|undefined\b|true\b|false\b|['"\d])[\w.$#?]+`;
const PLAIN = new RegExp(
  String.raw`(?:^|[\s(!])(?:${NAME}\s*[!=]==\s*${VALUE}|${VALUE}\s*[!=]==\s*${NAME})|\b${NAME}\.(?:equals|localeCompare|startsWith)\(`,
  'i',
);

it('SECURITY 1.3: credentials are compared in constant time, in these files and in no other way', () => {
  const sources = ['actors', 'bus', 'client', 'services', 'shared']
    .flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => `${room}/${path.replaceAll('\\', '/')}`))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.includes('/test-support/'))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
  const plain = sources.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, index) => (!/^\s*(?:\*|\/)/.test(line) && PLAIN.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );

  expect(sources.filter(({ text }) => text.includes('timingSafeEqual(')).map(({ file }) => file)).toEqual(COMPARED);
  expect(plain).toEqual([]);
  for (const text of ['if (apiKey === given) {', 'return signature !== expected', 'hmac.equals(other)', 'one === this.#secret;'])
    expect([text, PLAIN.test(text)]).toEqual([text, true]);
});
