import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type Log, silentLog } from '../telemetry/log.ts';

/** What a release gets when those before it have used up the time: enough to close a file or a socket, not to wait for anybody. */
const LAST_CHANCE_MS = 250;

interface Releaser {
  name: string;
  release: () => Promise<void> | void;
}

/** Why a release failed: what it threw, or `service.not_ready` when it was not done in time. */
interface ReleaseFailure {
  name: string;
  error: unknown;
}

/** What a process has opened, to be closed in the opposite order: whatever was opened later may still need what was opened before. */
export class Releasers {
  readonly #log: Log;
  readonly #releasers: Releaser[] = [];

  constructor(log: Log = silentLog) {
    this.#log = log;
  }

  /** @param name for people, in the log */
  add(name: string, release: Releaser['release']): void {
    this.#releasers.push({ name, release });
  }

  /**
   * Releases everything, the last added first, one after the other, each once. A failure is logged and stops none of the others.
   * @param timeoutMs for all together. When it is over, those that are left are still called, each with a quarter of a second.
   * @returns the failures, in the order in which they happened
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
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SwitchyardError('service.not_ready', `${name} was not released within ${Math.round(limitMs)} ms`)), limitMs);
  });
  try {
    await Promise.race([(async () => release())(), late]);
  } finally {
    clearTimeout(timer);
  }
}
