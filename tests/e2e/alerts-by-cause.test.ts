import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deepAlertCauses } from '../helpers/monitoring/deep-alert-causes.ts';
import { type Monitored, startMonitored } from '../helpers/monitoring/monitored-cluster.ts';
import { firingWithoutCause, RAISES_WITHIN_MS, raises } from '../helpers/monitoring/raise-alerts.ts';

/** While a store is away a scrape takes more than a second, since gauges are waited for so long. */
const SCRAPE_SECONDS = 5;

let monitored: Monitored;

beforeAll(async () => {
  monitored = await startMonitored({ scrapeSeconds: SCRAPE_SECONDS, isDamaged: true });
}, 300_000);
afterAll(() => monitored?.stop(), 300_000);

describe('Prometheus with the alert rules of deploy/, and a cluster that is damaged', () => {
  it('has no alert before', async () => {
    expect(await firingWithoutCause(monitored)).toEqual([]);
  });

  it.each(deepAlertCauses)('raises $alerts, and not before: $what', (cause) => raises(cause, monitored), RAISES_WITHIN_MS);
});
