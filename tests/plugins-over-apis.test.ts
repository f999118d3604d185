import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataUrlOf, textPdf } from '../services/router-worker/pipeline/test-support/pdf-files.ts';
import { shellBlocks } from './helpers/documented-blocks.ts';
import { openRouterInProcess, type RouterInProcess } from './helpers/router-in-process.ts';
import { type EngineServer, openEngineServer } from './upstreams/engine-server.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from './upstreams/openai-upstream.ts';

const BROKEN = '{"name": "Ada", "age": 36';
const PAGE = { url: 'https://weather.example/today', title: 'Weather', content: 'rain' };
const CITING = `It rains: [weather.example](${PAGE.url}).`;
const RANGE = { start_index: CITING.indexOf('['), end_index: CITING.indexOf(')') + 1 };
const WEB = { id: 'web' };
const SECRET = 'BEGIN PRIVATE KEY';

let engine: EngineServer;
let upstream: OpenAiUpstream;
let router: RouterInProcess;

beforeAll(async () => {
  engine = await openEngineServer('/search', () => ({ results: [PAGE] }));
  upstream = await openOpenAiUpstream();
  const config = {
    providers: [{ slug: 'east', name: 'East', kind: 'openai-compatible', base_url: upstream.baseUrl }],
    models: [{ id: 'a/one', endpoints: [{ provider: 'east', upstream_model: 'one', prices: { prompt: '0', completion: '0' } }] }],
    plugins: {
      moderation: { name: 'guard', patterns: [{ reason: 'secrets', pattern: 'PRIVATE KEY' }] },
      web: { name: 'acme', url: engine.url, price: '0.005' },
    },
    default_model: 'a/one',
    keys: [{ id: 'one', key: '${ONE}' }],
  };
  router = await openRouterInProcess({ config, variables: { ONE: 'sk-one' } });
});
afterAll(async () => {
  await router.close();
  await Promise.all([engine.close(), upstream.close()]);
});
beforeEach(() => {
  engine.fault = null;
  upstream.answer({ text: [CITING.slice(0, 12), CITING.slice(12)] });
});

type Cited = { url_citation: object }[];
/** A body or an event of either API: of these fields it has those of its API. */
interface Answer {
  choices: { message: { content: string; annotations: Cited }; delta: { annotations?: Cited } }[];
  output: { content: { text: string; annotations: object[] }[] }[];
  openrouter_metadata: { pipeline?: object[] };
  error: { message: string };
  type: string;
  annotation: object;
  response: Answer;
}

const citationsIn = (annotations: Cited = []): object[] => annotations.map(({ url_citation: citation }) => citation);
const JSON_FORMAT = { type: 'json_object' };
/** How each API states a text of the user, the wish for JSON, and the events of a stream. */
const apis = {
  '/chat/completions': {
    body: (text: string) => ({ messages: [{ role: 'user', content: text }] }),
    json: { response_format: JSON_FORMAT },
    textOf: ({ choices }: Answer) => choices[0]?.message.content ?? '',
    annotationsOf: ({ choices }: Answer) => citationsIn(choices[0]?.message.annotations),
    streamedAnnotations: (events: Answer[]) => events.flatMap(({ choices }) => citationsIn(choices[0]?.delta.annotations)),
    last: (events: Answer[]) => events.at(-1),
  },
  '/responses': {
    body: (text: string) => ({ input: text }),
    json: { text: { format: JSON_FORMAT } },
    textOf: ({ output }: Answer) => output[0]?.content[0]?.text ?? '',
    annotationsOf: ({ output }: Answer) => output[0]?.content[0]?.annotations ?? [],
    streamedAnnotations: (events: Answer[]) =>
      events.filter(({ type }) => type === 'response.output_text.annotation.added').map(({ annotation }) => annotation),
    last: (events: Answer[]) => events.at(-1)?.response,
  },
} as const;

describe.each(Object.entries(apis))('plugins over %s', (path, api) => {
  const post = (text: string, fields: object) =>
    fetch(`${router.url}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-one', 'content-type': 'application/json', 'x-openrouter-metadata': 'enabled' },
      body: JSON.stringify({ model: 'a/one', ...api.body(text), ...fields }),
    });
  const whole = async (text: string, fields: object) => {
    const response = await post(text, fields);
    return { status: response.status, body: (await response.json()) as Answer };
  };
  const streamed = async (text: string, fields: object) => {
    const response = await post(text, { ...fields, stream: true });
    const sse = await response.text();
    return { status: response.status, events: [...sse.matchAll(/^data: (\{.*)$/gm)].map((match): Answer => JSON.parse(match[1] ?? '')), sse };
  };

  it('response-healing repairs a whole answer, and says so', async () => {
    upstream.answer({ text: [BROKEN] });
    const { body } = await whole('Is there an answer?', { ...api.json, plugins: [{ id: 'response-healing' }] });

    expect(JSON.parse(api.textOf(body))).toEqual({ name: 'Ada', age: 36 });
    expect(body.openrouter_metadata.pipeline).toEqual([{ type: 'response_healing', name: 'response-healing', summary: 'repaired' }]);
    upstream.answer({ text: ['{"a": 1}'] });
    const sound = await whole('Is there an answer?', { ...api.json, plugins: [{ id: 'response-healing' }] });
    expect(sound.body.openrouter_metadata.pipeline).toMatchObject([{ summary: 'unchanged' }]);
  });

  it('response-healing has no effect on a stream, and says so', async () => {
    upstream.answer({ text: [BROKEN] });
    const { sse, events } = await streamed('Is there an answer?', { ...api.json, plugins: [{ id: 'response-healing' }] });

    expect(sse).not.toContain('36}');
    expect(api.last(events)?.openrouter_metadata.pipeline).toEqual([{ type: 'response_healing', name: 'response-healing', summary: 'without effect' }]);
  });

  it.each([false, true])('moderation refuses what its patterns match, and no provider has it (stream: %s)', async (stream) => {
    const asked = upstream.requests.length;
    const { status, body } = await whole(SECRET, { plugins: [{ id: 'moderation' }], stream });

    expect([status, upstream.requests.length]).toEqual([403, asked]);
    expect(body).toMatchObject({
      error: { metadata: { reasons: ['secrets'], flagged_input: SECRET, provider_name: 'guard', model_slug: 'a/one' } },
      openrouter_metadata: { pipeline: [{ type: 'guardrail', name: 'moderation', summary: 'flagged', data: { engine: 'guard' } }] },
    });
  });

  it('moderation lets pass what its patterns do not match, and says so', async () => {
    const { status, body } = await whole('Hello!', { plugins: [{ id: 'moderation' }] });

    expect([status, api.textOf(body)]).toEqual([200, CITING]);
    expect(body.openrouter_metadata.pipeline).toEqual([{ type: 'guardrail', name: 'moderation', summary: 'passed', data: { engine: 'guard' } }]);
  });

  it('web cites what its engine has found, whole and streamed, with what it cost', async () => {
    const citation = { url: PAGE.url, title: PAGE.title, content: PAGE.content, ...RANGE };
    const entry = { type: 'plugin', name: 'web', summary: 'results=1', data: { engine: 'acme', results: 1 }, cost_usd: 0.005 };
    const { body } = await whole('How is the weather?', { plugins: [WEB] });
    const { events } = await streamed('How is the weather?', { plugins: [WEB] });

    expect(api.annotationsOf(body)).toMatchObject([citation]);
    expect(body).toMatchObject({ usage: { cost: 0.005 }, openrouter_metadata: { pipeline: [entry] } });
    expect(api.streamedAnnotations(events)).toMatchObject([citation]);
    expect(api.last(events)).toMatchObject({ usage: { cost: 0.005 }, openrouter_metadata: { pipeline: [entry] } });
  });

  it('an engine that is away ends the call with 503, before any provider', async () => {
    engine.fault = 'error';
    const asked = upstream.requests.length;
    const { status, body } = await whole('How is the weather?', { plugins: [WEB] });

    expect([status, upstream.requests.length]).toEqual([503, asked]);
    expect(body.error.message).toContain("acme can't be used");
  });

  it('names plugins that it does not know, and none where the caller does not ask', async () => {
    const { body } = await whole('Hello!', { plugins: [{ id: 'of-the-future' }, { id: 'moderation' }] });
    const none = await whole('Hello!', {});

    expect(body.openrouter_metadata.pipeline).toMatchObject([
      { type: 'plugin', name: 'of-the-future', summary: 'without effect' },
      { name: 'moderation', summary: 'passed' },
    ]);
    expect(none.body.openrouter_metadata).not.toHaveProperty('pipeline');
  });
});

it('the tool web_search of /responses is the plugin', async () => {
  const response = await fetch(`${router.url}/api/v1/responses`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-one', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'a/one', input: 'How is the weather?', tools: [{ type: 'web_search' }] }),
  });

  expect(await response.json()).toMatchObject({ output: [{ content: [{ annotations: [{ type: 'url_citation', url: PAGE.url, ...RANGE }] }] }] });
});

describe('the commands of docs/plugins.md', () => {
  const commands = shellBlocks('docs/plugins.md', 'Plugins').join('\n').split('\n\n');
  const REPORT = dataUrlOf(textPdf(['Report of the year']));
  const FENCED = '```json\n{"name": "Ada", "age": 36}\n```';
  const shown: Record<string, [said: string, prints: string]> = {
    moderation: ['', '"reasons":["secrets"]'],
    web: [CITING, '"url_citation"'],
    'file-parser': ['It is a report.', 'Report of the year'],
    'response-healing': [FENCED, JSON.stringify(FENCED.slice('```json\n'.length, -'\n```'.length))],
  };

  it('are one for each plugin', () => {
    expect(commands.map((command) => /"id": "([^"]+)"/.exec(command)?.[1])).toEqual(Object.keys(shown));
  });

  it.each(Object.entries(shown))('show what the plugin %s does', async (plugin, [said, prints]) => {
    upstream.answer({ text: [said] });
    const [command = ''] = commands.filter((one) => one.includes(`"id": "${plugin}"`));
    const pasted = command.replace('http://127.0.0.1:3000', router.url).replace('https://example.com/report.pdf', REPORT);
    const { stdout } = await promisify(execFile)('bash', ['-e', '-c', pasted], { timeout: 60_000, env: { ...process.env, ROUTER_API_KEY: 'sk-one' } });

    expect(stdout).toContain(prints);
  });
});
