import { SwitchyardError } from '../errors/switchyard-error.ts';
import { within } from '../within.ts';

const DEFAULT_PORTS: Record<string, string> = {
  'nats:': '4222',
  'tls:': '4222',
  'postgres:': '5432',
  'postgresql:': '5432',
  'redis:': '6379',
  'rediss:': '6379',
};

const REPORT_EVERY_MS = 5_000;
/** For steps without a limit of their own. A store that refuses us fails sooner: its driver gives up after some 8 s, within the contract's 10 s. */
const STEP_LIMIT_MS = 60_000;

export interface Waiting {
  step: string;
  /** As last reported by the step, such as the process that holds a lock; null: none. */
  reason: string | null;
  waitedMs: number;
}

interface StepOptions {
  /** Default: 60 s; null: the work has its own limits. */
  limitMs?: number | null;
}

/** Runs one step of a start within its limit. `because` reports what the work waits for. */
export type Step = <Result>(name: string, work: (because: (reason: string) => void) => Promise<Result>, options?: StepOptions) => Promise<Result>;

/**
 * Runs a start; a slow one reports every 5 s what it waits for.
 * @throws what the start throws; `service.not_ready`, naming the step, when a step exceeds its limit
 */
export async function boot<Result>(onWait: (waiting: Waiting) => void, start: (step: Step) => Promise<Result>): Promise<Result> {
  return start(async (name, work, { limitMs = STEP_LIMIT_MS } = {}) => {
    const startedAtMs = performance.now();
    let reason: string | null = null;
    const report = setInterval(() => onWait({ step: name, reason, waitedMs: performance.now() - startedAtMs }), REPORT_EVERY_MS);
    const late = () => {
      throw new SwitchyardError('service.not_ready', `${name} has timed out`);
    };
    const doing = work((onReason) => {
      reason = onReason;
    });
    // It goes on after its limit until the process ends; its rejection must not count as unhandled.
    doing.catch(() => {});
    try {
      return await (limitMs === null ? doing : within(limitMs, doing, late));
    } finally {
      clearInterval(report);
    }
  });
}

/** `host:port` of a URL, or of several separated by commas; never user, password or parameters. */
export function addressOf(urls: string): string {
  return urls
    .split(',')
    .map((text) => {
      if (!URL.canParse(text.trim())) return 'an address that is not a URL';
      const { protocol, hostname, port } = new URL(text.trim());
      return `${hostname}:${port || (DEFAULT_PORTS[protocol] ?? '?')}`;
    })
    .join(', ');
}
