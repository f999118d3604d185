import { createHmac } from 'node:crypto';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TurnRecord, turnRecord } from '../../shared/contracts/agent/turn-record.ts';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { root, runProgram } from '../helpers/run-program.ts';
import { builtProgram, type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { openVectorServer, type VectorServer } from '../helpers/vector-server.ts';

/** A multiple of the contract's ten seconds, for a busy machine. */
const FAILED_START = { timeoutMs: 90_000 };
const SECRETS = {
  BOOT_AGENT_KEY: 'sk-agent-of-a-bundle',
  BOOT_PUBLIC_KEY: 'pk-of-a-bundle',
  BOOT_SECRET_KEY: 'sk-of-a-bundle',
  ROUTER_API_KEY: 'sk-router-of-a-bundle',
};
const HOOK = 'the secret of a webhook';
/** Of `npm start` without the key of a provider. */
const ENCODER = 'local/universal-sentence-encoder-lite';

type AgentFiles = Record<'MANIFEST' | 'SECRETS_DIR', string>;

/** The sample agent with credentials from two bundles, an endpoint and a webhook. */
async function agentFiles(): Promise<AgentFiles> {
  const folder = await freeFolder('agent');
  await cp(join(root, 'examples/acme-support'), folder, { recursive: true });
  const text = await readFile(join(folder, 'manifest.yaml'), 'utf8');
  const changed = text
    .replace('endpoint: false', 'endpoint: true\nsecrets:\n  - secret_name: agent\n  - secret_name: hooks')
    .replaceAll('${AGENT_API_KEY}', '${BOOT_AGENT_KEY}')
    .replaceAll('${PLATFORM_PUBLIC_KEY}', '${BOOT_PUBLIC_KEY}')
    .replaceAll('${PLATFORM_SECRET_KEY}', '${BOOT_SECRET_KEY}')
    .concat('\n  webhooks:\n    - { name: orders, secret_env: "${BOOT_HOOK}", header: x-signature, routines: [triage-warranty-claim] }\n');
  await writeFile(join(folder, 'manifest.yaml'), changed);
  await mkdir(join(folder, 'secrets', 'hooks'), { recursive: true });
  await writeFile(
    join(folder, 'secrets', 'agent.env'),
    Object.entries(SECRETS)
      .map((pair) => pair.join('='))
      .join('\n'),
  );
  await writeFile(join(folder, 'secrets', 'hooks', 'BOOT_HOOK'), HOOK);
  return { MANIFEST: join(folder, 'manifest.yaml'), SECRETS_DIR: join(folder, 'secrets') };
}

/** With a second routine that has policies, and a table of documents with their vectors. @param port of the table's server */
async function withVectors(files: AgentFiles, port: number): Promise<AgentFiles> {
  const write = (path: string, document: object) => writeFile(join(dirname(files.MANIFEST), 'documents', path), JSON.stringify(document));
  await write('policies/limescale.yaml', { id: 'limescale', version: 1, condition: 'The machine has limescale', action: 'say: use citric acid' });
  await write('routines/descale.yaml', {
    ...{ id: 'descale', version: 1, title: 'Descale a machine', conditions: ['The customer wants to descale a machine'], policies: ['limescale'] },
    ...{ steps: [{ id: 'tank', kind: 'chat', chat_state: 'Have the tank emptied.' }], transitions: [{ from: 'tank', to: 'end' }] },
  });
  const text = await readFile(files.MANIFEST, 'utf8');
  const changed = text
    .replace('    routines:\n', '    routines:\n      - { id: descale, version: 1 }\n')
    .replace('    policies:\n', '    policies:\n      - { id: limescale, version: 1 }\n')
    .concat(`  search:\n    { hostname: 127.0.0.1, port: ${port}, password: "$\{BOOT_SECRET_KEY}", sslmode: disable, collection: docs, top_k: 1,\n`)
    .concat(`      metadata_filter: { shop: acme }, embedding_model: ${ENCODER}, embedding_dimensions: 512 }\n`);
  await writeFile(files.MANIFEST, changed);
  return files;
}

describe('an agent with secret bundles, an endpoint and a table of vectors', () => {
  let files: AgentFiles;
  let table: VectorServer;
  let standalone: Standalone;
  beforeAll(async () => {
    table = await openVectorServer(SECRETS.BOOT_SECRET_KEY);
    await table.database.exec('create table docs (id serial primary key, embedding vector(512), metadata jsonb not null)');
    files = await withVectors(await agentFiles(), table.port);
    const platform = { PLATFORM_PUBLIC_KEY: SECRETS.BOOT_PUBLIC_KEY, PLATFORM_SECRET_KEY: SECRETS.BOOT_SECRET_KEY };
    standalone = await startStandalone({ env: { ...files, ...platform, AGENT_PUBLIC_URL: 'https://acme.example/agent', LOG_LEVEL: 'trace' } });
  });
  afterAll(async () => {
    await standalone?.stop();
    await table?.close();
  });

  /** By turns in sessions of their own. */
  async function untilTurn(message: string, isIt: (record: TurnRecord) => boolean): Promise<TurnRecord & { text: string }> {
    const agent = agentClient(standalone.agentUrl, SECRETS.BOOT_AGENT_KEY);
    // On a busy machine vectors may be late, and the turn goes on without.
    return eventually(
      async () => {
        const { id } = await agent.createSession({ allow_greeting: false });
        await agent.postMessage(id, message);
        const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
        const address = `${standalone.agentUrl}/sessions/${id}/turns/${log.at(-1)?.trace_id}`;
        const response = await fetch(address, { headers: { authorization: `Bearer ${SECRETS.BOOT_AGENT_KEY}` } });
        const record = turnRecord.parse(await response.json());
        const text = log.flatMap((event) => (event.kind === 'assistant_message' ? [String(event.text)] : [])).join('');
        return isIt(record) && { ...record, text };
      },
      { timeoutMs: 120_000, lookAgainMs: 1_000 },
    );
  }

  it('has the key of its bundle, as a bearer token and for a login', async () => {
    const key = SECRETS.BOOT_AGENT_KEY;
    const withKey = await fetch(`${standalone.agentUrl}/runs`, { headers: { authorization: `Bearer ${key}` } });
    const login = await fetch(`${standalone.agentUrl}/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ key }),
    });
    const [cookie = ''] = login.headers.get('set-cookie')?.split(';') ?? [];
    const chat = await fetch(`${standalone.agentUrl}/chat`, { headers: { cookie } });

    expect([withKey.status, login.status, chat.status]).toEqual([200, 204, 200]);
    expect((await fetch(`${standalone.agentUrl}/chat`, { headers: { accept: 'text/html' }, redirect: 'manual' })).headers.get('location')).toBe(
      '/auth/login?next=%2Fchat',
    );
  });

  it('is listed by the platform with its address', async () => {
    const headers = { authorization: `Basic ${Buffer.from(`${SECRETS.BOOT_PUBLIC_KEY}:${SECRETS.BOOT_SECRET_KEY}`).toString('base64')}` };
    const listed = await eventually(async () => {
      const { items } = (await (await fetch(`${standalone.routerUrl}/api/v1/platform/agents`, { headers })).json()) as { items: unknown[] };
      if (items.length === 0) throw new Error('no agent is registered yet');
      return items;
    });

    expect(listed).toMatchObject([{ id: 'acme-support', url: 'https://acme.example/agent', is_live: true }]);
  });

  it('DESIGN 11: takes a rotated secret of a webhook without a restart', async () => {
    const body = JSON.stringify({ sender: 'a@b.example', subject: 'Late', body: 'Where is it?' });
    const deliver = async (secret: string) => {
      const signature = createHmac('sha256', secret).update(body).digest('hex');
      return (await fetch(`${standalone.agentUrl}/webhooks/orders`, { method: 'POST', headers: { 'x-signature': signature }, body })).status;
    };
    expect(await deliver('another secret')).toBe(401);
    expect(await deliver(HOOK)).not.toBe(401);

    await writeFile(join(files.SECRETS_DIR, 'hooks', 'BOOT_HOOK'), 'a rotated secret');

    expect(await deliver(HOOK)).toBe(401);
    expect(await deliver('a rotated secret')).not.toBe(401);
  });

  it('rules 12, 14: finds the routine that a message is like by vectors, which were made after the start', async () => {
    await eventually(() => standalone.output().includes('documents were evaluated'));
    const record = await untilTurn('Cleaning espresso makers', ({ likeness }) => likeness?.routine?.by === 'vectors');

    // No word of the message is in a text of a routine.
    expect(record.likeness).toMatchObject({ routine: { id: 'descale', by: 'vectors' }, terms: null, failure: null, model: ENCODER });
    expect(record.calls.map(({ kind }) => kind)).toContain('embed-messages');
    expect(record.outcome).toBe('replied');
  });

  it('agent-server.md search: rules 77 to 79: finds by its meaning what the table of its manifest has, with the vectors of the router', async () => {
    const found = 'International orders: a parcel takes five days.';
    // The second has more words of the question, the third is nearest and of another shop.
    const rows = [
      [found, { content: found, shop: 'acme' }],
      ['Can you play a song? Can you send a song?', { shop: 'acme' }],
      ['Can you send a parcel abroad?', { content: 'Another shop sends nothing.', shop: 'other' }],
    ] as const;
    const response = await fetch(`${standalone.routerUrl}/api/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRETS.ROUTER_API_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: ENCODER, input: rows.map(([text]) => text) }),
    });
    const { data } = (await response.json()) as { data: { embedding: number[] }[] };
    for (const [index, [, metadata]] of rows.entries()) {
      await table.database.query('insert into docs (embedding, metadata) values ($1, $2)', [JSON.stringify(data[index]?.embedding), metadata]);
    }

    const record = await untilTurn('Can you send a parcel abroad?', ({ retrieval }) => retrieval?.failure === null);

    expect(record.retrieval).toMatchObject({ documents: 1, query: { text: 'Can you send a parcel abroad?', failure: null } });
    expect(record.text).toContain('a parcel takes five days');
    expect(record.text).not.toContain('Another shop');
    expect(record.calls.map(({ kind }) => kind)).toContain('embed');
  });

  it('DESIGN 11: keeps the values of bundles out of its log and of its files', async () => {
    const keys = await readFile(join(standalone.dataDir, 'keys.json'), 'utf8');
    for (const secret of [...Object.values(SECRETS), HOOK]) {
      expect(standalone.output()).not.toContain(secret);
      expect(keys).not.toContain(secret);
    }
  });
});

describe('a start that can not succeed', () => {
  it('ends within 10 s with the bundle, or the setting, that is missing', async () => {
    const files = await agentFiles();
    const cases: [Record<string, string>, RegExp][] = [
      [
        { MANIFEST: files.MANIFEST, SECRETS_DIR: join(files.SECRETS_DIR, 'hooks'), AGENT_PUBLIC_URL: 'https://acme.example' },
        /there is no secret bundle "agent"/,
      ],
      [files, /endpoint: AGENT_PUBLIC_URL is not set/],
      [{ MANIFEST: files.MANIFEST, AGENT_PUBLIC_URL: 'https://acme.example' }, /the environment variable BOOT_AGENT_KEY is not set/],
      [{ LLM_PROVIDER_ORDER: 'a,,b' }, /LLM_PROVIDER_ORDER/],
    ];
    await Promise.all(
      cases.map(async ([env, reason]) => {
        const program = runProgram(builtProgram, { env: { ROUTER_PORT: '0', AGENT_PORT: '0', DATA_DIR: join(await freeFolder('data'), 'data'), ...env } });
        await eventually(() => program.hasExited(), FAILED_START);

        expect(await program.exited, program.output()).toEqual({ code: 1, signal: null });
        expect(program.output()).toMatch(reason);
        for (const secret of Object.values(SECRETS)) expect(program.output()).not.toContain(secret);
      }),
    );
  });

  it('of an agent gateway ends within 10 s with one line: what it needs, or the database of its manifest', async () => {
    const files = await agentFiles();
    const settings = {
      ...{ NATS_URL: 'nats://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1', HOUSE_SECRET: 'x'.repeat(32), PORT: '0', MANAGEMENT_PORT: '0' },
      AGENT_PUBLIC_URL: 'https://acme.example',
    };
    const withDatabase = join(await freeFolder('agent'), 'manifest.yaml');
    const database = '{ hostname: 127.0.0.1, port: 1, password: "${BOOT_SECRET_KEY}", dbname: agents, sslmode: prefer }';
    await writeFile(withDatabase, `${await readFile(files.MANIFEST, 'utf8')}  database: ${database}\n`);
    const documents = join(dirname(files.MANIFEST), 'documents');
    const cases: [Record<string, string>, RegExp][] = [
      [files, /DATABASE_URL: is missing, and the manifest has no agent_config\.database/],
      [{ ...files, MANIFEST: withDatabase, DOCUMENTS: documents }, /PostgreSQL at 127\.0\.0\.1:1\/agents has not answered for 8 s/],
      [{ ...files, SECRETS_DIR: dirname(files.SECRETS_DIR), DATABASE_URL: 'postgres://127.0.0.1:1/agents' }, /there is no secret bundle "agent"/],
      [{ ...files, DATABASE_URL: 'postgres://127.0.0.1:1/agents?sslmode=verify' }, /sslmode must be one of disable, allow, prefer/],
    ];
    await Promise.all(
      cases.map(async ([env, reason]) => {
        const program = runProgram([process.execPath, 'dist/services/agent-gateway/main.js'], { env: { ...settings, ...env } });
        await eventually(() => program.hasExited(), FAILED_START);

        expect(await program.exited, program.output()).toEqual({ code: 1, signal: null });
        const lines = program
          .output()
          .split('\n')
          .filter((line) => line !== '' && !line.startsWith('{'));
        expect(lines.join('\n')).toMatch(/^agent-gateway can't start: /);
        expect(lines.join('\n')).toMatch(reason);
        for (const secret of Object.values(SECRETS)) expect(program.output()).not.toContain(secret);
      }),
    );
  });
});
