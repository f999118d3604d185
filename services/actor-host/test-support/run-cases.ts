import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { SessionCommand } from '#bus/messages/session.ts';
import { asFirstVersion, asSecondVersion, firstCommand, firstRouterCall, firstToolWork } from '#bus/messages/test-support/first-version.ts';
import { toolWork } from '#bus/messages/tool.ts';
import { partitionOf } from '#bus/partition.ts';
import { callbackPayload } from '#shared/contracts/agent/callback.ts';
import { calledTools, create, start } from './commands.ts';
import { callbackOf, HEADER, isSettled, nextDelivery, nextItem, report, runOf, statusesOf, VERDICT } from './run-helpers.ts';
import { eventually, quickTimes, type TestCluster } from './test-cluster.ts';

/** Cases of runs from acceptance to end, for any driver. */
export function runCases(open: () => Promise<TestCluster>): void {
  const nextTool = async (cluster: TestCluster) => toolWork.parse(await nextItem(cluster, 'tool'));

  describe('runs', () => {
    it('goes from acceptance to a settled run: statuses under its trace, the row, one callback with the payload of the contract', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      const call = await next;
      expect(call).toMatchObject({
        callId: 'run_1-1',
        want: 'none',
        reply: { sessionId: 'ses_run', actorId: 'run_1', turnId: 'run_1' },
        request: { tool_choice: 'required' },
      });
      expect(JSON.stringify(call.request.messages)).toContain('broken');
      expect(await runOf(cluster)).toMatchObject({ state: 'running', completed_at: null });
      const delivery = nextDelivery(cluster);
      await cluster.send(calledTools('ses_run', call.callId, VERDICT));
      const item = await delivery;

      const run = await runOf(cluster);
      expect(run).toMatchObject({ state: 'succeeded', output: { verdict: 'refund' }, error: null });
      expect(await statusesOf(cluster, 'ses_run')).toEqual(['acknowledged', 'processing/thinking', 'ready']);
      expect(new Set((await cluster.log('ses_run')).map((event) => event.trace_id))).toEqual(new Set(['f'.repeat(32)]));
      expect(await callbackOf(cluster)).toEqual({
        schema_version: 1,
        run_id: 'run_1',
        routine_id: 'triage',
        status: 'succeeded',
        output: { verdict: 'refund' },
        error: null,
        session_id: 'ses_run',
        trace_id: 'f'.repeat(32),
        started_at: (run['started_at'] as Date).toISOString(),
        completed_at: (run['completed_at'] as Date).toISOString(),
        metadata: { order: 7 },
        idempotency_key: expect.any(String),
        origin_service: 'agent-server',
      });
      expect(callbackPayload.strict().safeParse(await callbackOf(cluster)).error).toBeUndefined();
      expect(item).toMatchObject({ deliveryId: 'run_1-callback', sessionId: 'ses_run', republished: false });
    });

    for (const [release, as] of [
      ['the release before', asFirstVersion],
      ['a later release', asSecondVersion],
    ] as const) {
      it(`DESIGN 3: a run goes on by results from workers of ${release}, and its items and timers are read by the release before`, async () => {
        const cluster = await open();
        await cluster.host();
        const tools = [{ name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }];
        await cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1)`, [JSON.stringify(tools)]);
        const send = ({ commandId, ...command }: SessionCommand) =>
          cluster.bus.commands.append(partitionOf('ses_run'), commandId, JSON.stringify(as({ ...command, commandId })));
        const base = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };

        const list = nextItem(cluster, 'tool');
        await cluster.startRun({ id: 'run_1', routineId: 'refund' });
        const { effectId: listing } = firstToolWork.parse(await list);
        const first = cluster.nextCall();
        await send({ ...base, type: 'tools.listed', commandId: listing, callId: listing, lists: { shop: 'h1' }, unavailable: {} });
        const { item, callId } = await first;
        expect(firstRouterCall.parse(JSON.parse(item.body)).reply?.turnId).toBe('run_1');
        const tool = nextItem(cluster, 'tool');
        await send(calledTools('ses_run', callId, [{ id: 'c0', name: 'shop__find', arguments: {} }]));
        const { effectId, turnId } = firstToolWork.parse(await tool);
        expect(turnId).toBe('run_1');
        const timers = await cluster.rows<{ command: string }>('select command::text as command from timers');
        expect(timers.map(({ command }) => firstCommand.parse(JSON.parse(command)).type).sort()).toEqual(['effect.overdue', 'run.deadline']);

        const second = cluster.nextCall();
        const outcome = { type: 'result' as const, data: {}, metadata: {}, isError: false };
        await send({ ...base, type: 'tool.completed', commandId: effectId, callId: effectId, outcome });
        await send(calledTools('ses_run', (await second).callId, VERDICT));
        await eventually(() => isSettled(cluster));
        expect(await runOf(cluster)).toMatchObject({ state: 'succeeded' });
      });
    }

    it('runs tools in parallel, appends the batch to the log as one event, and shows the model the results', async () => {
      const cluster = await open();
      await cluster.host();
      const tools = [{ name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }];
      await cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1)`, [JSON.stringify(tools)]);
      const list = nextTool(cluster);
      await cluster.startRun({ id: 'run_1', routineId: 'refund' });
      const listing = await list;
      expect(listing).toMatchObject({ type: 'list', servers: ['shop'] });
      const next = cluster.nextCall();
      const base = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };
      await cluster.send({ ...base, type: 'tools.listed', commandId: listing.effectId, callId: listing.effectId, lists: { shop: 'h1' }, unavailable: {} });
      const call = await next;
      const functions = (call.request.tools ?? []) as { function: { name: string } }[];
      expect(functions.map((tool) => tool.function.name)).toEqual(['shop__find', 'emit_output']);

      const items: ReturnType<typeof toolWork.parse>[] = [];
      const worker = cluster.bus.work.consume('tool', { concurrency: 2, ackWaitMs: 30_000 }, async (item) => {
        await item.ack();
        items.push(toolWork.parse(JSON.parse(item.body)));
      });
      const asked = ['A', 'B'].map((order, index) => ({ id: `c${index}`, name: 'shop__find', arguments: { order } }));
      await cluster.send(calledTools('ses_run', call.callId, asked));
      await eventually(() => items.length === 2);
      await worker.stop();
      const second = cluster.nextCall();
      // In reverse order.
      for (const item of [...items].reverse()) {
        if (item.type !== 'call') throw new Error('not a call');
        const outcome = { type: 'result' as const, data: { found: item.arguments['order'] }, metadata: {}, isError: false };
        await cluster.send({ ...base, type: 'tool.completed', commandId: item.effectId, callId: item.effectId, outcome });
      }
      const { request } = await second;
      expect(JSON.stringify(request.messages.slice(2))).toMatch(/assistant.*found.*found/);
      const event = (await cluster.log('ses_run')).find(({ kind }) => kind === 'tool');
      expect(event).toMatchObject({
        tool_calls: [
          { tool_id: 'shop:find', arguments: { order: 'A' }, result: { data: { found: 'A' } } },
          { tool_id: 'shop:find', arguments: { order: 'B' }, result: { data: { found: 'B' } } },
        ],
      });
    });

    it('stores how and when each of its calls ended, also after its session is deleted, and no text of them', async () => {
      const cluster = await open();
      await cluster.host();
      const tools = [{ name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }];
      await cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1)`, [JSON.stringify(tools)]);
      const list = nextTool(cluster);
      await cluster.startRun({ id: 'run_1', routineId: 'refund' });
      const { effectId } = await list;
      const base = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };
      const asked = cluster.nextCall();
      await cluster.send({ ...base, type: 'tools.listed', commandId: effectId, callId: effectId, lists: { shop: 'h1' }, unavailable: {} });
      const { callId } = await asked;
      const items = Promise.all([nextTool(cluster)]);
      const calls = ['A', 'B'].map((order) => ({ id: order, name: 'shop__find', arguments: { order } }));
      await cluster.send(calledTools('ses_run', callId, calls));
      await items;
      const outcome = { type: 'result' as const, data: 'a secret', metadata: {}, isError: true };
      await cluster.send({ ...base, type: 'tool.completed', commandId: 'run_1-3', callId: 'run_1-3', outcome });
      await cluster.send({ ...base, type: 'run.deadline', commandId: 'run_1-deadline' });
      const called = nextDelivery(cluster);
      await cluster.send(report((await called).effectId, 'delivered', 1));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);

      const ends = await cluster.rows<{ effect_id: string; outcome: object; ended_at: Date }>('select effect_id, outcome, ended_at from run_calls order by 1');
      const nothing = { reason: null, model: null, provider: null, usage: null };
      expect(ends.map(({ effect_id: id, outcome: stored }) => [id, stored])).toEqual([
        ['run_1-1', { ...nothing, type: 'listed' }],
        ['run_1-2', { ...nothing, type: 'tools', model: expect.any(String), provider: expect.any(String) }],
        ['run_1-3', { ...nothing, type: 'error' }],
        ['run_1-4', { ...nothing, type: 'abandoned' }],
      ]);
      expect(await cluster.count('effects', `turn_id = 'run_1' and state = 'open'`)).toBe(0);
      expect(JSON.stringify(ends)).not.toContain('secret');
    });

    it('DESIGN 5: a run goes on after its host has died, at the last recorded result, without a second model call', async () => {
      const cluster = await open();
      const first = await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      const { callId } = await next;
      first.crash();
      await cluster.send(calledTools('ses_run', callId, VERDICT));
      await cluster.host({ times: quickTimes });
      await eventually(() => isSettled(cluster));
      expect(await runOf(cluster)).toMatchObject({ state: 'succeeded' });
      expect(await cluster.count('effects', `kind = 'run-call'`)).toBe(1);
    });

    it('DESIGN 5: accepted rows whose command never came are started by the owner, at take-over and later', async () => {
      const cluster = await open();
      await cluster.acceptRun({ id: 'run_1' });
      const next = cluster.nextCall();
      await cluster.host();
      expect((await next).callId).toBe('run_1-1');
      await cluster.acceptRun({ id: 'run_2', sessionId: 'ses_late' });
      await cluster.rows(`update runs set created_at = created_at - interval '6 seconds' where id = 'run_2'`);
      const late = cluster.nextCall();
      expect((await late).callId).toBe('run_2-1');
    });

    it('starts a run once, however often its command is delivered', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(start('ses_run', 'run_1'), 'long after the window of the bus');
      await cluster.send({ ...start('ses_run', 'run_1'), commandId: 'another' }, 'another');
      await eventually(async () => (await cluster.count('seen')) === 2);
      expect(await cluster.count('effects')).toBe(1);
      expect(await statusesOf(cluster, 'ses_run')).toEqual(['acknowledged', 'processing/thinking']);
    });

    it.each([
      ['a run that takes too long', { timeoutMs: 200 }, 'timeout'],
      ['an input that breaks the schema by the time it starts', { input: { claim: 7 } }, 'input_validation_failed'],
      ['a routine that the configuration does not have', { routineId: 'unheard-of' }, 'engine_error'],
      ['a session that is not there', { ephemeral: false, sessionId: 'ses_unknown' }, 'session_error'],
      ['a run that is started after its time', { expiresInMs: -1 }, 'timeout'],
    ])('fails %s', async (_, run, code) => {
      const cluster = await open();
      await cluster.host();
      await cluster.startRun({ id: 'run_1', ...run });
      await eventually(() => isSettled(cluster));
      expect(await runOf(cluster)).toMatchObject({ state: 'failed', output: null, error: { code } });
      expect(await callbackOf(cluster)).toMatchObject({ status: 'failed', error: { code } });
      expect(await cluster.count('dead_letters')).toBe(0);
    });

    it.each(['result', 'timer'])('DESIGN 5: a model call that ran into the deadline of its run is a timeout, though the %s comes first', async (first) => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      const { callId } = await next;
      const base = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };
      const failure = { code: 'router.timeout', message: 'the call exceeded its time limit', details: {} };
      const result = { ...base, type: 'call.failed' as const, commandId: callId, callId, failure };
      const timer = { ...base, type: 'run.deadline' as const, commandId: 'run_1-deadline' };
      const called = nextDelivery(cluster);
      for (const command of first === 'result' ? [result, timer] : [timer, result]) await cluster.send(command);
      await called;
      await eventually(async () => (await cluster.count('seen')) === 3);
      expect(await runOf(cluster)).toMatchObject({ state: 'failed', error: { code: 'timeout', details: { timeout_seconds: 60 } } });
      expect(await callbackOf(cluster)).toMatchObject({ status: 'failed', error: { code: 'timeout' } });
      expect(await statusesOf(cluster, 'ses_run')).toEqual(['acknowledged', 'processing/thinking', 'error', 'ready']);
    });

    it('calls tools of a message whose text the database can not parse', async () => {
      const cluster = await open();
      await cluster.host();
      const tools = [{ name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }];
      await cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1)`, [JSON.stringify(tools)]);
      const list = nextTool(cluster);
      await cluster.startRun({ id: 'run_1', routineId: 'refund' });
      const { effectId } = await list;
      const next = cluster.nextCall();
      const base = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };
      await cluster.send({ ...base, type: 'tools.listed', commandId: effectId, callId: effectId, lists: { shop: 'h1' }, unavailable: {} });
      const call = await next;
      const item = nextTool(cluster);
      await cluster.send({ ...calledTools('ses_run', call.callId, [{ id: 'c', name: 'shop__find', arguments: { order: 'A' } }]), text: 'a\0b' });
      expect(await item).toMatchObject({ type: 'call', toolId: 'shop:find', arguments: { order: 'A' } });
    });

    it.each([
      ['a tool list that can not be read', 'succeeded', `insert into tool_lists (hash, tools) values ('h1', '[{"name":7}]')`],
      ['a schema that this version refuses', 'failed', `update bundles set body = replace(body::text, '"claim":{', '"claim":{"pattern":"(a+)+$",')::json`],
    ])('fails one run and no other: %s', async (_, state, damage) => {
      const cluster = await open();
      expect(await cluster.rows(`${damage} returning 1`)).toHaveLength(1);
      await cluster.host();
      const base = { ...HEADER, sessionId: 'ses_run', ...actorFields('run_1') };
      const lists = cluster.bus.work.consume('tool', { concurrency: 1, ackWaitMs: 30_000 }, async ({ messageId: callId }) => {
        await cluster.send({ ...base, type: 'tools.listed', commandId: callId, callId, lists: { shop: 'h1' }, unavailable: {} });
      });
      const calls = cluster.bus.work.consume('router.turn', { concurrency: 1, ackWaitMs: 30_000 }, async ({ messageId: callId }) => {
        await cluster.send(calledTools('ses_run', callId, VERDICT));
      });
      await cluster.startRun({ id: 'run_1', routineId: 'refund' });
      await eventually(() => isSettled(cluster));
      expect(await runOf(cluster)).toMatchObject({ state });
      await Promise.all([lists.stop(), calls.stop()]);
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      expect(await cluster.rows('select distinct epoch from parts')).toEqual([{ epoch: 1 }]);
    });

    it.each([
      ['in an earlier commit', true],
      ['just before', false],
    ])('opens no second chain of rounds for the late failure of a superseded round %s', async (_, waits) => {
      const cluster = await open();
      const host = await cluster.host();
      const [next, first] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await first;
      const second = nextDelivery(cluster);
      const overdue = {
        ...HEADER,
        type: 'effect.overdue' as const,
        sessionId: 'ses_run',
        callId: effectId,
        ...actorFields('run_1-callback'),
        kind: 'delivery' as const,
      };
      if (!waits) {
        // Commands that arrive during a held commit are applied by the next one together.
        host.faults.push('sleep');
        await cluster.send(create('ses_other'));
        // Paused by then: a wake-up before the pause would be lost.
        await eventually(async () => host.faults.length === 0);
      }
      await cluster.send({ ...overdue, commandId: `${effectId}-overdue` });
      if (waits) await eventually(async () => (await cluster.count('effects', `state = 'superseded'`)) === 1);
      await cluster.send(report(effectId, 'failed', 1));
      host.wake();
      await second;
      await eventually(async () => (await cluster.count('seen', `command_id = '${effectId}'`)) === 1);
      expect(await cluster.count('effects', `kind = 'delivery' and state = 'open'`)).toBe(1);
      expect(await cluster.count('timers', `command->>'type' = 'delivery.due'`)).toBe(0);
    });
  });
}
