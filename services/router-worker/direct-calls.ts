import type { RouterCall } from '#bus/messages/router.ts';
import { type Clock, steadyClock } from '#shared/clock.ts';
import type { LoadedRouterConfig } from '#shared/config/loaded-router-config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { PlatformRouter } from '#shared/keys/platform-router.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { checkTexts } from './call/check-texts.ts';
import { type ExecuteDeps, executeCall } from './call/execute-call.ts';
import type { CallResult, Execution } from './call/execution.ts';
import { Health } from './call/health/health.ts';
import { VectorBudget } from './call/vector-budget.ts';
import { isCheck } from './call-kind.ts';
import { sharedEngines } from './pipeline/engines.ts';
import { PlatformCalls } from './platform/platform-calls.ts';
import { type OpenedSetup, openSetup } from './router-setup.ts';

interface DirectCallsDeps {
  config: LoadedRouterConfig;
  /** Where all calls are executed; null: here. */
  platform: PlatformRouter | null;
  environment: Environment;
  clock: Clock;
  log: Log;
}

/**
 * Model calls of actors, executed in this process without a bus and a database: no key is checked, nothing is reserved, and no use is recorded. For command
 * lines; services send their calls to a worker.
 */
export class DirectCalls {
  readonly #setup: OpenedSetup;
  readonly #platform: PlatformCalls | null;
  readonly #health: Health;
  readonly #clock: Clock;
  readonly #deps: ExecuteDeps;

  /** @throws `config.invalid` naming the variable of a missing credential */
  constructor({ config, platform, environment, clock, log }: DirectCallsDeps) {
    this.#setup = openSetup(config, { environment, clock, log, cache: null, scriptedWordsPerSecond: 0, sharedEngines: sharedEngines() });
    this.#platform = platform === null ? null : new PlatformCalls({ router: platform, environment, clock });
    this.#health = new Health({ clock: steadyClock, log, metrics: noMetrics });
    this.#clock = clock;
    const own = { vectorBudget: new VectorBudget(), health: this.#health, log, metrics: noMetrics };
    this.#deps = { ...this.#setup, ...own, ...(this.#platform !== null && { elsewhere: this.#platform }) };
  }

  /** Ends by the call's deadline. @throws TypeError for a surface that is unknown */
  async execute(call: RouterCall): Promise<CallResult> {
    const surface = surfaces.get(call.surface ?? '');
    if (surface === undefined) throw new TypeError(`a call for the surface ${call.surface}`);
    const timeout = new AbortController();
    const nowMs = this.#clock.nowMs();
    const timer = setTimeout(
      () => timeout.abort(new SwitchyardError('router.timeout', 'the model call was not answered in time')),
      Math.max(0, call.deadlineAtMs - call.createdAtMs),
    );
    const execution: Execution = {
      call: { ...call, want: 'none' },
      surface,
      attempt: 1,
      signal: timeout.signal,
      mayPublish: () => true,
      tokens: { publish: () => {} },
      framesAt: '',
      nowMs,
    };
    try {
      return await (isCheck(call) ? checkTexts : executeCall)(execution, this.#deps);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    this.#health.stop();
    await Promise.all([this.#setup.close(), this.#platform?.close()]);
  }
}
