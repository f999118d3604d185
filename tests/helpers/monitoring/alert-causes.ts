import type { Monitored } from './monitored-cluster.ts';
import { REFUSING_MODELS } from './refusing-providers.ts';
import { publish, query } from './store-access.ts';

export interface AlertCause {
  alerts: readonly string[];
  what: string;
  /** Begins it; it lasts until it is ended. @returns ends it, once the alerts were raised */
  begin(monitored: Monitored): Promise<(() => Promise<void>) | void>;
  /**
   * Repeated until the alerts are raised, several at once: a scrape may fail, and of counters without a value before their first count the second one
   * shows. It may fail.
   */
  again?(monitored: Monitored): unknown;
  /** Repetitions that may run beside each other. */
  atOnce?: number;
  /** Of a Prometheus of its own; absent: that of the cluster. */
  scrapeSeconds?: number;
}

/** Of one repetition; the rule asks for more than a tenth of a request per second, over five minutes. */
const REFUSED_REQUESTS = 20;

/** Those that take seconds and leave the deployment as it was: `npm test` runs them in this order. The others are in `deep-alert-causes.ts`. */
export const alertCauses: readonly AlertCause[] = [
  {
    alerts: ['ProviderRefusesCredential', 'ProviderLacksModel', 'ProviderLimitsRate', 'ProviderDown', 'ProviderFails'],
    what: 'providers answer 401, 404 and 429, and one cannot be reached',
    begin: async () => {},
    again: ({ complete }) => Promise.all(['test/gone', ...Object.keys(REFUSING_MODELS)].map((model) => complete(model))),
  },
  {
    alerts: ['RequestsRefused'],
    what: 'requests fit no endpoint',
    begin: async () => {},
    again: ({ complete }) =>
      Promise.all(Array.from({ length: REFUSED_REQUESTS }, () => complete('scripted/assistant', { provider: { only: ['nothing-of-this-name'] } }))),
  },
  {
    alerts: ['CommandsWithoutRight'],
    what: 'a command has no tag',
    begin: async () => {},
    again: ({ cluster }) => publish(cluster, 'cmd.7', JSON.stringify({ v: 1, type: 'session.create', sessionId: 'ses_forged' })),
  },
  {
    alerts: ['CommitsRefused', 'DeadLetters'],
    what: 'the database refuses a statement',
    begin: async ({ cluster }) => {
      await query(cluster, 'alter table events add constraint refused check (false) not valid');
      return () => query(cluster, 'alter table events drop constraint refused');
    },
    again: ({ say }) => say('Hello'),
  },
  {
    alerts: ['EventLoopHeld'],
    what: 'one tick takes a second and a half',
    begin: async ({ cluster }) => cluster.running('effect-worker')[0]?.signal('SIGUSR2'),
  },
];
