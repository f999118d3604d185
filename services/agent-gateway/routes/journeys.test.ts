import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { routineKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

const refund = {
  kind: 'conversational',
  id: 'refund',
  version: 3,
  title: 'Refund',
  description: 'Gives money back.',
  priority: 2,
  labels: ['money'],
  created_at: '2026-01-31T12:00:00Z',
  conditions: ['The customer wants money back'],
  steps: [
    { kind: 'chat', id: 'ask', chat_state: 'Ask "why"; <b>kindly</b>.' },
    { kind: 'fork', id: 'end-or-not' },
    { kind: 'tool', id: 'pay', tool_state: ['bank:pay'], metadata: { team: 'money' } },
  ],
  transitions: [
    { from: 'ask', to: 'end-or-not' },
    { id: 'yes', from: 'end-or-not', to: 'pay', when: 'There is a reason' },
    { from: 'end-or-not', to: 'end', when: 'There is none' },
  ],
};
const bundle = bundleWith({ id: 'nightly', version: 2 }, { ...refund, version: 2, enabled: false, title: 'Old' }, refund);
const journeyIdOf = (id: string, version: number) => `jrn_${createHash('sha256').update(`${id}:${version}`).digest('hex').slice(0, 16)}`;

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

const app = () => deployment.app({ bundle });

describe('GET /journeys', () => {
  it('lists the routines of the agent, each version by its own id', async () => {
    const reply = await send(app(), 'GET', '/journeys');

    expect(reply.statusCode).toBe(200);
    const { items } = reply.json();
    expect(items.map((item: { id: string; title: string }) => [item.id, item.title])).toEqual([
      [journeyIdOf('nightly', 2), ''],
      [journeyIdOf('refund', 2), 'Old'],
      [journeyIdOf('refund', 3), 'Refund'],
    ]);
    expect(items[2]).toEqual({
      id: journeyIdOf('refund', 3),
      routine_id: 'refund',
      version: 3,
      title: 'Refund',
      description: 'Gives money back.',
      kind: 'conversational',
      conditions: ['The customer wants money back'],
      root_id: 'root',
      priority: 2,
      labels: ['money'],
      evaluation: 'pending',
      created_at: '2026-01-31T12:00:00Z',
    });
  });

  it('is one drawing of all with format=mermaid, each in a frame of its own', async () => {
    const reply = await send(app(), 'GET', '/journeys?format=mermaid');

    expect([reply.statusCode, reply.headers['content-type']]).toEqual([200, 'text/vnd.mermaid; charset=utf-8']);
    const lines = reply.body.split('\n');
    expect(lines.slice(0, 8)).toEqual([
      'flowchart TD',
      '  subgraph r0["nightly"]',
      '    r0n0(("root"))',
      '    r0n1((("end")))',
      '    r0n0 --> r0n1',
      '  end',
      '  subgraph r1["refund<br>Old"]',
      '    r1n0(("root"))',
    ]);
    expect(lines.filter((line) => line.includes('subgraph'))).toHaveLength(3);
    expect(lines.filter((line) => line.trim() === 'end')).toHaveLength(3);
    expect(lines).toContain('    r2n2 -->|"There is a reason"| r2n3');
  });

  it('in a form that does not exist is 400', async () => {
    const reply = await send(app(), 'GET', '/journeys?format=png');
    expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: '/format' }]);
  });
});

describe('GET /journeys/{journey_id}/graph', () => {
  it('is the graph of a routine, by its journey id and its routine id', async () => {
    const reply = await send(app(), 'GET', '/journeys/refund/graph');

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual({
      journey: expect.objectContaining({ id: journeyIdOf('refund', 3), routine_id: 'refund', version: 3, evaluation: 'pending' }),
      nodes: [
        { id: 'root', kind: 'root', action: null, description: null, tools: [], labels: [], metadata: {} },
        { id: 'ask', kind: 'chat', action: 'Ask "why"; <b>kindly</b>.', description: null, tools: [], labels: [], metadata: {} },
        { id: 'end-or-not', kind: 'fork', action: null, description: null, tools: [], labels: [], metadata: {} },
        { id: 'pay', kind: 'tool', action: null, description: null, tools: ['bank:pay'], labels: [], metadata: { team: 'money' } },
        { id: 'end', kind: 'end', action: null, description: null, tools: [], labels: [], metadata: {} },
      ],
      edges: [
        { id: 'transition:0', source: 'root', target: 'ask', condition: null, metadata: {} },
        { id: 'transition:1', source: 'ask', target: 'end-or-not', condition: null, metadata: {} },
        { id: 'yes', source: 'end-or-not', target: 'pay', condition: 'There is a reason', metadata: {} },
        { id: 'transition:3', source: 'end-or-not', target: 'end', condition: 'There is none', metadata: {} },
      ],
    });
    expect((await send(app(), 'GET', `/journeys/${journeyIdOf('refund', 3)}/graph`)).json()).toEqual(reply.json());
    expect((await send(app(), 'GET', `/journeys/${journeyIdOf('refund', 2)}/graph`)).json().journey).toMatchObject({ version: 2, title: 'Old' });
  });

  it('has what a model found out about the steps, and says when it found nothing', async () => {
    const [, , routine] = bundle.body.documents.routines;
    const hash = routine === undefined ? null : routineKey(routine, 'switchyard/assistant');
    const store = (result: unknown) =>
      deployment.database.query(
        `insert into evaluations (hash, kind, result) values ($1, 'routine', $2::json) on conflict (hash) do update set result = excluded.result`,
        [hash, result === null ? null : JSON.stringify(result)],
      );
    const evaluated = {
      internal_action: 'Ask why the customer wants money back.',
      customer_dependent_action_data: { is_customer_dependent: true, customer_action: 'The reason is known', agent_action: null },
      tool_running_only: false,
    };
    const followUps = [{ condition: 'There is a reason', path: ['end-or-not', 'pay'] }];
    const graph = async () => (await send(app(), 'GET', '/journeys/refund/graph')).json();

    await store({ nodes: { ask: { ...evaluated, follow_ups: followUps }, pay: { ...evaluated, internal_action: null, follow_ups: [] } } });
    const { journey, nodes } = await graph();
    expect(journey.evaluation).toBe('done');
    const metadataOf = (id: string) => nodes.find((node: { id: string }) => node.id === id).metadata;
    expect(metadataOf('ask')).toEqual({ ...evaluated, 'journey_node.reachable_follow_ups': followUps });
    expect(metadataOf('pay')).toMatchObject({ team: 'money', internal_action: null });
    expect([metadataOf('root'), metadataOf('end')]).toEqual([{}, {}]);
    expect((await send(app(), 'GET', '/journeys')).json().items.map((item: { evaluation: string }) => item.evaluation)).toEqual(['done', 'pending', 'done']);

    await store(null);
    expect(await graph()).toMatchObject({ journey: { evaluation: 'failed' }, nodes: [{}, { id: 'ask', metadata: {} }, {}, {}, {}] });
    await store({ nodes: { ask: 'of a newer release' } });
    expect((await graph()).journey.evaluation).toBe('pending');
    await deployment.database.query('delete from evaluations');
  });

  it('of an autonomous routine without steps leads from the root to the end', async () => {
    const { journey, nodes, edges } = (await send(app(), 'GET', '/journeys/nightly/graph')).json();

    expect(journey).toMatchObject({ kind: 'autonomous', conditions: [], evaluation: 'done', created_at: null });
    expect(nodes.map(({ id }: { id: string }) => id)).toEqual(['root', 'end']);
    expect(edges).toEqual([{ id: 'transition:0', source: 'root', target: 'end', condition: null, metadata: {} }]);
  });

  it('is drawn with format=mermaid, where no text of the routine is read as a part of the drawing', async () => {
    const reply = await send(app(), 'GET', '/journeys/refund/graph?format=mermaid');

    expect([reply.statusCode, reply.headers['content-type']]).toEqual([200, 'text/vnd.mermaid; charset=utf-8']);
    expect(reply.body.split('\n')).toEqual([
      'flowchart TD',
      '  n0(("root"))',
      '  n1["ask<br>Ask #34;why#34;#59; #60;b#62;kindly#60;#47;b#62;."]',
      '  n2{"end-or-not"}',
      '  n3[["pay<br>bank:pay"]]',
      '  n4((("end")))',
      '  n0 --> n1',
      '  n1 --> n2',
      '  n2 -->|"There is a reason"| n3',
      '  n2 -->|"There is none"| n4',
      '',
    ]);
  });

  it.each(['', '?format=png'])('of an unknown routine is 404, also with an invalid query: %s', async (query) => {
    for (const id of ['refunds', 'jrn_0000000000000000', '%00', 'x'.repeat(129)]) {
      const reply = await send(app(), 'GET', `/journeys/${id}/graph${query}`);
      expect([id, reply.statusCode, reply.json().code]).toEqual([id, 404, 'not_found']);
    }
  });

  it('in a form that does not exist is 400', async () => {
    const reply = await send(app(), 'GET', '/journeys/refund/graph?format=png');
    expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: '/format' }]);
  });

  it('is 401 without the key, and 503 while the server is booting, also of an unknown routine', async () => {
    expect((await app().inject('/journeys/refund/graph')).statusCode).toBe(401);
    await deployment.database.query("update bundles set hash = 'another'");
    try {
      const booting = app();
      for (const url of ['/journeys', '/journeys/refund/graph', '/journeys/none/graph']) {
        const reply = await send(booting, 'GET', url);
        expect([reply.statusCode, reply.json().code]).toEqual([503, 'not_ready']);
      }
    } finally {
      await deployment.database.query("update bundles set hash = 'bundle-1'");
    }
  });
});
