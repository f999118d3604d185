import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { AlertCause } from './alert-causes.ts';
import type { Monitored } from './monitored-cluster.ts';
import { startPrometheus } from './start-prometheus.ts';

/** They fire on a machine that is short of CPU, as is right, or with other causes. The rules of all alerts are held by tests/monitoring/alerts.test.ts. */
const OF_A_BUSY_MACHINE = ['EventLoopLate', 'EventLoopHeld', 'CommandsWait', 'HostPaused', 'CommitsRefused', 'WorkRedelivered', 'WorkRefused'];
/** They fire for a scrape that was not answered in time, and while a store is away. Here they do not wait for the time of their column *For*. */
const OF_A_LATE_SCRAPE = ['PartitionsWithoutOwner', 'ProcessDown'];
const SINCE_ITS_START = 86_400;

const RAISED_WITHIN = { timeoutMs: 180_000, lookAgainMs: 250 };
/** Of a repeated cause, unless it says otherwise. A request of it may wait for as long as the cause lasts. */
const AT_ONCE = 4;

/** Longer than the bounds of all that a case waits for: its cause, its alerts, and the end of its cause. */
export const RAISES_WITHIN_MS = 1_200_000;

/** Waits until no alert fires but those that a busy machine raises: a late scrape passes, a wrong rule does not. @returns those that still fire */
export async function firingWithoutCause({ prometheus }: Monitored): Promise<string[]> {
  let firing: string[] = [];
  await eventually(async () => {
    const all = (await prometheus.query('ALERTS{alertstate="firing"}')).map(({ metric }) => metric.alertname ?? '');
    firing = all.filter((name) => !OF_A_BUSY_MACHINE.includes(name));
    return firing.length === 0;
  }).catch(() => {});
  return firing;
}

/** Fails when one of a cause's alerts has fired before it, or does not fire while it lasts. */
export async function raises(cause: AlertCause, monitored: Monitored): Promise<void> {
  const { scrapeSeconds } = cause;
  if (scrapeSeconds === undefined) return raisesIn(cause, monitored);
  const prometheus = await startPrometheus(monitored.targets, { scrapeSeconds });
  await raisesIn(cause, { ...monitored, prometheus }).finally(() => prometheus.stop());
}

async function raisesIn({ alerts, begin, again = async () => {}, atOnce = AT_ONCE }: AlertCause, monitored: Monitored): Promise<void> {
  const { prometheus } = monitored;
  const before = await prometheus.fired(SINCE_ITS_START);
  const mayFire = [...OF_A_BUSY_MACHINE, ...OF_A_LATE_SCRAPE];
  expect(alerts.filter((name) => before.has(name) && !mayFire.includes(name))).toEqual([]);

  const beganAt = performance.now();
  const end = await begin(monitored);
  const repeating = new Set<Promise<unknown>>();
  const repeat = () => {
    if (repeating.size === atOnce) return;
    const one: Promise<unknown> = Promise.resolve(again(monitored))
      .catch(() => {})
      .finally(() => repeating.delete(one));
    repeating.add(one);
  };
  let missing = [...alerts];
  await eventually(async () => {
    repeat();
    const fired = await prometheus.fired((performance.now() - beganAt) / 1_000);
    missing = alerts.filter((name) => !fired.has(name));
    return missing.length === 0;
  }, RAISED_WITHIN)
    .catch(() => {})
    .finally(() => end?.());
  await Promise.all(repeating);
  expect(missing).toEqual([]);
}
