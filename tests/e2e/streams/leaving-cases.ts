import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PostedRequest } from '../../../services/router-gateway/test-support/http-client.ts';
import type { DeploymentUnderTest } from '../../helpers/deployment-under-test.ts';
import { eventually } from '../../helpers/eventually.ts';
import { plannedCall, requestFor, type ScriptedDeployment } from '../../helpers/scripted-deployment.ts';
import type { Cluster } from '../../helpers/start-cluster.ts';
import type { Step, UpstreamCall } from '../../upstreams/scripted-upstream.ts';

/** For a busy machine, and less than the 30 s after which a worker by itself ends a call without a reader. The measured times are printed. */
const BOUND_MS = 20_000;
/** Calls in each phase and form. */
const SAMPLES = 5;
/** Of the worker of the deployment in one process, for clients' calls. */
export const WORKER_SLOTS = 4;
/** Of a deployment, at most. */
const GATEWAYS = 2;
const forms = [
  { form: 'of a stream', stream: true },
  { form: 'of a whole answer', stream: false },
];

/** The progress of a call when its client disconnects. */
interface Phase {
  phase: string;
  model: string;
  scripts: Record<string, Step[]>;
  /** Whether it has reached this phase. */
  isThere(calls: readonly UpstreamCall[]): boolean;
  /** The provider that has the call then. */
  provider: string;
}

const phases: Phase[] = [
  { phase: 'that waits for the upstream’s headers', model: 'first', scripts: { first: ['hold'] }, isThere: (calls) => calls.length === 1, provider: 'first' },
  {
    phase: 'that waits for the first token',
    model: 'first',
    scripts: { first: ['headers', { raw: ': working\n\n' }, 'hold'] },
    isThere: (calls) => calls.length === 1,
    provider: 'first',
  },
  {
    phase: 'in the middle of its answer',
    model: 'first',
    scripts: { first: [{ say: 'word ', times: 1_000, everyMs: 20 }] },
    isThere: ([call]) => call !== undefined && call.said >= 3,
    provider: 'first',
  },
  {
    phase: 'in the middle of an answer that has come to a halt',
    model: 'first',
    scripts: { first: [{ say: 'word ' }, 'hold'] },
    isThere: ([call]) => call?.said === 1,
    provider: 'first',
  },
  {
    phase: 'that has fallen back to a second provider',
    model: 'first-second',
    scripts: { first: [{ refuse: 500 }], second: ['hold'] },
    isThere: (calls) => calls.length === 2,
    provider: 'second',
  },
];

/** @param deploymentOf the deployment, once it runs */
export function leavingCases(deploymentOf: () => ScriptedDeployment): void {
  describe.each(forms)('a client that leaves, $form', ({ form, stream }) => {
    const open = (model: string, scripts: Record<string, Step[]>, headers: Record<string, string> = {}) => {
      const plan = plannedCall(scripts);
      const client = deploymentOf().post(requestFor(plan, model, stream), headers);
      expectToBeLeft(client);
      onTestFinished(client.leave);
      return { client, calls: () => deploymentOf().upstream.calls(plan.name) };
    };

    it.each(phases)('DESIGN 7: closes the connection of a call $phase', async ({ phase, model, scripts, isThere, provider }) => {
      const tookMs: number[] = [];
      for (let sample = 0; sample < SAMPLES; sample += 1) {
        const { client, calls } = open(model, scripts);
        await eventually(() => isThere(calls()));
        const atMs = performance.now();
        client.leave();
        const call = await eventually(() => calls().find((one) => one.provider === provider && one.leftAtMs !== null));
        tookMs.push((call.leftAtMs ?? 0) - atMs);
      }

      report(deploymentOf(), `${form} ${phase}`, tookMs);
    });

    it.each([
      { phase: 'that is being connected', model: 'unresponsive', scripts: {}, before: 0 },
      {
        phase: 'whose first provider failed while the second is being connected',
        model: 'first-unresponsive',
        scripts: { first: [{ refuse: 500 }] as Step[] },
        before: 1,
      },
    ])('DESIGN 7: closes the connection of a call $phase', async ({ phase, model, scripts, before }) => {
      const tookMs: number[] = [];
      for (let sample = 0; sample < SAMPLES; sample += 1) {
        const { connections } = deploymentOf().unresponsive;
        const known = connections.length;
        const { client, calls } = open(model, scripts);
        const connection = await eventually(() => connections[known]);
        expect(calls()).toHaveLength(before);
        const atMs = performance.now();
        client.leave();
        const closedAtMs = await eventually(() => connection.closedAtMs);
        tookMs.push(closedAtMs - atMs);
      }

      report(deploymentOf(), `${form} ${phase}`, tookMs);
    });

    it('DESIGN 7: keeps a call that is still queued from ever reaching its upstream', async () => {
      const { deployment } = deploymentOf();
      const workers = await occupyWorkers(deploymentOf());
      const traceId = randomBytes(16).toString('hex');
      const { client, calls } = open('first', { first: ['hold'] }, { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` });
      await gatewaysHaveRead(deployment);
      await workers.haveQueued();
      client.leave();
      await gatewaysHaveRead(deployment);
      await workers.free();

      // Its worker logs when it has discarded the call.
      const end = await eventually(() => deployment.logLines().find((line) => line.trace_id === traceId && line.msg === 'a router call has ended'));
      expect(end).toMatchObject({ finish: 'cancelled' });
      expect(calls()).toEqual([]);
    });
  });
}

/** When a gateway answers this request, it has handled what came before it. */
async function gatewaysHaveRead({ nextRouterUrl }: DeploymentUnderTest): Promise<void> {
  for (let turn = 0; turn < 2 * GATEWAYS; turn += 1) await (await fetch(`${nextRouterUrl()}/health`)).text();
}

interface OccupiedWorkers {
  /** Waits until the next call is queued. */
  haveQueued(): Promise<void>;
  /** @throws when a slot was free before */
  free(): Promise<void>;
}

/** Stops the workers of a cluster, and occupies all slots of the one that shares the gateway's process: no call is begun. */
function occupyWorkers(scripted: ScriptedDeployment): OccupiedWorkers | Promise<OccupiedWorkers> {
  const { cluster } = scripted.deployment;
  return cluster === null ? occupySlots(scripted) : stopWorkers(cluster);
}

function stopWorkers(cluster: Cluster): OccupiedWorkers {
  const workers = cluster.running('router-worker');
  const resume = () => {
    for (const worker of workers) worker.signal('SIGCONT');
  };
  onTestFinished(resume);
  for (const worker of workers) worker.signal('SIGSTOP');
  // The call waits in the socket of one.
  return { haveQueued: async () => {}, free: async () => resume() };
}

/** By calls that connect for longer than the test lasts. */
async function occupySlots({ deployment, post, unresponsive: { connections } }: ScriptedDeployment): Promise<OccupiedWorkers> {
  const known = connections.length;
  const clients = Array.from({ length: WORKER_SLOTS }, () => post(requestFor(plannedCall({}), 'unresponsive', false)));
  for (const client of clients) {
    expectToBeLeft(client);
    onTestFinished(client.leave);
  }
  const occupying = await eventually(() => connections.length === known + WORKER_SLOTS && connections.slice(known));
  // Of them, those that were stored before they had a slot.
  const stored = await storedCalls(deployment);
  return {
    haveQueued: async () => {
      await eventually(async () => (await storedCalls(deployment)) === stored + 1);
    },
    free: async () => {
      expect(
        occupying.map(({ closedAtMs }) => closedAtMs),
        'a call that occupies a slot has ended',
      ).toEqual(occupying.map(() => null));
      for (const client of clients) client.leave();
      await eventually(() => occupying.every(({ closedAtMs }) => closedAtMs !== null));
    },
  };
}

/** Clients' calls that found no free slot, with those of them that run now. Others are stored nowhere. */
async function storedCalls({ managementUrls }: DeploymentUnderTest): Promise<number> {
  const [url] = managementUrls();
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^switchyard_work_queue_depth\{kind="router\.call"\} (\d+)$/m.exec(metrics)?.[1]);
}

/** Errors of a connection that the client itself closed are ignored. */
function expectToBeLeft({ answer }: PostedRequest): void {
  answer.catch(() => {});
}

function report({ name }: ScriptedDeployment, what: string, tookMs: readonly number[]): void {
  const sorted = [...tookMs].sort((one, other) => one - other).map(Math.round);
  console.info(`${name}, a client leaves ${what}: closed after p50 ${sorted[Math.floor(sorted.length / 2)]} ms, max ${sorted.at(-1)} ms`);
  expect(sorted.at(-1)).toBeLessThan(BOUND_MS);
}
