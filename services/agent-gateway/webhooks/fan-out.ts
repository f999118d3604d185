import type { Bus } from '#bus/bus.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { RunAcceptance } from '../accept-runs.ts';
import { limits } from '../limits.ts';
import type { TriggerableRoutine } from '../routines.ts';
import type { ConditionJudge } from './condition-judge.ts';
import type { DeliveryRows, StoredDelivery } from './delivery-rows.ts';
import type { JudgingTurns } from './judging-turns.ts';
import { matchesFields } from './match-fields.ts';

interface FanOutDeps {
  deliveryRows: Pick<DeliveryRows, 'byKey'>;
  acceptance: Pick<RunAcceptance, 'acceptDelivery'>;
  judge: Pick<ConditionJudge, 'judge'>;
  judgingTurns: Pick<JudgingTurns, 'once'>;
  bus: Pick<Bus, 'hasCapacity'>;
}

/** A verified delivery to a webhook of the manifest. */
export interface Delivery {
  webhook: string;
  /** Routines that it may be for. */
  candidates: readonly TriggerableRoutine[];
  key: string;
  body: Record<string, unknown>;
  /** Trace context of the HTTP request. */
  parent: string;
}

/** As in the response. */
export interface FannedOut extends StoredDelivery {
  webhook: string;
}

/** Starts runs of the routines that a delivery is for. */
export class FanOut {
  readonly #deps: FanOutDeps;
  /** By key: repeats that arrive meanwhile get the same. */
  readonly #dispatching = new ObjectMap<Promise<FannedOut>>();
  #openJudgements = 0;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves once the delivery is stored with all its runs. A repeat starts nothing, and has the runs of the first as they are by now.
   * @throws `webhook.unmatched` without a verdict on conditions, `service.overloaded` when too many wait for one; then nothing is stored
   */
  dispatch(delivery: Delivery): Promise<FannedOut> {
    const { key } = delivery;
    const running = this.#dispatching.get(key);
    if (running !== undefined) return running;
    const dispatching = this.#dispatch(delivery).finally(() => this.#dispatching.delete(key));
    this.#dispatching.set(key, dispatching);
    return dispatching;
  }

  /** Fields decide first; what they leave is asked of a model if it has conditions. In the order of the candidates. */
  async #dispatch(delivery: Delivery): Promise<FannedOut> {
    const { candidates, body } = delivery;
    // no fail point: reads
    const prior = await this.#prior(delivery);
    if (prior !== null) return prior;
    const fitting = candidates.filter(({ match }) => matchesFields(match, body));
    const doubtful = fitting.filter(({ conditions }) => conditions.length > 0);
    return doubtful.length === 0 ? this.#start(delivery, fitting) : this.#judge(delivery, fitting, doubtful);
  }

  async #judge(delivery: Delivery, fitting: readonly TriggerableRoutine[], doubtful: readonly TriggerableRoutine[]): Promise<FannedOut> {
    const { judge, judgingTurns, bus } = this.#deps;
    const { webhook, key, body, parent } = delivery;
    if (this.#openJudgements >= limits.openJudgements || !bus.hasCapacity('router.call'))
      throw new SwitchyardError('service.overloaded', 'too many deliveries wait for a model call');
    this.#openJudgements += 1;
    try {
      // no fail point: inside
      return await judgingTurns.once(key, {
        stored: () => this.#prior(delivery),
        judge: async () => {
          // no fail point: requests
          const applying = await judge.judge(webhook, doubtful, body, parent);
          const routines = fitting.filter(({ id, conditions }) => conditions.length === 0 || applying.has(id));
          return this.#start(delivery, routines);
        },
      });
    } finally {
      this.#openJudgements -= 1;
    }
  }

  async #start({ webhook, key, body, parent }: Delivery, routines: readonly TriggerableRoutine[]): Promise<FannedOut> {
    const matched = routines.map(({ id }) => id);
    const request = { input: body, metadata: { webhook }, callbackUrl: null, idempotencyKey: key, session: null, parent };
    failPoint('webhook.matched');
    const started = await this.#deps.acceptance.acceptDelivery(
      { key, webhook, matched },
      routines.map((routine) => ({ ...request, routine })),
    );
    // The rest was accepted before: under another request, or by a delivery whose row is not kept any more.
    // no fail point: reads
    if (started === null || started.length < matched.length) return { webhook, ...(await this.#stored(key)) };
    return { webhook, matched, runs: started.map(({ routine_id, run_id, status }) => ({ routine_id, run_id, status })) };
  }

  async #prior({ webhook, key }: Delivery): Promise<FannedOut | null> {
    // no fail point: reads
    const prior = await this.#deps.deliveryRows.byKey(key);
    return prior === null ? null : { webhook, ...prior };
  }

  /** Rows are kept for weeks, so it exists unless a clock was far off. */
  async #stored(key: string): Promise<StoredDelivery> {
    // no fail point: reads
    const stored = await this.#deps.deliveryRows.byKey(key);
    if (stored === null) throw new SwitchyardError('service.no_answer', 'the delivery of this body has just been deleted; send it again');
    return stored;
  }
}
