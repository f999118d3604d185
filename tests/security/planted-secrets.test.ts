import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { natsServerConfig } from '../../bus/nats/server-config.ts';
import type { Role } from '../../scripts/servers/start-cluster.mjs';
import type { HttpDouble } from '../../services/effect-worker/test-support/http-double.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type OtlpSink, openOtlpSink } from '../helpers/otlp-sink.ts';
import { runProgram } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { leaksIn, type Place, type Planted, plantedValue } from './planted/credentials.ts';
import { openEchoingProvider, openEchoingReceiver, openEchoingTools } from './planted/echoing-servers.ts';
import { writePlantedFiles } from './planted/planted-files.ts';
import { recordingClient, SPOKEN, walkAgent, walkRouter } from './planted/walk.ts';
import { filesOf, metricsOf, rowsOf, type Watched, watchBus, watchRedis, withAuditor } from './planted/watched-places.ts';

const NAMES = ['a line of the log', 'a span', 'a metric', 'an answer', 'a message of the bus', 'a file of the broker', 'a row of PostgreSQL', 'Redis'] as const;
const IN_THE_ENVIRONMENT = [
  'ROUTER_API_KEY',
  'ROUTER_MANAGEMENT_KEY',
  'AGENT_API_KEY',
  'PLATFORM_SECRET_KEY',
  'PLATFORM_PUBLIC_KEY',
  'PROVIDER_KEY',
  'TOOL_KEY',
  'HOUSE_SECRET',
];
const OTHERS = [
  'a secret of a bundle',
  'a wrong key',
  'the header of the collector',
  'the password of the stores',
  'a wrong password',
  'a literal of a file',
  'the password of mails',
];
const ROLES: readonly (Role | 'operator')[] = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker', 'operator'];
const WAIT = { timeoutMs: 60_000 };

const planted: Planted = new Map([...IN_THE_ENVIRONMENT, ...OTHERS].map((name) => [name, plantedValue(name.toLowerCase().replaceAll(/[ _]/g, '-'))]));
const value = (name: string) => planted.get(name) ?? '';
const places = new Map<string, Place>();
const opened: { close(): Promise<void> }[] = [];
let cluster: Cluster;

/** A walk through both products with every fault, and all that it has left anywhere. */
beforeAll(async () => {
  const sink = await openOtlpSink();
  const [provider, tools, receiver] = await Promise.all([openEchoingProvider(), openEchoingTools(), openEchoingReceiver()]);
  opened.push(sink, provider, tools, receiver);
  const lines: string[] = [];
  const answers: string[] = [];
  cluster = await startCluster({
    env: {
      ...Object.fromEntries(IN_THE_ENVIRONMENT.map((name) => [name, value(name)])),
      ...(await writePlantedFiles({ provider: provider.port, tools: tools.port }, value('a secret of a bundle'))),
      AGENT_PUBLIC_URL: 'https://agent.example',
      OUTBOUND_ALLOW_HOSTS: `127.0.0.1:${receiver.port}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: sink.url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${value('the header of the collector')}`,
      OTEL_BSP_SCHEDULE_DELAY: '500',
      SMTP_URL: `smtp://mailer:${value('the password of mails')}@127.0.0.1:9`,
      MAIL_FROM: 'switchyard@example.com',
      TRACE_CONTENT: 'full',
      LOG_LEVEL: 'trace',
      COALESCE_MS: '0',
    },
    onLine: (line) => void lines.push(line),
    storePassword: value('the password of the stores'),
    natsConfig: withAuditor(natsServerConfig()),
  });
  for (const role of ROLES) planted.set(`the password of ${role} at the broker`, cluster.environmentOf(role).NATS_PASSWORD ?? '');
  const [bus, redis] = [await watchBus(cluster.nats.url), await watchRedis(cluster.redis.url)];
  opened.push(bus, redis);

  const walk = { cluster, planted, client: recordingClient(answers), receiverPort: receiver.port };
  await walkRouter(walk);
  await walkAgent(walk);
  // No start needs Redis: this one logs its refusals.
  await cluster.add('agent-gateway', { REDIS_URL: `redis://:${value('a wrong password of Redis')}@127.0.0.1:${cluster.redis.port}` });
  lines.push(...(await failedStarts()), ...(await operated()));
  await arrived(sink, receiver);
  await collect({ bus, redis }, { 'a line of the log': lines, 'an answer': answers, 'a span': sink.posts.map(({ body }) => body.toString('latin1')) });
}, 600_000);
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
  await cluster.stop();
}, 120_000);

/** Processes that end at their start, each for a credential. @returns what they print */
async function failedStarts(): Promise<string[]> {
  const folder = await freeFolder('broken');
  const literal = value('a literal of a file');
  const manifest = join(folder, 'manifest.yaml');
  const router = join(folder, 'router.yaml');
  await writeFile(
    manifest,
    `id: x\nname: x\nversion: "1"\nagent_config: { runtime: { api_key: ${literal} }, llms: { api_key: "${literal}" } }\nsecret: ${literal}\n`,
  );
  await writeFile(
    router,
    `providers: [{ slug: x, kind: openai-compatible, api_key: "${literal}", base_url: "http://u:${literal}@x" }]\nkeys: [{ id: x, key: ${literal} }]\n`,
  );
  const wrong = value('a wrong password');
  const ports = { postgres: cluster.postgres.port, nats: cluster.nats.port };
  const starts: [Role, Record<string, string>][] = [
    ['actor-host', { DATABASE_URL: `postgres://postgres:${wrong}@127.0.0.1:${ports.postgres}/postgres` }],
    ['agent-gateway', { DATABASE_URL: `postgres://postgres:${wrong}@127.0.0.1:9/postgres?sslmode=verify-full&password=${wrong}` }],
    ['router-worker', { NATS_PASSWORD: wrong }],
    ['effect-worker', { NATS_URL: `nats://u:${wrong}@127.0.0.1:9,nats://v:${wrong}@127.0.0.1:${ports.nats}` }],
    ['agent-gateway', { MANIFEST: manifest }],
    ['router-gateway', { ROUTER_CONFIG: router }],
    ['router-gateway', { HOUSE_SECRET: `short-${wrong}`.slice(0, 10), NATS_URL: wrong }],
  ];
  return Promise.all(
    starts.map(([role, env]) =>
      cluster.add(role, env).then(
        () => `a ${role} has started`,
        (error: Error) => error.message,
      ),
    ),
  );
}

/** @returns what the operator's commands print */
async function operated(): Promise<string[]> {
  const env = cluster.environmentOf('operator') as Record<string, string>;
  const commands = [['validate', env['MANIFEST'] ?? '', '--dump'], ['dead-letters', 'list'], ['streams']];
  return Promise.all(
    commands.map(async (args) => {
      const program = runProgram([process.execPath, 'dist/services/operator/main.js', ...args], { env });
      await program.exited;
      return program.output();
    }),
  );
}

/** Waits until the events and callbacks were posted again, and the spans of the walk have come. */
async function arrived(sink: OtlpSink, receiver: HttpDouble): Promise<void> {
  const posted = (path: string) => receiver.received.filter(({ url }) => url === path).length;
  await eventually(() => posted('/events') > 1 && posted('/note-it') > 1, WAIT);
  await eventually(() => sink.spans.some(({ name }) => name.startsWith('invoke_agent')), WAIT);
}

async function collect({ bus, redis }: { bus: Watched; redis: Watched }, texts: Record<string, string[]>): Promise<void> {
  const all = [bus.place, redis.place, await rowsOf(cluster.postgres.url), filesOf(cluster.nats.folder), await metricsOf(cluster)];
  for (const [name, pieces] of Object.entries(texts)) all.push({ name, pieces });
  for (const place of all) places.set(place.name, place);
}

const placeOf = (name: string): Place => places.get(name) ?? { name, pieces: [] };

describe('after a walk through both products with every fault', () => {
  it.each(NAMES)('SECURITY 7.3: no planted credential is in %s', (name) => {
    expect(leaksIn(placeOf(name), planted)).toEqual([]);
    expect(placeOf(name).pieces.length).toBeGreaterThan(0);
  });

  it('SECURITY 7.4: what a provider, a tool server or a receiver said is in no event and in no run', () => {
    const ofAgent = placeOf('an answer').pieces.filter((piece) => /^GET \/(?:sessions|runs)/.test(piece));

    expect(ofAgent.filter((piece) => piece.includes('error')).length).toBeGreaterThan(0);
    expect(ofAgent.filter((piece) => piece.includes('refused: '))).toEqual([]);
  });

  it.each(['a span', 'an answer', 'a message of the bus', 'a row of PostgreSQL'])('%s has the words of the walk', (name) => {
    expect(placeOf(name).pieces.some((piece) => piece.includes(SPOKEN))).toBe(true);
  });

  it('each start failed, and each fault of a provider was met', () => {
    const lines = placeOf('a line of the log').pieces.join('\n');
    const answers = placeOf('an answer').pieces.join('\n');

    expect(lines).not.toContain('has started');
    for (const status of [400, 401, 403, 404, 429, 502]) expect([status, answers.includes(` ${status} [`)]).toEqual([status, true]);
    expect(lines).toContain('an attempt of a router call failed');
  });

  it('the search finds a credential in every spelling', () => {
    expect([...planted].filter(([, one]) => one.length < 20)).toEqual([]);
    const [[name, one] = ['', '']] = planted;
    for (const text of [
      one,
      `x${Buffer.from(one).toString('hex')}`,
      ...['', 'u', 'us', 'user:'].map((before) => Buffer.from(`${before}${one}`).toString('base64')),
    ])
      expect(leaksIn({ name: '', pieces: ['', `before ${text} behind`] }, planted)).toEqual([expect.stringContaining(`${name}: `)]);
  });
});
