import type { Bus } from '#bus/bus.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Waits } from './limits.ts';

/** `unavailable`: was ready, and can't reach the bus or the database now. */
export type Readiness = 'booting' | 'ready' | 'unavailable' | 'draining';

/** Whether requests can be served: the bus is there, the database answers, and the configuration that turns run on is stored. */
export class ReadinessGate {
  readonly #deps: { bus: Bus; database: Database; bundleHash: string; waits: Waits; log: Log };
  #wasReady = false;
  #draining = false;
  #checking: Promise<boolean> | null = null;
  #bootCheck: NodeJS.Timeout | null = null;

  constructor(deps: { bus: Bus; database: Database; bundleHash: string; waits: Waits; log: Log }) {
    this.#deps = deps;
  }

  /** Looks until the gateway is ready, so that it is so without being asked. */
  open(): void {
    this.#bootCheck = setInterval(() => void this.check(), this.#deps.waits.bootCheckMs).unref();
  }

  close(): void {
    if (this.#bootCheck !== null) clearInterval(this.#bootCheck);
    this.#bootCheck = null;
  }

  drain(): void {
    this.#draining = true;
  }

  /** Asks bus and database. */
  async check(): Promise<Readiness> {
    if (this.#draining) return 'draining';
    this.#checking ??= this.#ask().finally(() => {
      this.#checking = null;
    });
    const isReady = await this.#checking;
    if (this.#draining) return 'draining';
    if (isReady) {
      this.#wasReady = true;
      this.close();
    }
    if (this.#wasReady) return isReady ? 'ready' : 'unavailable';
    return 'booting';
  }

  /** For every request, so without a query once the gateway has been ready: a database that is away shows by itself. */
  async admits(): Promise<Readiness> {
    if (this.#draining) return 'draining';
    if (!this.#wasReady) return this.check();
    return this.#deps.bus.isReady() ? 'ready' : 'unavailable';
  }

  async #ask(): Promise<boolean> {
    const { bus, database, bundleHash, waits, log } = this.#deps;
    if (!bus.isReady()) return false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), waits.readinessMs);
    });
    const asked = database
      .query<{ present: number }>({ name: 'agent-gateway-bundle', text: 'select 1 as present from bundles where hash = $1' }, [bundleHash])
      .then(({ rowCount }) => rowCount > 0)
      .catch((error: unknown) => {
        log.warn({ err: error }, 'the database does not answer');
        return false;
      });
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
