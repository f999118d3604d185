import type { Bus } from '../../bus/bus.ts';
import { testBundle } from '../../services/actor-host/test-support/commands.ts';
import { RunAcceptance } from '../../services/agent-gateway/accept-runs.ts';
import type { TriggerableRoutine } from '../../services/agent-gateway/routines.ts';
import { DeliveryRows } from '../../services/agent-gateway/webhooks/delivery-rows.ts';
import { FanOut } from '../../services/agent-gateway/webhooks/fan-out.ts';
import type { Queryable } from '../../shared/storage/database.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import type { AcceptedRun } from './gateway.ts';
import type { Process, Scheduler } from './scheduler.ts';

interface SentDelivery {
  /** Of its bytes. */
  key: string;
  body: string;
  /** The ids of the runs of each answer, sorted. */
  answers: string[][];
}

interface WebhookSenderDeps {
  scheduler: Scheduler;
  process: Process;
  bus: Bus;
  database: Queryable;
  started(run: AcceptedRun): void;
}

/** The second has conditions, which a model judges. */
const candidates: readonly TriggerableRoutine[] = [routine('triage', []), routine('refund', ['money is asked for'])];

/** A third party that posts deliveries, some of them again, to two gateways that share one process. */
export class WebhookSender {
  readonly deliveries: SentDelivery[] = [];
  readonly #deps: WebhookSenderDeps;
  readonly #gateways: readonly FanOut[];
  readonly #started = new Set<string>();
  #posts = 0;

  constructor(deps: WebhookSenderDeps) {
    this.#deps = deps;
    this.#gateways = [this.#gateway(), this.#gateway()];
  }

  /** Posts a new delivery, or one again. */
  send(): void {
    const { chance } = this.#deps.scheduler;
    const delivery = this.deliveries.length > 0 && chance.oneIn(2) ? chance.pick(this.deliveries) : this.#next();
    this.#posts += 1;
    const trace = `f${String(this.#posts).padStart(31, '0')}`;
    const request = { webhook: 'shop', candidates, key: delivery.key, body: JSON.parse(delivery.body) as Record<string, unknown> };
    chance
      .pick(this.#gateways)
      .dispatch({ ...request, parent: `00-${trace}-${'1'.repeat(16)}-01` })
      .then(({ runs }) => {
        delivery.answers.push(runs.map(({ run_id }) => run_id).sort());
        for (const { run_id: id } of runs) this.#note(id);
      })
      // Answered with an error, or not at all: a repeat may come.
      .catch(() => {});
  }

  #next(): SentDelivery {
    const number = this.deliveries.length + 1;
    const delivery = { key: `wh:shop:${number}`, body: JSON.stringify({ claim: 'broken', number }), answers: [] };
    this.deliveries.push(delivery);
    return delivery;
  }

  #note(id: string): void {
    if (this.#started.has(id)) return;
    this.#started.add(id);
    this.#deps.started({ id, sessionId: id.replace('run_', 'ses_'), ephemeral: true, hasCallback: false });
  }

  #gateway(): FanOut {
    const { scheduler, process, bus, database } = this.#deps;
    const deliveryRows = new DeliveryRows(database);
    const runRows = {
      accept: () => {
        throw new TypeError('only deliveries are accepted here');
      },
    };
    const settings = { maxTimeoutMs: 120_000, bundleHash: testBundle.hash, waits: { publishMs: 2_000 } };
    const acceptance = new RunAcceptance({ ...settings, runRows, deliveryRows, bus, log: silentLog });
    const lost = () => new Error('no verdict');
    const judge = { judge: () => scheduler.park<ReadonlySet<string>>(process, 'verdict', lost, () => new Set(['refund'])) };
    // As without the cache: both gateways may judge, and one of them stores.
    const judgingTurns = { once: async <Outcome>(_: string, { judge }: { judge(): Promise<Outcome> }) => judge() };
    return new FanOut({ deliveryRows, acceptance, judge, judgingTurns, bus });
  }
}

function routine(id: string, conditions: string[]): TriggerableRoutine {
  return { id, title: '', conditions, violationOf: () => null, callbackUrlAllowlist: null, timeoutMs: 60_000, webhook: null, match: {} };
}
