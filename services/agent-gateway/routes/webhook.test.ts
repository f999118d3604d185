import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { deliver, SIGNATURE_HEADER, signatureOf, WEBHOOK_SECRET } from '../test-support/signed.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(async () => {
  await deployment.closeApps();
  await deployment.database.query('delete from runs');
});

const SECRET_REF = '$' + '{HOOK_SECRET}';
const GITHUB = { secret_env: SECRET_REF, header: 'X-Hub-Signature-256', prefix: 'sha256=' };
const BUNDLE = bundleWith(
  { id: 'triage', autonomous: { webhook: GITHUB }, input_schema: { type: 'object', required: ['claim'] } },
  { id: 'short', autonomous: { webhook: { secret_env: SECRET_REF, header: 'X-Signature', algorithm: 'sha1' } } },
  { id: 'long', autonomous: { webhook: { secret_env: SECRET_REF, header: 'X-Signature', algorithm: 'sha512', prefix: 'v1,' } } },
  { id: 'other-secret', autonomous: { webhook: { ...GITHUB, secret_env: '$' + '{UNSET}' } } },
  { id: 'plain' },
  { id: 'switched-off', enabled: false, autonomous: { webhook: GITHUB } },
  { id: 'talk', kind: 'conversational', conditions: ['always'], steps: [{ kind: 'chat', id: 'a', chat_state: 'Hello' }] },
);
const EVENT = { claim: 'broken', action: 'opened' };

/** Bodies of deliveries, as their bytes. */
function bodiesOf(folder: 'valid' | 'invalid') {
  const file = new URL(`../../../tests/corpus/agent/${folder}/webhook.json`, import.meta.url);
  const cases = z.array(z.object({ case: z.string(), body: z.string() })).min(1);
  return cases.parse(JSON.parse(readFileSync(file, 'utf8')));
}

function app(changes: Parameters<TestDeployment['app']>[0] = {}) {
  return deployment.app({ bundle: BUNDLE, secretNow: (reference) => (reference === SECRET_REF ? WEBHOOK_SECRET : null), ...changes });
}

async function rows(): Promise<Record<string, unknown>[]> {
  return (await deployment.database.query<Record<string, unknown>>('select * from runs order by created_at, id')).rows;
}

/** All that a client can compare. */
function faceOf({ statusCode, headers, body }: LightMyRequestResponse) {
  const { 'x-request-id': _id, date: _date, ...rest } = headers;
  return { statusCode, headers: rest, body };
}

describe('refusals of a delivery', () => {
  it('are 503 while the gateway is not ready, whatever the name', async () => {
    const booting = app({
      database: {
        ...deployment.database,
        query: async (statement, parameters) =>
          typeof statement !== 'string' && statement.name === 'agent-gateway-bundle'
            ? { rows: [], rowCount: 0 }
            : deployment.database.query(statement, parameters),
      },
      waits: { bootCheckMs: 60_000 },
    });

    for (const name of ['triage', 'unknown']) expect((await deliver(booting, name, EVENT)).statusCode).toBe(503);
  });

  it('DESIGN 11: are the same 404 for an unknown name and for a routine without a webhook, with the agent’s key or without', async () => {
    const on = app();
    const first = await deliver(on, 'unknown', EVENT);

    expect(first.statusCode).toBe(404);
    expect(first.json()).toEqual({ error: 'there is no webhook with this name', code: 'not_found' });
    for (const name of ['plain', 'switched-off', 'talk', 'a%00b', '__proto__', 'constructor', 'x'.repeat(200), '%zz'])
      for (const headers of [null, {}, { ...BEARER }]) expect(faceOf(await deliver(on, name, '{', headers))).toEqual(faceOf(first));
  });

  it('is 405 for other methods, with the agent’s key and without', async () => {
    expect((await app().inject({ method: 'GET', url: '/webhooks/triage' })).statusCode).toBe(405);
    expect((await app().inject({ method: 'GET', url: '/webhooks/triage', headers: BEARER })).statusCode).toBe(405);
  });

  it('is 413 for a body over 1 MiB, before its signature is looked at, and none for one of 1 MiB', async () => {
    const large = `{"claim":"${'x'.repeat(1_024 * 1_024 - 12)}"}`;
    expect(Buffer.byteLength(large)).toBe(1_024 * 1_024);

    expect((await deliver(app(), 'triage', `${large} `, { [SIGNATURE_HEADER]: 'x' })).statusCode).toBe(413);
    expect((await deliver(app(), 'triage', large)).statusCode).toBe(202);
  });

  it('is 415 for a Content-Encoding', async () => {
    const payload = JSON.stringify(EVENT);
    const signed = { [SIGNATURE_HEADER]: `sha256=${signatureOf(payload)}` };

    expect((await deliver(app(), 'triage', payload, { ...signed, 'content-encoding': 'gzip' })).statusCode).toBe(415);
    expect((await deliver(app(), 'triage', payload, { ...signed, 'content-encoding': 'identity' })).statusCode).toBe(202);
  });

  it.each([
    ['without a signature', 'triage', {}],
    ['with the agent’s key in its place', 'triage', { ...BEARER }],
    ['with that of another secret', 'triage', { [SIGNATURE_HEADER]: `sha256=${signatureOf(JSON.stringify(EVENT), 'other')}` }],
    ['with that of another body', 'triage', { [SIGNATURE_HEADER]: `sha256=${signatureOf('{}')}` }],
    ['with that of another algorithm', 'triage', { [SIGNATURE_HEADER]: `sha256=${signatureOf(JSON.stringify(EVENT), WEBHOOK_SECRET, 'sha1')}` }],
    ['in another header', 'triage', { 'x-signature': `sha256=${signatureOf(JSON.stringify(EVENT))}` }],
    ['while the secret is not set', 'other-secret', { [SIGNATURE_HEADER]: `sha256=${signatureOf(JSON.stringify(EVENT))}` }],
    ['while the secret is not set, signed with an empty one', 'other-secret', { [SIGNATURE_HEADER]: `sha256=${signatureOf(JSON.stringify(EVENT), '')}` }],
  ])('DESIGN 11: is 401 %s, and says no more', async (_case, name, headers) => {
    const reply = await deliver(app(), name, EVENT, headers);

    expect(reply.statusCode).toBe(401);
    expect(reply.json()).toEqual({ error: 'unauthorized', code: 'unauthorized' });
    expect(reply.headers['www-authenticate']).toBeUndefined();
    expect(await rows()).toEqual([]);
  });

  it('is 401 for a signature that is sent twice', async () => {
    const on = app();
    const { port } = new URL(await on.listen({ host: '127.0.0.1', port: 0 }));
    const payload = JSON.stringify(EVENT);
    const signature = `sha256=${signatureOf(payload)}`;
    const statusWith = async (...signatures: string[]) => {
      const headers = ['Host', '127.0.0.1', 'Content-Length', String(payload.length), ...signatures.flatMap((value) => ['X-Hub-Signature-256', value])];
      const sent = httpRequest({ port, method: 'POST', path: '/webhooks/triage', headers });
      sent.end(payload);
      const [reply] = (await once(sent, 'response')) as [IncomingMessage];
      reply.resume();
      return reply.statusCode;
    };

    expect(await statusWith(signature, signature)).toBe(401);
    expect(await statusWith(signature)).toBe(202);
  });

  it.each(bodiesOf('invalid'))('are 400 for a signed body that is no JSON object, and 401 without a signature: $case', async ({ body }) => {
    const reply = await deliver(app(), 'triage', body);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed' });
    expect((await deliver(app(), 'triage', body, {})).statusCode).toBe(401);
    expect(await rows()).toEqual([]);
  });
});

it('a delivery may have one byte order mark, and is 400 with two', async () => {
  const text = '{"number":1}';

  expect((await deliver(app(), 'triage', `\uFEFF${text}`)).statusCode).toBe(202);
  expect((await deliver(app(), 'triage', `\uFEFF\uFEFF${text}`)).json()).toEqual({ error: 'the body is not valid JSON', code: 'validation_failed' });
});

it.each(bodiesOf('valid'))('a delivery is accepted with $case: the schema of the routine is a matter of its run', async ({ body }) => {
  const reply = await deliver(app(), 'triage', body);

  expect(reply.statusCode).toBe(202);
  expect(await rows()).toMatchObject([{ id: reply.json().run_id, idempotency_key: `wh:triage:${createHash('sha256').update(body).digest('hex')}` }]);
});

describe('a delivery to the webhook of a routine', () => {
  it('starts a run without a callback, in a session of its own', async () => {
    const reply = await deliver(app(), 'triage', EVENT);

    const run = reply.json();
    expect(reply.statusCode).toBe(202);
    expect(run).toEqual({
      run_id: expect.stringMatching(/^run_[0-9A-Z]{26}$/),
      routine_id: 'triage',
      status: 'accepted',
      session_id: run.run_id.replace('run_', 'ses_'),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    expect(await rows()).toMatchObject([
      {
        id: run.run_id,
        p: partitionOf(run.session_id),
        session_id: run.session_id,
        customer_id: run.run_id.replace('run_', 'cus_'),
        ephemeral: true,
        routine_id: 'triage',
        idempotency_key: expect.stringMatching(/^wh:triage:[0-9a-f]{64}$/),
        state: 'accepted',
        input: EVENT,
        metadata: { webhook: 'triage' },
        callback_url: null,
      },
    ]);
    const starts = () => deployment.owner.commands.filter((command) => command.type === 'run.start' && command.runId === run.run_id);
    await until(() => starts().length > 0, 'the command');
    expect(starts()).toHaveLength(1);
  });

  it('returns the first run with 200 when the same bytes come again, whatever became of it', async () => {
    const on = app();
    const first = await deliver(on, 'triage', EVENT);
    await deployment.database.query(`update runs set state = 'failed', error = '{}'`);

    const again = await deliver(on, 'triage', EVENT);
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual({ ...first.json(), status: 'failed' });
    expect((await deliver(on, 'triage', `${JSON.stringify(EVENT)}\n`)).statusCode).toBe(202);
    expect((await deliver(on, 'short', EVENT, { 'x-signature': signatureOf(JSON.stringify(EVENT), WEBHOOK_SECRET, 'sha1') })).statusCode).toBe(202);
    expect(await rows()).toHaveLength(3);
  });

  it('DESIGN 5: starts one run, however many repeats of it arrive at once', async () => {
    const gateways = [app(), app()];

    const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => deliver(gateways[n % 2] ?? app(), 'triage', EVENT)));

    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([...Array(19).fill(200), 202]);
    expect(new Set(replies.map((reply) => reply.json().run_id)).size).toBe(1);
    expect(await rows()).toHaveLength(1);
  });

  it('leaves the input schema to the run, which fails by it', async () => {
    expect((await deliver(app(), 'triage', { other: 1 })).statusCode).toBe(202);
  });

  it('has a number that cannot be kept as a string of its text, and any other as a number', async () => {
    const reply = await deliver(app(), 'triage', '{"claim":"broken","id":9007199254740993,"count":2,"amount":12345678901234567.00,"more":[1,1e400]}');

    expect(reply.statusCode).toBe(202);
    expect(await rows()).toMatchObject([{ input: { claim: 'broken', id: '9007199254740993', count: 2, amount: 12345678901234568, more: [1, '1e400'] } }]);
  });

  it.each([
    ['short', (body: string) => signatureOf(body, WEBHOOK_SECRET, 'sha1')],
    ['long', (body: string) => `v1,${signatureOf(body, WEBHOOK_SECRET, 'sha512')}`],
  ])('is signed by the algorithm and with the prefix of %s', async (name, sign) => {
    const body = JSON.stringify(EVENT);

    expect((await deliver(app(), name, body, { 'x-signature': sign(body) })).statusCode).toBe(202);
  });

  it.each(['application/x-www-form-urlencoded', 'text/plain; charset=latin1', '///', ''])('is read as JSON whatever its type: %j', async (type) => {
    const body = '\ufeff{"claim":"\\u0000 ü"}';
    const headers = { [SIGNATURE_HEADER]: `sha256=${signatureOf(body)}`, 'content-type': type };

    expect((await deliver(app(), 'triage', body, headers)).statusCode).toBe(202);
    expect(await rows()).toMatchObject([{ input: { claim: '\u0000 ü' } }]);
  });

  it('DESIGN 11: is checked with the secret as it is at that moment, and with no other', async () => {
    let secret: string | null = 'before';
    const on = app({ secretNow: () => secret });
    const statusWith = async (used: string, body: string) =>
      (await deliver(on, 'triage', body, { [SIGNATURE_HEADER]: `sha256=${signatureOf(body, used)}` })).statusCode;

    expect(await statusWith('before', '{"n":1}')).toBe(202);
    secret = 'after';
    expect(await statusWith('before', '{"n":2}')).toBe(401);
    expect(await statusWith('after', '{"n":2}')).toBe(202);
    secret = null;
    expect(await statusWith('after', '{"n":3}')).toBe(401);
  });
});
