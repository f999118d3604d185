import { describe, expect, it } from 'vitest';
import type { RunEnvelope, RunRecord } from '../../../shared/contracts/agent/run.ts';
import type { CallbackReceiver } from '../../helpers/callback-receiver.ts';
import { eventually } from '../../helpers/eventually.ts';
import { runProgram } from '../../helpers/run-program.ts';
import type { Cluster } from '../../helpers/start-cluster.ts';
import { CALLBACK_ATTEMPTS, type SharedDeployment } from './shared-deployment.ts';

const ROUTINE = 'triage-warranty-claim';
const TIMEOUT = { timeoutMs: 60_000 };

interface Answered {
  status: number;
  body: Record<string, unknown>;
}

export function runCases(shared: () => SharedDeployment, isCluster: boolean): void {
  const { ask, post, trigger, readRun, isGone, linesOf, operate, address } = clientOf(shared);

  // The cases wait for back-offs and are independent of each other, so they run concurrently.
  describe('runs', { concurrent: true }, () => {
    it('are called back until the receiver accepts, each time with the same bytes, and delete their ephemeral session', async () => {
      const callback = address(500, 'drop', 204);
      const run = await trigger({ callback_url: callback.url, metadata: { from: 'a test' } });
      await eventually(() => callback.received.length === CALLBACK_ATTEMPTS, TIMEOUT);
      await eventually(() => isGone(run.session_id), TIMEOUT);

      const [first] = callback.received;
      const payload = JSON.parse(String(first?.body));
      expect(payload).toMatchObject({
        schema_version: 1,
        run_id: run.run_id,
        routine_id: ROUTINE,
        status: 'succeeded',
        output: { decision: expect.stringMatching(/covered|unclear/), urgent: expect.any(Boolean), summary: expect.any(String), missing_information: [] },
        error: null,
        session_id: run.session_id,
        metadata: { from: 'a test' },
        idempotency_key: expect.stringMatching(/\w{16}/),
        origin_service: 'agent-server',
      });
      for (const [index, { method, headers, body }] of callback.received.entries()) {
        expect(body).toEqual(first?.body);
        expect({ method, ...headers }).toMatchObject({
          method: 'POST',
          authorization: `Bearer ${shared().deployment.keys.agentKey}`,
          'content-type': 'application/json',
          'x-run-id': run.run_id,
          'x-switchyard-attempt': String(index + 1),
          traceparent: expect.stringContaining(payload.trace_id),
        });
      }
      const record = await readRun(run.run_id);
      expect(record).toMatchObject({ ...run, status: 'succeeded', output: payload.output, error: null, trace_id: payload.trace_id });
      expect([record.started_at, record.completed_at]).toEqual([payload.started_at, payload.completed_at]);
      expect(callback.received).toHaveLength(CALLBACK_ATTEMPTS);
    });

    it('are begun once per idempotency key, at any gateway, and a repeat gets the answer of the first', async () => {
      const callback = address();
      const fields = { callback_url: callback.url, idempotency_key: 'claim-4711' };
      const answers = await Promise.all([post(fields), post(fields), post(fields)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
      const run = answers.find(({ status }) => status === 202)?.body;
      await eventually(() => callback.received.length > 0, TIMEOUT);

      const { run_id, session_id, created_at } = run ?? {};
      for (const { body } of answers.filter(({ status }) => status === 409)) expect(body).toMatchObject({ code: 'conflict', run_id, session_id, created_at });
      // A repeat is not validated: the first was valid.
      const late = await post({ ...fields, callback_url: 'http://127.0.0.1:1/', input: {} });
      expect(late).toMatchObject({ status: 409, body: { code: 'conflict', run_id, session_id, created_at, status: 'succeeded' } });
      await eventually(() => isGone(String(session_id)), TIMEOUT);
      expect(callback.received).toHaveLength(1);
    });

    it('that fail report why, in the callback and in the run’s record', async () => {
      const callback = address();
      const run = await trigger({ callback_url: callback.url, input: claim('!fail 500') });
      const post = await eventually(() => callback.received[0], TIMEOUT);
      const payload = JSON.parse(String(post.body));

      expect(payload).toMatchObject({ run_id: run.run_id, status: 'failed', output: null, error: { code: 'engine_error', message: expect.any(String) } });
      expect(await readRun(run.run_id)).toMatchObject({ status: 'failed', output: null, error: payload.error });
      await eventually(() => isGone(run.session_id), TIMEOUT);
    });

    it('in a session of the caller’s leave it in place, with their events in its log', async () => {
      const callback = address();
      const { id } = await shared().deployment.agent.createSession();
      const run = await trigger({ callback_url: callback.url, session_id: id });
      expect(run.session_id).toBe(id);
      await eventually(() => callback.received[0], TIMEOUT);
      const log = await shared().deployment.agent.poll(id);

      expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
      expect(log.filter((event) => event.kind === 'status' && event.status === 'ready')).toEqual([log.at(-1)]);
      expect(await shared().deployment.agent.readSession(id)).toMatchObject({ id });
    });

    it.each([
      ['a loopback address that is no exception', 'http://127.0.0.1:1/callback', /not an https URL.* OUTBOUND_ALLOW_HOSTS=127\.0\.0\.1:1 /],
      ['one by https', 'https://127.0.0.1:1/callback', /not in the public internet/],
      ['a host that the routine does not name', 'https://hooks.example.com/', /callback_url_allowlist of the routine "triage-warranty-claim"/],
      ['this machine by its name', 'https://localhost/callback', /this machine itself/],
      ['an address with a password', 'https://anna:hunter2@hooks.acme.example/', /user name or a password/],
    ])('are not begun for %s', async (_, callback_url, why) => {
      const { status, body } = await post({ callback_url });

      expect(body).toEqual({ error: expect.stringMatching(why), code: 'validation_failed', path: '/callback_url' });
      expect(status).toBe(400);
      expect(JSON.stringify(body)).not.toContain('hunter2');
    });

    it('are not begun for an invalid input, an unknown routine, or without the key', async () => {
      const { url: callback_url } = address();
      const misfit = await post({ callback_url, input: { ...claim(), model: 'Acme Nonplus' } });
      expect(misfit).toMatchObject({ status: 400, body: { error: expect.any(String), path: '/model' } });
      const body = JSON.stringify({ input: claim(), callback_url });
      expect((await ask('/routines/return-an-order/trigger', { method: 'POST', body })).status).toBe(404);
      expect((await post({ callback_url }, { authorization: 'Bearer wrong' })).status).toBe(401);
    });

    it('have one trace, which is the caller’s, in the log of each process that works on one', async () => {
      const callback = address();
      const traceId = 'c0ffee00c0ffee00c0ffee00c0ffee02';
      const { run_id, session_id } = await trigger({ callback_url: callback.url }, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
      await eventually(() => callback.received.length > 0, TIMEOUT);
      await eventually(() => isGone(session_id), TIMEOUT);
      const steps = [
        ['agent-gateway', 'a run was accepted'],
        ['actor-host', 'a run began'],
        ['router-worker', 'a router call has ended'],
        ['actor-host', 'a run ended'],
        ['effect-worker', 'a work item has ended'],
      ];
      const logged = await eventually(() => {
        const lines = linesOf(traceId);
        return lines.length >= steps.length && lines;
      });

      expect(logged.map(({ level, service, msg }) => `${level} ${service} ${msg}`).sort()).toEqual(
        steps.map(([service, msg]) => `info ${isCluster ? service : 'standalone'} ${msg}`).sort(),
      );
      expect((await readRun(run_id)).trace_id).toBe(traceId);
      expect(callback.received[0]?.headers.traceparent).toContain(traceId);
      // Ids, and nothing of the run's input or output.
      expect(JSON.stringify(logged)).not.toMatch(/pump|127\.0\.0\.1/);
    });

    // The command line needs stores that two processes can open.
    if (isCluster) {
      it('whose receiver never accepts become a dead letter, which the operator lists and replays', async () => {
        const callback = address(503);
        const run = await trigger({ callback_url: callback.url });
        const deadLetterId = `${run.run_id}-callback`;
        await eventually(() => callback.received.length === CALLBACK_ATTEMPTS, TIMEOUT);
        await eventually(() => isGone(run.session_id), TIMEOUT);
        expect(callback.received).toHaveLength(CALLBACK_ATTEMPTS);
        const listed = JSON.parse(await operate('dead-letters', 'list', '--json'));
        expect(listed).toEqual([expect.objectContaining({ id: deadLetterId, source: 'delivery', reason: 'the receiver answered 503' })]);
        expect(await operate('dead-letters', 'list')).toContain(deadLetterId);

        callback.answer(204);
        expect(await operate('dead-letters', 'replay', deadLetterId)).toContain(`${deadLetterId} is posted again`);
        await eventually(() => callback.received.length > CALLBACK_ATTEMPTS, TIMEOUT);
        expect(callback.received.at(-1)?.body).toEqual(callback.received[0]?.body);
        expect(await operate('dead-letters', 'list')).toContain('There are no dead letters.');
      });
    }
  });
}

/** For a cluster, whose gateways they end. */
export function runsWithoutGatewaysCases(shared: () => SharedDeployment): void {
  const { trigger, readRun, isGone, address } = clientOf(shared);

  describe('runs without a gateway', () => {
    it('end and are called back while there is no gateway, and one that starts later reports it', async () => {
      const { add, running } = clusterOf(shared());
      const callback = address();
      // A slow model, so that the gateways have ended before the run is over.
      const run = await trigger({ callback_url: callback.url, input: claim('!slow 3000') });
      const gateways = running('agent-gateway');
      for (const gateway of gateways) gateway.signal('SIGTERM');
      expect(await Promise.all(gateways.map(({ exited }) => exited))).toEqual(Array(2).fill({ code: 0, signal: null }));
      expect(callback.received).toEqual([]);

      const post = await eventually(() => callback.received[0], TIMEOUT);
      expect(JSON.parse(String(post.body))).toMatchObject({ run_id: run.run_id, status: 'succeeded' });
      await add('agent-gateway');
      expect(await readRun(run.run_id)).toMatchObject({ status: 'succeeded', output: { missing_information: [] } });
      await eventually(() => isGone(run.session_id), TIMEOUT);
      expect(callback.received).toHaveLength(1);
    });
  });
}

function clientOf(shared: () => SharedDeployment) {
  /** Each request goes to the next gateway. */
  async function ask(path: string, init: RequestInit = {}): Promise<Answered> {
    const headers = { authorization: `Bearer ${shared().deployment.keys.agentKey}`, 'content-type': 'application/json', ...init.headers };
    const response = await fetch(`${shared().deployment.nextAgentUrl()}${path}`, { signal: AbortSignal.timeout(60_000), ...init, headers });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  function post(fields: object, headers: Record<string, string> = {}): Promise<Answered> {
    return ask(`/routines/${ROUTINE}/trigger`, { method: 'POST', body: JSON.stringify({ input: claim(), ...fields }), headers });
  }

  async function trigger(fields: object, headers: Record<string, string> = {}): Promise<RunEnvelope> {
    const { status, body } = await post(fields, headers);
    expect(body).toMatchObject({ routine_id: ROUTINE, status: 'accepted' });
    expect(status).toBe(202);
    return body as unknown as RunEnvelope;
  }

  async function readRun(runId: string): Promise<RunRecord> {
    return (await ask(`/runs/${runId}`)).body as unknown as RunRecord;
  }

  /** To be called after the callback: a run's ephemeral session exists until the delivery has settled. */
  async function isGone(sessionId: string): Promise<boolean> {
    return (await ask(`/sessions/${sessionId}`)).status === 404;
  }

  function linesOf(traceId: string) {
    return shared()
      .deployment.logLines()
      .filter((line) => line.trace_id === traceId);
  }

  /** Runs the operator's command line against the cluster, as the broker's user `operator`. @returns its output */
  async function operate(...args: string[]): Promise<string> {
    const env = clusterOf(shared()).environmentOf('operator');
    const program = runProgram([process.execPath, 'dist/services/operator/main.js', ...args], { env });
    expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
    return program.output();
  }

  const address: CallbackReceiver['address'] = (...answers) => shared().receiver.address(...answers);
  return { ask, post, trigger, readRun, isGone, linesOf, operate, address };
}

function clusterOf({ deployment: { cluster } }: SharedDeployment): Cluster {
  if (cluster === null) throw new Error('this case is for clusters');
  return cluster;
}

/** An input that fits the routine. @param directive for the scripted model, which reads it there */
function claim(directive = ''): Record<string, string> {
  return { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: `${directive} The pump is loud.`.trim() };
}
