import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from './helpers/eventually.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';

const endpoint = (provider: string, price: string) => ({ provider, upstream_model: provider, prices: { prompt: price, completion: price } });
const config = {
  providers: [
    { slug: 'cheap', name: 'Cheap', kind: 'scripted' },
    { slug: 'dear', name: 'Dear', kind: 'scripted' },
  ],
  models: [
    { id: 'a/one', endpoints: [endpoint('dear', '3'), endpoint('cheap', '1')] },
    { id: 'b/alone', endpoints: [endpoint('cheap', '1')] },
  ],
  keys: [{ id: 'one', key: '${ONE}' }],
};
const WISH = { 'x-openrouter-metadata': 'enabled' };

interface Metadata {
  requested: string;
  strategy: string;
  attempt: number;
  endpoints: { total: number; available: { provider: string; model: string; selected: boolean }[] };
  attempts: { provider: string; model: string; status: number }[];
}
interface Answer {
  provider?: string;
  openrouter_metadata?: Metadata;
  error?: { code: number };
}
interface Routing {
  strategy: string;
  seed: string | null;
  endpoints: { total: number; available: { endpoint: string; selected: boolean; weight: number | null; price: number | null; health: string | null }[] };
  excluded: { filter: string; total: number; endpoints: string[] }[];
}

let router: RouterInProcess;
beforeAll(async () => {
  router = await openRouterInProcess({ config, variables: { ONE: 'sk-one' } });
});
afterAll(() => router.close());

const post = (path: string, body: object, headers: object = WISH) =>
  fetch(`${router.url}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-one', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const chat = (content: string, fields: object = {}) => ({ model: 'a/one', messages: [{ role: 'user', content }], ...fields });

async function complete(content: string, fields: object = {}, headers: object = WISH): Promise<{ id: string; body: Answer }> {
  const response = await post('/chat/completions', chat(content, fields), headers);
  return { id: response.headers.get('x-generation-id') ?? '', body: (await response.json()) as Answer };
}

/** Its row is written behind the call. */
function generationOf(id: string) {
  return eventually(async () => {
    const response = await fetch(`${router.url}/api/v1/generation?id=${id}`, { headers: { authorization: 'Bearer sk-one' } });
    const { data } = (await response.json()) as { data?: { routing: Routing; provider_responses: { endpoint_id: string; status: number }[] } };
    return data;
  });
}

/** The values of a stream's events, without the end mark. */
const valuesIn = (sse: string): Record<string, unknown>[] =>
  sse
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)));
const namesOf = ({ attempts }: Metadata) => attempts.map(({ provider, status }) => [provider, status]);

describe('a call says why it went where it went', () => {
  it('DESIGN 8: a call says why after a draw', async () => {
    const { id, body } = await complete('Hello!');
    const { routing, provider_responses: responses } = await generationOf(id);
    const winner = body.provider === 'Cheap' ? 'a/one@cheap' : 'a/one@dear';

    expect(body.openrouter_metadata).toMatchObject({ requested: 'a/one', strategy: 'direct', attempt: 1, endpoints: { total: 2 } });
    expect(body.openrouter_metadata?.endpoints.available.filter(({ selected }) => selected)).toEqual([
      { provider: body.provider, model: 'a/one', selected: true },
    ]);
    expect(routing).toMatchObject({ strategy: 'weighted', seed: id, excluded: [] });
    expect(routing.endpoints.available[0]).toMatchObject({ endpoint: winner, selected: true });
    const [cheap, dear] = ['a/one@cheap', 'a/one@dear'].map((name) => routing.endpoints.available.find(({ endpoint: one }) => one === name));
    expect((cheap?.weight ?? 0) / (dear?.weight ?? 1)).toBeCloseTo(9);
    expect(responses).toMatchObject([{ endpoint_id: winner, status: 200 }]);
  });

  it('DESIGN 8: a call says why when the endpoint that the caller put first fails', async () => {
    const { id, body } = await complete('!fail 500 on=cheap', { provider: { order: ['cheap'] } });
    const { routing, provider_responses: responses } = await generationOf(id);

    expect(body.provider).toBe('Dear');
    expect(body.openrouter_metadata).toMatchObject({ attempt: 2 });
    expect(namesOf(body.openrouter_metadata as Metadata)).toEqual([
      ['Cheap', 502],
      ['Dear', 200],
    ]);
    expect(routing.endpoints.available.map(({ endpoint: name, selected }) => [name, selected])).toEqual([
      ['a/one@cheap', false],
      ['a/one@dear', true],
    ]);
    expect(responses).toMatchObject([
      { endpoint_id: 'a/one@cheap', status: 502 },
      { endpoint_id: 'a/one@dear', status: 200 },
    ]);
  });

  it('when the endpoint that was drawn fails, which nine of ten calls draw', async () => {
    const attempts: (number | undefined)[] = [];
    for (let made = 0; made < 8; made += 1) {
      const { id, body } = await complete('!fail 500 on=cheap');
      const { routing, provider_responses: responses } = await generationOf(id);
      const tried = responses.map(({ endpoint_id: name }) => name);

      expect(body.provider).toBe('Dear');
      expect(tried).toEqual(routing.endpoints.available.map(({ endpoint: name }) => name).slice(0, tried.length));
      expect([tried.at(-1), tried.length]).toEqual(['a/one@dear', body.openrouter_metadata?.attempt]);
      expect(routing).toMatchObject({ strategy: 'weighted', seed: id });
      attempts.push(body.openrouter_metadata?.attempt);
    }
    expect(attempts).toContain(2);
  });

  it('when a filter left one', async () => {
    const { id } = await complete('Hello!', { provider: { only: ['dear'] } });

    expect((await generationOf(id)).routing).toMatchObject({
      strategy: 'single',
      endpoints: { total: 1, available: [{ endpoint: 'a/one@dear', selected: true }] },
      excluded: [{ filter: 'allowed_providers', total: 1, endpoints: ['a/one@cheap'] }],
    });
  });

  it('when nothing was to decide, although its record has next to nothing of it', async () => {
    const { id, body } = await complete('Hello!', { model: 'b/alone' });
    const { routing } = await generationOf(id);
    const { rows } = await router.database.query<{ record: { decision: unknown } }>('select record from usage_ledger where generation_id = $1', [id]);

    expect(body.openrouter_metadata).toMatchObject({ attempt: 1, endpoints: { total: 1 } });
    expect(routing).toMatchObject({
      strategy: 'single',
      endpoints: { total: 1, available: [{ endpoint: 'b/alone@cheap', selected: true }] },
    });
    expect(rows[0]?.record.decision).toBeNull();
  });

  it('in the error, when all have failed and when none was eligible', async () => {
    const failed = await complete('!fail 500');
    const refused = await complete('Hello!', { provider: { only: ['elsewhere'] } });

    expect(failed.body.openrouter_metadata?.attempts).toHaveLength(2);
    expect([failed.body.error?.code, refused.body.error?.code]).toEqual([502, 503]);
    expect(refused.body.openrouter_metadata).toMatchObject({ attempt: 0, endpoints: { total: 2, available: [] } });
    expect((await generationOf(failed.id)).routing.endpoints.available.map(({ selected }) => selected)).toEqual([false, false]);
  });
});

describe('a stream', () => {
  const streamed = async (content: string, headers: object = WISH) => (await post('/chat/completions', chat(content, { stream: true }), headers)).text();

  it('has the metadata in the last chunk before the end mark, and in no other', async () => {
    const text = await streamed('Hello!');
    const chunks = valuesIn(text);

    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: {}, openrouter_metadata: { requested: 'a/one', attempt: 1 } });
    expect(chunks.filter((chunk) => 'openrouter_metadata' in chunk)).toHaveLength(1);
  });

  it('has it in the error chunk behind content', async () => {
    const last = valuesIn(await streamed('!fail cut after=2 !repeat 2 one two three')).at(-1);

    expect(last).toMatchObject({ error: {}, openrouter_metadata: { attempt: 1, endpoints: { total: 2 } } });
  });

  it('DESIGN 8: a stream that is resumed says why, whatever the headers of the request that resumes it', async () => {
    const response = await post('/chat/completions', chat('Hello there, world!', { stream: true }));
    const text = await response.text();
    const [first] = /^id: .+$/m.exec(text) ?? [];
    const id = response.headers.get('x-generation-id');
    const resumed = await fetch(`${router.url}/api/v1/generations/${id}/stream`, {
      headers: { authorization: 'Bearer sk-one', 'last-event-id': first?.slice('id: '.length) ?? '' },
    });
    const rest = await resumed.text();

    expect(text.endsWith(rest)).toBe(true);
    expect(rest.length).toBeLessThan(text.length);
    expect(valuesIn(rest).at(-1)).toMatchObject({ openrouter_metadata: { requested: 'a/one' } });
  });
});

describe('a response', () => {
  const asked = (stream: boolean) => ({ model: 'a/one', input: 'Hello!', stream });

  it('has the metadata, whole and in its last event', async () => {
    const whole = (await (await post('/responses', asked(false))).json()) as Answer;
    const events = valuesIn(await (await post('/responses', asked(true))).text());

    expect(whole.openrouter_metadata).toMatchObject({ requested: 'a/one', endpoints: { total: 2 } });
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { openrouter_metadata: { requested: 'a/one' } } });
    expect(events.filter((event) => JSON.stringify(event).includes('openrouter_metadata'))).toHaveLength(1);
  });

  it('that fails behind content has it in response.failed', async () => {
    const events = valuesIn(await (await post('/responses', { ...asked(true), input: '!fail cut after=2 !repeat 2 one two three' })).text());

    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { openrouter_metadata: { attempt: 1 } } });
  });
});

it.each([{}, { 'x-openrouter-metadata': 'disabled' }])('a request with the headers %j gets none', async (headers) => {
  const texts = await Promise.all([
    post('/chat/completions', chat('Hello!'), headers),
    post('/chat/completions', chat('Hello!', { stream: true }), headers),
    post('/chat/completions', chat('!fail 500'), headers),
    post('/responses', { model: 'a/one', input: 'Hello!', stream: true }, headers),
    post('/embeddings', { model: 'a/one', input: 'Hello!' }, WISH),
  ]).then((responses) => Promise.all(responses.map((response) => response.text())));

  for (const text of texts) expect(text).not.toContain('openrouter_metadata');
});
