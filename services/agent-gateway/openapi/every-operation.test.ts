import type { FastifyInstance, InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleOf, withVariables } from '../test-support/bundle.ts';
import { SIGNATURE_HEADER, signatureOf, WEBHOOK_SECRET } from '../test-support/signed.ts';
import { API_KEY, BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { operations } from './operations.ts';

const REFERENCE = '$' + '{HOOK_SECRET}';
const HOOK = { secret_env: REFERENCE, header: 'X-Hub-Signature-256', prefix: 'sha256=' };
const talk = { id: 'talk', kind: 'conversational', conditions: ['always'], steps: [{ kind: 'chat', id: 'a', chat_state: 'Hello' }] };
const bundle = withVariables(bundleOf({}, { id: 'triage', autonomous: { webhook: HOOK } }, talk), { id: 'account', variables: [{ name: 'plan' }] });
const CALLBACK = 'https://hooks.example/';
const DELIVERY = JSON.stringify({ claim: 'broken' });
const TRACE = '1'.repeat(32);

let deployment: TestDeployment;
let app: FastifyInstance;
/** Ids of what exists. */
const known: Record<string, string> = { customer_id: 'ada', variable_name: 'plan', key: 'DEFAULT', routine_id: 'triage', name: 'triage', trace_id: TRACE };

beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
  app = deployment.app({ bundle, secretNow: (reference) => (reference === REFERENCE ? WEBHOOK_SECRET : null), waits: { loginMs: 0 } });
});
afterAll(() => deployment.close());

interface Asked {
  operation: string;
  /** Behind the path. */
  query?: string;
  body?: object | string;
  headers?: Record<string, string>;
  status: number;
  /** What later requests name. */
  after?(answer: Record<string, unknown>, body: string): unknown;
}

/** One that succeeds for each operation, in an order in which what they name exists. */
const asked: readonly Asked[] = [
  { operation: 'GET /health/live', status: 200 },
  { operation: 'GET /health/ready', status: 200 },
  { operation: 'GET /health', status: 200 },
  { operation: 'GET /auth/login', status: 200, after: (_, page) => name('file', /\/auth\/pages\/([\w.-]+\.css)/.exec(page)?.[1]) },
  { operation: 'GET /auth/pages/{file}', status: 200 },
  { operation: 'POST /auth/login', body: { key: API_KEY }, status: 204 },
  { operation: 'POST /auth/logout', body: {}, status: 204 },
  { operation: 'GET /', status: 200 },
  { operation: 'GET /chat', status: 200, after: (_, page) => name('file', /\/pages\/([\w.-]+\.js)/.exec(page)?.[1]) },
  { operation: 'GET /console', status: 200 },
  { operation: 'GET /pages/{file}', status: 200 },
  { operation: 'GET /openapi.json', status: 200 },
  { operation: 'GET /docs', status: 200 },
  { operation: 'POST /customers', body: { id: 'ada', name: 'Ada' }, status: 201 },
  { operation: 'GET /customers', status: 200 },
  { operation: 'GET /customers/{customer_id}', status: 200 },
  { operation: 'PATCH /customers/{customer_id}', body: { name: 'Bea' }, status: 200 },
  { operation: 'PUT /customers/{customer_id}/variables/{variable_name}', body: { data: 'gold' }, status: 200 },
  { operation: 'GET /customers/{customer_id}/variables', status: 200 },
  { operation: 'GET /customers/{customer_id}/variables/{variable_name}', status: 200 },
  { operation: 'DELETE /customers/{customer_id}/variables/{variable_name}', status: 204 },
  { operation: 'PUT /variables/{variable_name}/values/{key}', body: { data: 'silver' }, status: 200 },
  { operation: 'GET /variables/{variable_name}/values/{key}', status: 200 },
  { operation: 'DELETE /variables/{variable_name}/values/{key}', status: 204 },
  { operation: 'POST /sessions', body: { customer_id: 'ada' }, status: 201, after: ({ id }) => name('session_id', id) },
  { operation: 'GET /sessions', status: 200 },
  { operation: 'GET /sessions/{session_id}', status: 200 },
  { operation: 'PATCH /sessions/{session_id}', body: { title: 'Leak' }, status: 200 },
  {
    operation: 'POST /sessions/{session_id}/events',
    body: { kind: 'user_message', text: 'It leaks' },
    status: 201,
    after: async ({ id }) => {
      name('event_id', id);
      const status = (word: 'acknowledged' | 'ready') => ({ kind: 'status' as const, status: word, stage: null, error_detail: null, trace_id: TRACE });
      await deployment.owner.append(known['session_id'] ?? '', status('acknowledged'), status('ready'));
    },
  },
  { operation: 'GET /sessions/{session_id}/events', query: '?wait_for_data=0', status: 200 },
  { operation: 'GET /sessions/{session_id}/events/{event_id}', status: 200 },
  { operation: 'PATCH /sessions/{session_id}/events/{event_id}', body: { metadata: { set: { seen: true } } }, status: 200 },
  { operation: 'GET /sessions/{session_id}/turns', status: 200 },
  { operation: 'GET /sessions/{session_id}/turns/{trace_id}', status: 200 },
  { operation: 'POST /sessions/{session_id}/tool_events', body: { tool_id: 'shop:order', result: 1 }, status: 200 },
  { operation: 'PUT /sessions/{session_id}/event_webhook', body: { url: CALLBACK }, status: 200, after: () => eventWebhook() },
  { operation: 'GET /sessions/{session_id}/event_webhook', status: 200 },
  { operation: 'DELETE /sessions/{session_id}/events', query: '?min_offset=0', status: 204 },
  { operation: 'POST /routines/{routine_id}/trigger', body: { callback_url: CALLBACK }, status: 202, after: ({ run_id }) => name('run_id', run_id) },
  { operation: 'GET /runs', status: 200 },
  { operation: 'GET /runs/{run_id}', status: 200 },
  { operation: 'GET /runs/{run_id}/steps', status: 200 },
  { operation: 'GET /runs/{run_id}/deliveries', status: 200 },
  { operation: 'POST /runs/{run_id}/cancel', body: {}, status: 202 },
  {
    operation: 'POST /webhooks/{name}',
    body: DELIVERY,
    headers: { [SIGNATURE_HEADER]: `sha256=${signatureOf(DELIVERY)}`, 'content-type': 'application/json' },
    status: 202,
    after: () => deadLetter(),
  },
  { operation: 'GET /deliveries', status: 200 },
  { operation: 'GET /webhook_deliveries', status: 200 },
  { operation: 'GET /dead_letters', status: 200 },
  { operation: 'POST /dead_letters/{dead_letter_id}/replay', body: {}, status: 202 },
  { operation: 'GET /journeys', status: 200, after: ({ items }) => name('journey_id', (items as { id: string }[])[0]?.id) },
  { operation: 'GET /journeys/{journey_id}/graph', status: 200 },
  { operation: 'DELETE /sessions/{session_id}', status: 204 },
  { operation: 'DELETE /customers/{customer_id}', status: 204 },
];

/** Need traces of their own: tracing.test.ts asks them, under the same checks. */
const ELSEWHERE = ['GET /traces', 'GET /traces/{trace_id}'];

function name(parameter: string, id: unknown): void {
  known[parameter] = String(id);
}

/** As the owner of the session stores it. */
async function eventWebhook(): Promise<void> {
  const context = { url: CALLBACK, isOn: true, cursor: 0, attempts: 0, waitingSinceMs: null, roundId: null };
  const snapshot = { eventWebhook: { value: 'idle', context } };
  await deployment.database.query('update sessions set snapshot = $2::json where id = $1', [known['session_id'], JSON.stringify(snapshot)]);
}

async function deadLetter(): Promise<void> {
  const command = { v: 1, type: 'session.delete', sessionId: 'ses_dead', commandId: 'c1', sentAtMs: 0, answerTo: null, traceparent: null };
  await deployment.database.query(`insert into dead_letters (id, p, source, reason, body, created_at) values ('c1', 1, 'command', 'it failed', $1, now())`, [
    JSON.stringify(command),
  ]);
  name('dead_letter_id', 'c1');
}

describe('every operation of the published API', () => {
  it('is asked here once', () => {
    expect([...asked.map(({ operation }) => operation), ...ELSEWHERE].sort()).toEqual(Object.keys(operations).sort());
  });

  it.each(asked)('$operation answers $status', async ({ operation, query = '', body, headers = BEARER, status, after }) => {
    const [method = '', template = ''] = operation.split(' ');
    const url = `${template.replace(/\{(\w+)\}/g, (_, parameter: string) => known[parameter] ?? 'unknown')}${query}`;
    const request = { method: method as 'GET', url, headers, ...(body !== undefined && { payload: body }) } satisfies InjectOptions;
    if (operations[operation]?.headers !== undefined) {
      const refused = await app.inject({ ...request, headers: { ...headers, 'idempotency-key': '' } });
      expect([refused.statusCode, refused.json()]).toMatchObject([400, { path: '/idempotency-key' }]);
    }
    const reply = await app.inject(request);

    expect([reply.statusCode, reply.body]).toEqual([status, expect.anything()]);
    expect(Object.keys(operations[operation]?.answers ?? {})).toContain(String(status));
    await after?.(reply.body.startsWith('{') ? reply.json() : {}, reply.body);
  });

  it('takes an idempotency key if it writes, but for those that have their effect once without one', () => {
    const keyless = ['POST /runs/{run_id}/cancel', 'POST /dead_letters/{dead_letter_id}/replay'];
    const writes = Object.entries(operations).flatMap(([operation, { access }]) => (access !== 'key' || operation.startsWith('GET ') ? [] : [operation]));

    expect(writes.filter((operation) => operations[operation]?.headers === undefined).sort()).toEqual(keyless.sort());
  });

  it('answers as its description says, without a field too many', async () => {
    // Throws what the checks of the answers have noted.
    await deployment.closeApps();
  });
});
