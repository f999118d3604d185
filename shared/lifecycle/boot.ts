import { SwitchyardError } from '../errors/switchyard-error.ts';

const DEFAULT_PORTS: Record<string, string> = {
  'nats:': '4222',
  'tls:': '4222',
  'postgres:': '5432',
  'postgresql:': '5432',
  'redis:': '6379',
  'rediss:': '6379',
};

/** How often a start that goes on says what it waits for. */
const REPORT_EVERY_MS = 5_000;
/**
 * Longest time of a step that has no bound of its own. Drivers of stores give up some eight seconds after their store has refused them first, which
 * ends a start that can't succeed within the contract's ten seconds; this ends one that hangs without being refused.
 */
const STEP_LIMIT_MS = 60_000;

/** What a start waits for at present. */
export interface Waiting {
  step: string;
  /** Of the step, as its work has told last: which process holds a lock, for example. Null: nothing more is known. */
  reason: string | null;
  waitedMs: number;
}

interface StepOptions {
  /** In place of 60 s; null: the work has bounds of its own. */
  limitMs?: number | null;
}

/** Does one step of a start, which fails with the step's name when its time is over. `because` tells what the work is waiting for. */
export type Step = <Result>(name: string, work: (because: (reason: string) => void) => Promise<Result>, options?: StepOptions) => Promise<Result>;

/**
 * Runs a start. One that is merely slow goes on, and says every 5 s what it waits for.
 * @throws what the start throws; `service.not_ready`, naming the step, when the time of a step is over
 */
export async function boot<Result>(onWait: (waiting: Waiting) => void, start: (step: Step) => Promise<Result>): Promise<Result> {
  return start(async (name, work, { limitMs = STEP_LIMIT_MS } = {}) => {
    const beganAtMs = performance.now();
    let reason: string | null = null;
    let limit: NodeJS.Timeout | undefined;
    const report = setInterval(() => onWait({ step: name, reason, waitedMs: performance.now() - beganAtMs }), REPORT_EVERY_MS);
    const late = new Promise<never>((_, reject) => {
      if (limitMs !== null) limit = setTimeout(() => reject(new SwitchyardError('service.not_ready', `${name} has taken too long`)), limitMs);
    });
    const doing = work((onReason) => {
      reason = onReason;
    });
    // Past its time the rest is not waited for any more; it ends with the process.
    doing.catch(() => {});
    try {
      return await Promise.race([doing, late]);
    } finally {
      clearInterval(report);
      clearTimeout(limit);
    }
  });
}

/** Host and port of a URL, or of several between commas: without user, password or parameters. */
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
