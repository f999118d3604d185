import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { root } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { checkAfterwards } from './edge-stores-afterwards.ts';
import { holdOpen } from './edge-stores-held-open.ts';
import { type StoreName, storesAway, tableOfStoresAway } from './edge-stores-table.ts';
import { type Asked, beginTraffic, kinds, type Traffic } from './edge-stores-traffic.ts';

const TWO_OF_EACH = { 'router-gateway': 2, 'agent-gateway': 2, 'actor-host': 2, 'router-worker': 2, 'effect-worker': 2 } as const;
/** SWITCHYARD_TEST_LONG=1: as long as an operator would try. */
const isLong = process.env.SWITCHYARD_TEST_LONG === '1';
/** Longer than every limit involved: heartbeats of 4 and 5 s, answers of 5 and 10 s, leases of 6 and 15 s. None involves Redis. */
const AWAY_MS: Record<StoreName, number> = isLong ? { postgres: 20_000, nats: 20_000, redis: 60_000 } : { postgres: 16_000, nats: 16_000, redis: 6_000 };
/** Until every process has noticed. */
const NOTICED_MS = 1_500;
const TIMEOUT = { timeoutMs: 60_000 };
const MAX_RSS_GROWTH_BYTES = 200 * 1024 * 1024;

let cluster: Cluster;
let receiver: CallbackReceiver;

beforeAll(async () => {
  receiver = await openCallbackReceiver();
  cluster = await startCluster({ roles: TWO_OF_EACH, env: { OUTBOUND_ALLOW_HOSTS: receiver.host, COALESCE_MS: '50' } });
});
afterAll(async () => {
  await cluster.stop();
  await receiver.close();
});

async function readinessOf(role: 'router-gateway' | 'agent-gateway'): Promise<number> {
  return (await fetch(`${cluster.running(role)[0]?.url}/health/ready`)).status;
}

/** In bytes, of each process, by its name. */
function memory(): Map<string, number> {
  return new Map(
    cluster.processes.map(({ role, index, pid }) => {
      const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
      return [`${role}-${index}`, pages * 4_096];
    }),
  );
}

/** Resolves when enough of each kind has been answered since. */
async function someOfEach(traffic: Traffic, sinceMs: number): Promise<void> {
  await eventually(() => {
    const answered = new Set(traffic.asked.filter(({ begunAtMs }) => begunAtMs >= sinceMs).map(({ kind }) => kind));
    return answered.size === kinds.length;
  }, TIMEOUT);
}

interface Away {
  fromMs: number;
  /** When every process has noticed. */
  knownMs: number;
  untilMs: number;
}

/** Requests whose outcome differs from their row of the table. */
function misfits(store: StoreName, traffic: Traffic, { fromMs, knownMs, untilMs }: Away): { misfits: Asked[]; counts: Map<string, number> } {
  const counts = new Map<string, number>();
  const isCommand = ({ kind }: Asked) => ['post a message', 'create a session', 'change a session'].includes(kind);
  const endOf = ({ begunAtMs, tookMs }: Asked) => begunAtMs + tookMs;
  const of = (asked: Asked): string | null => {
    if (asked.begunAtMs >= knownMs && endOf(asked) <= untilMs) return asked.kind;
    if (asked.begunAtMs >= knownMs || endOf(asked) <= fromMs) return null;
    if (asked.kind === 'router call') return 'router call on its way';
    return isCommand(asked) ? 'command on its way' : null;
  };
  const wrong = traffic.asked.filter((asked) => {
    const row = storesAway[store].rows.find((one) => one.asked === of(asked));
    if (row === undefined) return false;
    counts.set(row.asked, (counts.get(row.asked) ?? 0) + 1);
    const isRefusal = asked.outcome.startsWith('503');
    return !row.answered.includes(asked.outcome) || asked.tookMs > row.withinMs || (isRefusal && asked.retryAfter !== '1');
  });
  return { misfits: wrong, counts };
}

describe.each(casesOfToday(['redis', 'postgres', 'nats'] as const))('without %s for a while, under traffic', (store) => {
  it('DESIGN 3: under traffic each request is answered as the table says while a store is away, and afterwards all that was accepted is there once', async () => {
    const traffic = await beginTraffic({ cluster, receiver });
    await someOfEach(traffic, 0);
    const [talk = ''] = traffic.accepted.sessions.keys();
    const open = await holdOpen(cluster, talk);
    const before = memory();

    const fromMs = performance.now();
    await cluster[store].kill();
    // A plain wait: it has to be longer than every limit.
    await delay(AWAY_MS[store]);
    // On a busy machine a kind of request may not have been sent yet.
    const isJudged = ({ asked }: { asked: string }) =>
      asked.endsWith('on its way') || traffic.asked.some(({ kind, begunAtMs }) => kind === asked && begunAtMs >= fromMs + NOTICED_MS);
    await eventually(() => storesAway[store].rows.every(isJudged), TIMEOUT);
    const readiness = { 'router-gateway': await readinessOf('router-gateway'), 'agent-gateway': await readinessOf('agent-gateway') };
    const untilMs = performance.now();
    await cluster[store].start();

    for (const role of ['router-gateway', 'agent-gateway'] as const) await eventually(async () => (await readinessOf(role)) === 200, TIMEOUT);
    await someOfEach(traffic, performance.now());
    await traffic.end();

    expect(readiness).toEqual(storesAway[store].ready);
    const { misfits: wrong, counts } = misfits(store, traffic, { fromMs, knownMs: fromMs + NOTICED_MS, untilMs });
    expect(wrong).toEqual([]);
    for (const { asked } of storesAway[store].rows) if (!asked.endsWith('on its way')) expect(counts.get(asked) ?? 0, asked).toBeGreaterThan(0);
    expect(traffic.asked.filter(({ outcome }) => outcome === 'cut' || outcome === 'no answer')).toEqual([]);
    for (const { asked, outcome, tookMs } of await open.answers()) {
      const row = storesAway[store].rows.find((one) => one.asked === asked);
      expect(row?.answered, `${asked} after ${tookMs} ms`).toContain(outcome);
    }
    const heads = await checkAfterwards(cluster, traffic.accepted);
    const shown = await open.leave();
    expect(shown.offsets).toEqual(Array.from({ length: heads.get(talk) ?? 0 }, (_, offset) => offset));
    if (storesAway[store].rows.some(({ asked, answered }) => asked === 'event stream on its way' && answered[0] === 'goes on')) expect(shown.reopened).toBe(0);
    expect(cluster.processes.filter((one) => one.hasExited())).toEqual([]);
    for (const [name, bytes] of memory()) expect(bytes - (before.get(name) ?? 0), name).toBeLessThan(MAX_RSS_GROWTH_BYTES);
    report(store, traffic, { fromMs, knownMs: fromMs + NOTICED_MS, untilMs });
  });
});

function report(store: StoreName, { asked }: Traffic, { fromMs, untilMs }: Away): void {
  const meanwhile = asked.filter(({ begunAtMs }) => begunAtMs >= fromMs && begunAtMs < untilMs);
  const slowest = Math.max(...meanwhile.map(({ tookMs }) => tookMs));
  console.log(`${storesAway[store].name} away for ${Math.round((untilMs - fromMs) / 1_000)} s: ${meanwhile.length} requests meanwhile, slowest ${slowest} ms`);
}

it('stands in docs/guarantees.md as it is asserted here', () => {
  expect(readFileSync(`${root}docs/guarantees.md`, 'utf8')).toContain(`${tableOfStoresAway()}\n`);
});
