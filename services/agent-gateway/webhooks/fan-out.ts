import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { RunAcceptance } from '../accept-runs.ts';
import type { TriggerableRoutine } from '../routines.ts';
import type { DeliveryRows, StoredDelivery } from './delivery-rows.ts';
import { matchesFields } from './match-fields.ts';

interface FanOutDeps {
  deliveryRows: DeliveryRows;
  acceptance: RunAcceptance;
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

  constructor({ deliveryRows, acceptance }: FanOutDeps) {
    this.#deps = { deliveryRows, acceptance };
  }

  /** Resolves once the delivery is stored with all its runs. A repeat starts nothing, and has the runs of the first as they are by now. */
  async dispatch({ webhook, candidates, key, body, parent }: Delivery): Promise<FannedOut> {
    const { deliveryRows, acceptance } = this.#deps;
    const prior = await deliveryRows.byKey(key);
    if (prior !== null) return { webhook, ...prior };
    const routines = matchedOf(candidates, body);
    const matched = routines.map(({ id }) => id);
    const request = { input: body, metadata: { webhook }, callbackUrl: null, idempotencyKey: key, session: null, parent };
    const started = await acceptance.acceptDelivery(
      { key, webhook, matched },
      routines.map((routine) => ({ ...request, routine })),
    );
    // The rest was accepted before: under another request, or by a delivery whose row is not kept any more.
    if (started === null || started.length < matched.length) return { webhook, ...(await this.#stored(key)) };
    return { webhook, matched, runs: started.map(({ routine_id, run_id, status }) => ({ routine_id, run_id, status })) };
  }

  /** Rows are kept for weeks, so it exists unless a clock was far off. */
  async #stored(key: string): Promise<StoredDelivery> {
    const stored = await this.#deps.deliveryRows.byKey(key);
    if (stored === null) throw new SwitchyardError('service.no_answer', 'the delivery of this body has just been deleted; send it again');
    return stored;
  }
}

/** In the order of the candidates. */
function matchedOf(candidates: readonly TriggerableRoutine[], body: Record<string, unknown>): TriggerableRoutine[] {
  const fitting = candidates.filter(({ match }) => matchesFields(match, body));
  if (fitting.some(({ conditions }) => conditions.length > 0))
    throw new SwitchyardError('webhook.unmatched', 'the conditions of the routines could not be judged; send the delivery again');
  return fitting;
}
