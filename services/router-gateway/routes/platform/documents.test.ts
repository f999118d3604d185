import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { readCorpus } from '#shared/config/read-corpus.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { KEY, openTestApp, type TestApp } from '../../test-support/harness.ts';

const platformKeys = { publicKey: 'pk-test', secretKey: 'sk-test' };
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`;
const FOLDERS: Record<string, string> = {
  prompt: 'prompts',
  routine: 'routines',
  policy: 'policies',
  glossary: 'glossaries',
  macro: 'macros',
  'variable-set': 'variable-sets',
};
const prompt = { id: 'greet', version: 1, text: 'You help.' };
const corpus = readCorpus('documents');

let database: Database;
let bus: Bus;
let opened: TestApp;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  opened = openTestApp(bus, { database, platformKeys });
});
afterAll(async () => {
  await opened.close();
  await bus.close();
  await database.close();
});
beforeEach(async () => {
  await database.query('truncate documents');
});

function send(method: 'GET' | 'PUT' | 'POST', path: string, payload?: unknown, headers: Record<string, string> = {}) {
  const all = { authorization: basic('pk-test:sk-test'), ...headers };
  return opened.app.inject({ method, url: `/api/v1/platform${path}`, headers: all, ...(payload !== undefined && { payload: payload as object }) });
}

const errorOf = async (response: ReturnType<typeof send>) => {
  const { statusCode, json } = await response;
  return [statusCode, json().error.param, json().error.message];
};

describe('publishing a document', () => {
  it('DESIGN 10: stores a version once: the same text again answers 200, another text 409 and changes nothing', async () => {
    const first = await send('PUT', '/prompts/greet/versions/1', prompt);
    const again = await send('PUT', '/prompts/greet/versions/1', { text: 'You help.', version: 1, id: 'greet' });
    const other = await send('PUT', '/prompts/greet/versions/1', { ...prompt, text: 'You sell.' });

    expect([first.statusCode, again.statusCode, other.statusCode]).toEqual([201, 200, 409]);
    expect(first.json()).toEqual({ kind: 'prompts', id: 'greet', version: 1, etag: first.headers.etag, published_at: expect.stringMatching(/Z$/) });
    expect(again.json()).toEqual(first.json());
    expect(other.json().error.message).toBe('prompts/greet, version 1, is published with another text: publish a new version');
    expect((await send('GET', '/prompts/greet/versions/1')).json()).toEqual(prompt);
  });

  it('by several at once stores one, and only that one answers 201', async () => {
    const texts = Array.from({ length: 8 }, (_, index) => ({ ...prompt, text: `Text ${index % 2}` }));
    const responses = await Promise.all(texts.map((body) => send('PUT', '/prompts/greet/versions/1', body)));
    const kept = (await send('GET', '/prompts/greet/versions/1')).json();

    expect(responses.filter(({ statusCode }) => statusCode === 201)).toHaveLength(1);
    for (const [index, { statusCode }] of responses.entries()) expect(statusCode === 409).toBe(texts[index]?.text !== kept.text);
  });

  it('keeps what JSON can state: NUL, lone surrogates and names of prototypes', async () => {
    const body = '{"id":"odd","version":2147483647,"text":"\\u0000\\ud800","metadata":{"constructor":{"x":1}}}';
    expect((await send('PUT', '/prompts/odd/versions/2147483647', body, { 'content-type': 'application/json' })).statusCode).toBe(201);
    expect((await send('GET', '/prompts/odd/versions/2147483647')).json()).toEqual(JSON.parse(body));
  });

  it('takes an id of 128 characters', async () => {
    const id = 'x'.repeat(128);
    expect((await send('PUT', `/prompts/${id}/versions/1`, { ...prompt, id })).statusCode).toBe(201);
    expect((await send('GET', `/prompts/${id}/versions/1`)).statusCode).toBe(200);
  });

  it.each(corpus.filter(({ errors }) => errors.length === 0))('takes $about ($name)', async ({ kind, document }) => {
    const { id, version } = document as { id: string; version: number };
    expect((await send('PUT', `/${FOLDERS[kind ?? '']}/${id}/versions/${version}`, document)).statusCode).toBe(201);
  });

  it.each(corpus.filter(({ errors }) => errors.length > 0))('refuses $about ($name), by the same schemas as a folder', async ({ kind, document, errors }) => {
    const [status, param, message] = await errorOf(send('PUT', `/${FOLDERS[kind ?? '']}/any/versions/1`, document));
    expect([status, errors]).toEqual([400, expect.arrayContaining([param])]);
    for (const path of errors.filter((one) => one !== '').slice(0, 10)) expect(message).toContain(path);
  });

  it.each<[string, string, unknown, number, string]>([
    ['another id than the address', '/prompts/other/versions/1', prompt, 400, 'id'],
    ['another version than the address', '/prompts/greet/versions/2', prompt, 400, 'version'],
    ['version 0', '/prompts/greet/versions/0', prompt, 400, 'version'],
    ['a version that no column has', '/prompts/greet/versions/2147483648', prompt, 400, 'version'],
    ['a version that is no number', '/prompts/greet/versions/latest', prompt, 400, 'version'],
    ['an id with a dot', '/prompts/a.b/versions/1', { ...prompt, id: 'a.b' }, 400, 'id'],
    ['a kind that there is not', '/tools/greet/versions/1', prompt, 404, ''],
    ['a list', '/prompts/greet/versions/1', '[]', 400, ''],
    ['no JSON', '/prompts/greet/versions/1', '{', 400, ''],
    ['a prototype', '/prompts/greet/versions/1', '{"id":"greet","version":1,"text":"x","metadata":{"__proto__":{"a":1}}}', 400, ''],
    ['65 levels', '/prompts/greet/versions/1', `{"id":"greet","version":1,"text":"x","metadata":{"a":${'['.repeat(65)}${']'.repeat(65)}}}`, 400, ''],
    ['more than 1 MiB', '/prompts/greet/versions/1', { ...prompt, text: 'x'.repeat(1_048_576) }, 413, ''],
  ])('refuses %s', async (_, path, body, status, param) => {
    expect((await errorOf(send('PUT', path, body, { 'content-type': 'application/json' }))).slice(0, 2)).toEqual([status, param]);
    expect((await database.query('select 1 from documents')).rowCount).toBe(0);
  });
});

describe('reading documents', () => {
  const publish = async (id: string, version: number) => {
    expect((await send('PUT', `/prompts/${id}/versions/${version}`, { ...prompt, id, version })).statusCode).toBe(201);
  };

  it('answers 304 for the tag that it gave, and the text for any other', async () => {
    await publish('greet', 1);
    const { headers } = await send('GET', '/prompts/greet/versions/1');
    const tag = String(headers.etag);
    const statusWith = async (given: string) => (await send('GET', '/prompts/greet/versions/1', undefined, { 'if-none-match': given })).statusCode;

    expect(tag).toMatch(/^"[0-9a-f]{64}"$/);
    expect(await Promise.all([tag, `W/${tag}`, `"x", ${tag}`, '*'].map(statusWith))).toEqual([304, 304, 304, 304]);
    expect(await Promise.all(['"x"', tag.slice(1, -1), ''].map(statusWith))).toEqual([200, 200, 200]);
  });

  it('lists versions, newest first, in pages', async () => {
    for (const version of [1, 3, 2]) await publish('greet', version);
    const first = (await send('GET', '/prompts/greet/versions?limit=2')).json();
    const last = (await send('GET', `/prompts/greet/versions?limit=2&cursor=${first.next_cursor}`)).json();
    const versionsIn = ({ items }: { items: { version: number }[] }) => items.map(({ version }) => version);

    expect([versionsIn(first), first.has_more, versionsIn(last), last.has_more, last.next_cursor]).toEqual([[3, 2], true, [1], false, null]);
  });

  it('lists the documents of a kind by id, with the newest version of each, in pages', async () => {
    for (const id of ['c', 'a', 'b']) await publish(id, 1);
    await publish('a', 2);
    expect((await send('PUT', '/policies/p/versions/1', { id: 'p', version: 1, condition: 'always' })).statusCode).toBe(201);
    const first = (await send('GET', '/prompts?limit=2')).json();
    const last = (await send('GET', `/prompts?limit=2&cursor=${first.next_cursor}`)).json();

    expect(first).toMatchObject({
      items: [
        { id: 'a', versions: 2, newest: { version: 2 } },
        { id: 'b', versions: 1 },
      ],
      has_more: true,
    });
    expect(last).toMatchObject({ items: [{ id: 'c', versions: 1, newest: { version: 1 } }], has_more: false, next_cursor: null });
    expect((await send('GET', '/macros')).json()).toEqual({ items: [], has_more: false, next_cursor: null });
  });

  it.each([
    ['/prompts/greet/versions/1', 404],
    ['/prompts/greet/versions/0', 404],
    ['/prompts/a.b/versions/1', 404],
    ['/prompts/%00/versions/1', 404],
    ['/prompts/%00/versions', 404],
    ['/prompts/greet/versions', 404],
    ['/tools', 404],
    ['/tools/greet/versions/1', 404],
    ['/prompts?limit=0', 400],
    ['/prompts?limit=1001', 400],
    ['/prompts?cursor=a.b', 400],
    ['/prompts/greet/versions?cursor=a', 400],
  ])('answers %s with %i', async (path, status) => {
    expect((await send('GET', path)).statusCode).toBe(status);
  });
});

describe("the platform's addresses", () => {
  const all = [
    ['PUT', '/prompts/greet/versions/1'],
    ['GET', '/prompts/greet/versions/1'],
    ['GET', '/prompts/greet/versions'],
    ['GET', '/prompts'],
  ] as const;
  const credentials = [
    undefined,
    `Bearer ${KEY}`,
    'Bearer sk-test-management',
    basic('pk-test:sk-other'),
    basic('pk-test'),
    basic('sk-test:pk-test'),
    'Basic !',
  ];

  it('DESIGN 11: are for the platform keys alone, before anything is said of documents', async () => {
    for (const [method, path] of all) {
      for (const authorization of credentials) {
        const headers = authorization === undefined ? {} : { authorization };
        const response = await opened.app.inject({ method, url: `/api/v1/platform${path}`, headers, ...(method === 'PUT' && { payload: prompt }) });
        expect([path, authorization, response.statusCode]).toEqual([path, authorization, 401]);
        expect(response.body).not.toMatch(/sk-test|pk-test/);
      }
    }
    expect((await database.query('select 1 from documents')).rowCount).toBe(0);
  });

  it('are refused with 503 and a time to retry while there is no database', async () => {
    const without = openTestApp(bus, { database: null, platformKeys });
    const headers = { authorization: basic('pk-test:sk-test') };
    for (const [method, path] of all) {
      const response = await without.app.inject({ method, url: `/api/v1/platform${path}`, headers, ...(method === 'PUT' && { payload: prompt }) });
      expect([path, response.statusCode, response.headers['retry-after']]).toEqual([path, 503, '1']);
    }
    await without.close();
  });
});
