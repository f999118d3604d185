import { expect } from 'vitest';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';

/** In which a router worker answers a probe. */
const PROBE_MS = 60_000;

/**
 * How often these router workers got a call that was delivered before. A worker without CPU for seconds loses the leases of its calls while it runs, and
 * what it has asked by then is asked again: a model call has no claim, as a tool call has.
 */
export async function callRedeliveries(workers: readonly Pick<ClusterProcess, 'managementUrl'>[]): Promise<number> {
  const pages = await Promise.all(
    workers.map(async ({ managementUrl }) => {
      const response = await fetch(`${managementUrl}/metrics`, { signal: AbortSignal.timeout(PROBE_MS) });
      return response.text();
    }),
  );
  const counts = pages.flatMap((page) => [...page.matchAll(/^switchyard_work_redeliveries_total\{[^}]*kind="router\.(?:turn|call)"[^}]*\} (\d+)/gm)]);
  // The series exist from the start: without one this would find nothing out.
  expect(counts.length).toBeGreaterThanOrEqual(pages.length);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}
