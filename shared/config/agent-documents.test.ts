import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openOutbound } from '../http/outbound.ts';
import type { Database } from '../storage/database.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { agentDocuments } from './agent-documents.ts';
import { DocumentRows } from './document-rows.ts';
import { loadBundle } from './load-bundle.ts';
import { outlineOf } from './manifest-outline.ts';
import { platformSource } from './platform-source.ts';

const KEYS = { PK: 'pk-test', SK: 'sk-secret', AGENT: 'agent', ROUTER: 'router' };
const basic = `Basic ${Buffer.from('pk-test:sk-secret').toString('base64')}`;
const PAIR = { publicKey: 'pk-test', secretKey: 'sk-secret' };
const prompt = { id: 'greet', version: 1, text: 'You help.' };
const goal = { id: 'goal', version: 3, text: 'Sum it up.' };
const triage = { id: 'triage', version: 1, kind: 'autonomous', instructions: { id: 'goal', version: 3 }, callback_url_allowlist: ['a.example'] };

function manifestOf(baseUrl?: string) {
  return {
    id: 'acme',
    name: 'Acme',
    version: '1',
    agent_config: {
      runtime: { api_key: '${AGENT}' },
      platform: { public_key: '${PK}', secret_key: '${SK}', ...(baseUrl !== undefined && { base_url: baseUrl }) },
      llms: { default: 'openai/gpt-5', api_key: '${ROUTER}' },
      context: { system_prompt: { id: 'greet', version: 1 }, language: 'match_user', routines: [{ id: 'triage', version: 1 }] },
    },
  };
}

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

let database: Database;
let server: Server;
let baseUrl: string;
let asked: { path: string; tag: string | undefined; authorization: string | undefined }[];
let respond: Respond;

const published: Record<string, object> = {
  '/api/v1/platform/prompts/greet/versions/1': prompt,
  '/api/v1/platform/prompts/goal/versions/3': goal,
  '/api/v1/platform/routines/triage/versions/1': triage,
};
const asPlatform: Respond = ({ url = '', headers }, response) => {
  const document = published[url];
  const tag = `"tag of ${url}"`;
  if (document === undefined) response.writeHead(404).end();
  else if (headers['if-none-match'] === tag) response.writeHead(304, { etag: tag }).end();
  else response.writeHead(200, { etag: tag, 'content-type': 'application/json' }).end(JSON.stringify(document));
};

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.query('truncate documents, platform_documents');
  asked = [];
  respond = asPlatform;
  server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', tag: request.headers['if-none-match'], authorization: request.headers.authorization });
    respond(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const deployed = () => database;
const outline = () => outlineOf(manifestOf(baseUrl));

function fetched({ limitMs = 20_000, keptWaitMs = 20_000, kept = true } = {}) {
  return platformSource({ baseUrl, ...PAIR, database: kept ? async () => database : null, outbound: openOutbound({}), limitMs, keptWaitMs }).read(outline());
}

const idsIn = ({ documents }: Awaited<ReturnType<typeof fetched>>) =>
  Object.values(documents).flatMap((all) => all.map(({ value }) => (value as { id: string }).id));

describe('documents of another platform', () => {
  it('are fetched with its keys, with the prompts that routines name, and kept by address and version', async () => {
    expect(idsIn(await fetched())).toEqual(['greet', 'goal', 'triage']);

    expect(asked.map(({ path }) => path).sort()).toEqual(Object.keys(published).sort());
    expect(asked.map(({ authorization }) => authorization)).toEqual([basic, basic, basic]);
    const { rows } = await database.query<{ address: string; id: string; version: number }>('select address, id, version from platform_documents order by id');
    expect(rows).toEqual([
      { address: baseUrl, id: 'goal', version: 3 },
      { address: baseUrl, id: 'greet', version: 1 },
      { address: baseUrl, id: 'triage', version: 1 },
    ]);
  });

  it('that are kept are asked for by their tag', async () => {
    await fetched();
    asked = [];

    expect(idsIn(await fetched())).toEqual(['greet', 'goal', 'triage']);
    expect(asked.map(({ path, tag }) => tag === `"tag of ${path}"`)).toEqual([true, true, true]);
  });

  it('DESIGN 10: that are kept need no platform: refused connections, errors and silence are passed over, with a warning', async () => {
    const whole = await fetched();
    const away: Respond[] = [(_, response) => void response.writeHead(503).end(), () => {}, (request) => void request.socket.destroy()];
    for (const how of away) {
      respond = how;
      const { documents, warnings } = await fetched({ keptWaitMs: 150 });
      expect(documents).toEqual(whole.documents);
      expect(warnings).toEqual([expect.stringMatching(/does not answer \(.+\): documents that were fetched before are used/)]);
    }
    server.closeAllConnections();
    server.close();
    expect((await fetched({ keptWaitMs: 150 })).documents).toEqual(whole.documents);
  });

  it('are asked for again after an error of the platform', async () => {
    const failed = new Set<string>();
    respond = (request, response) => {
      const first = !failed.has(request.url ?? '');
      failed.add(request.url ?? '');
      if (first) response.writeHead(502).end();
      else asPlatform(request, response);
    };

    expect(idsIn(await fetched())).toEqual(['greet', 'goal', 'triage']);
  });

  it.each<[string, Respond, RegExp]>([
    ['accepts and sends nothing', () => {}, /the platform does not answer within \d+ s \(no answer in time\)/],
    ['begins a body and sends no more', (_, response) => void response.writeHead(200).write('{'), /does not answer within \d+ s \(no answer in time\)/],
    ['fails', (_, response) => void response.writeHead(500).end(), /does not answer within \d+ s \(it answers 500\)/],
  ])('end the start in time when the platform %s and they are not kept', async (_, how, message) => {
    respond = how;
    await expect(fetched({ limitMs: 300 })).rejects.toThrow(message);
  });

  it('DESIGN 10: are asked for while the database opens, and kept when it is open', async () => {
    let open: (opened: Database) => void = () => {};
    const opening = new Promise<Database>((resolve) => {
      open = resolve;
    });
    const first = platformSource({ ...PAIR, baseUrl, database: () => opening, outbound: openOutbound({}), limitMs: 20_000 }).read(outline());
    await expect.poll(() => asked.length, { timeout: 60_000 }).toBeGreaterThan(0);
    open(database);

    expect(idsIn(await first)).toEqual(['greet', 'goal', 'triage']);
    expect((await database.query('select 1 from platform_documents')).rowCount).toBe(3);
  });

  it('that are kept are used as soon as a slow database is open, where the platform is silent', async () => {
    const whole = await fetched();
    respond = () => {};
    const slow = async () => {
      await pause(1_800);
      return deployed();
    };
    const read = await platformSource({ ...PAIR, baseUrl, database: slow, outbound: openOutbound({}), limitMs: 60_000, keptWaitMs: 100 }).read(outline());

    expect(read.documents).toEqual(whole.documents);
    expect(read.warnings).toHaveLength(1);
  });

  it('are waited for only in time in which the process can read its sockets', async () => {
    const holding = async () => {
      for (let times = 0; times < 3; times++) {
        const untilMs = performance.now() + 400;
        while (performance.now() < untilMs);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return database;
    };
    const read = await platformSource({ ...PAIR, baseUrl, database: holding, outbound: openOutbound({}), limitMs: 1_000 }).read(outline());

    expect(idsIn(read)).toEqual(['greet', 'goal', 'triage']);
    expect(read.warnings).toEqual([]);
  });

  it('end the start with the error of a database that does not open', async () => {
    respond = () => {};
    const database = () => Promise.reject(new Error('the database does not open'));

    await expect(platformSource({ ...PAIR, baseUrl, database, outbound: openOutbound({}), limitMs: 60_000 }).read(outline())).rejects.toThrow(
      'the database does not open',
    );
  });

  it.each<[number, RegExp]>([
    [401, /the platform does not accept platform\.public_key and platform\.secret_key \(401\)$/],
    [403, /does not accept platform\.public_key/],
    [404, /\/api\/v1\/platform\/routines\/triage\/versions\/1: the platform has no such document \(404\)$/],
    [302, /the platform refuses the request \(302\)/],
  ])('end the start at once, and ask once, when the platform answers %i, also when they are kept', async (status, message) => {
    await fetched();
    asked = [];
    respond = (_, response) => void response.writeHead(status, { location: `${baseUrl}/elsewhere` }).end();

    const failure = await fetched().then(
      () => expect.fail('it started'),
      (error: Error) => error.message,
    );
    expect(failure).toMatch(message);
    expect(failure).not.toMatch(/sk-secret|pk-test/);
    expect(asked.filter(({ path }) => path.includes('/triage/')).length).toBe(1);
  });

  it('that are too large, or no JSON, are refused', async () => {
    respond = (_, response) => void response.writeHead(200).end('x'.repeat(1_048_577));
    await expect(fetched()).rejects.toThrow('larger than 1 MiB');
    respond = (_, response) => void response.writeHead(200).end('no json');
    expect((await fetched({ kept: false })).documents.routines).toEqual([{ file: expect.any(String), value: null, problems: ['is not JSON'] }]);
  });
});

describe('the documents of an agent', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchyard-agent-'));
    return () => rm(folder, { recursive: true });
  });

  interface Given {
    manifest: object;
    isFolderGiven?: boolean;
    publicBaseUrl?: string | null;
    environment?: Record<string, string>;
  }

  async function load({ manifest, isFolderGiven = false, publicBaseUrl = null, environment = KEYS }: Given): Promise<string> {
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
    const documents = agentDocuments({ documentsPath: join(folder, 'documents'), isFolderGiven, publicBaseUrl, environment, database: async () => database });
    const bundle = await loadBundle({ manifestPath: join(folder, 'manifest.json'), documents, environment });
    return bundle.body.documents.prompts.find(({ id }) => id === 'greet')?.text ?? '';
  }

  async function writeFolder(text: string): Promise<void> {
    const files = { 'prompts/greet': { ...prompt, text }, 'prompts/goal': goal, 'routines/triage': triage };
    for (const [name, document] of Object.entries(files)) {
      const path = join(folder, 'documents', `${name}.json`);
      await mkdir(join(path, '..'), { recursive: true });
      await writeFile(path, JSON.stringify(document));
    }
  }

  async function publish(text: string): Promise<void> {
    const rows = new DocumentRows(database);
    await rows.publish({ kind: 'prompts', id: 'greet', version: 1 }, { ...prompt, text });
    await rows.publish({ kind: 'prompts', id: 'goal', version: 3 }, goal);
    await rows.publish({ kind: 'routines', id: 'triage', version: 1 }, triage);
  }

  it('are those of the folder DOCUMENTS, whatever else there is', async () => {
    await writeFolder('of the folder');
    await publish('published');
    expect(await load({ manifest: manifestOf(baseUrl), isFolderGiven: true })).toBe('of the folder');
    expect(asked).toEqual([]);
  });

  it('are else those of the platform that the manifest names', async () => {
    await writeFolder('of the folder');
    expect(await load({ manifest: manifestOf(`${baseUrl}/`) })).toBe('You help.');
    expect(asked.map(({ path }) => path).sort()).toEqual(Object.keys(published).sort());
  });

  it('are else those of the folder beside the manifest, and without one those that were published here', async () => {
    await publish('published');
    for (const manifest of [manifestOf(), manifestOf(baseUrl)]) expect(await load({ manifest, publicBaseUrl: `${baseUrl}/` })).toBe('published');
    await writeFolder('of the folder');
    expect(await load({ manifest: manifestOf() })).toBe('of the folder');
    expect(asked).toEqual([]);
  });

  it('are checked as those of a folder, and the message says where each is', async () => {
    await expect(load({ manifest: manifestOf() })).rejects.toThrow('agent_config.context.system_prompt: there is no "greet" version 1');
    await publish('published');
    await database.query(`update documents set body = '{"id":"greet","version":1}' where id = 'greet'`);
    await expect(load({ manifest: manifestOf() })).rejects.toThrow(/document prompts\/greet, version 1: text: is missing/);
  });

  it('of a platform need its keys, and the message names them', async () => {
    const { SK: _, ...without } = KEYS;
    await expect(load({ manifest: manifestOf(baseUrl), environment: without })).rejects.toThrow(/platform\.secret_key: the environment variable SK is not set/);
  });

  it('of a platform that refuses do not hide what is wrong in the manifest', async () => {
    respond = (_, response) => void response.writeHead(401).end();
    await expect(load({ manifest: { ...manifestOf(baseUrl), name: 7 } })).rejects.toThrow(/2 errors:\n.*name: must be a string.*\n.*does not accept/);
  });
});
