import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type Log, silentLog } from '../telemetry/log.ts';
import { within } from '../within.ts';

/** For each release once the total time is used up: enough to close a file or a socket. */
const LAST_CHANCE_MS = 250;

interface Releaser {
  name: string;
  release: () => Promise<void> | void;
}

/** `error` is what the release threw, or `service.not_ready` when it timed out. */
interface ReleaseFailure {
  name: string;
  error: unknown;
}

/** The opened resources of a process, released last in, first out, since later ones may need earlier ones. */
export class Releasers {
  readonly #log: Log;
  readonly #releasers: Releaser[] = [];

  constructor(log: Log = silentLog) {
    this.#log = log;
  }

  /** @param name for the log */
  add(name: string, release: Releaser['release']): void {
    this.#releasers.push({ name, release });
  }

  /**
   * Releases each resource once, last in, first out. A failure is logged and does not stop the others.
   * @param timeoutMs for all together; after it the remaining releases get 250 ms each
   * @returns the failures in their order
   */
  async releaseAll({ timeoutMs }: { timeoutMs: number }): Promise<ReleaseFailure[]> {
    const endAtMs = performance.now() + timeoutMs;
    const failures: ReleaseFailure[] = [];
    for (let releasers = this.#releasers.pop(); releasers !== undefined; releasers = this.#releasers.pop()) {
      try {
        await withinMs(Math.max(LAST_CHANCE_MS, endAtMs - performance.now()), releasers);
      } catch (error) {
        failures.push({ name: releasers.name, error });
        this.#log.error({ err: error, released: releasers.name }, 'a release failed');
      }
    }
    return failures;
  }
}

async function withinMs(limitMs: number, { name, release }: Releaser): Promise<void> {
  await within(limitMs, (async () => release())(), () => {
    throw new SwitchyardError('service.not_ready', `${name} was not released within ${Math.round(limitMs)} ms`);
  });
}
