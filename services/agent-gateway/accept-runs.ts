import type { Bus } from '#bus/bus.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { RunEnvelope } from '#shared/contracts/agent/run.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { traceId as newTraceId, ulid } from '#shared/ids.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';
import { noTracing, type Span, type Tracing } from '#shared/telemetry/tracing.ts';
import { within } from '#shared/within.ts';
import { commandSpan } from './command-span.ts';
import type { Waits } from './limits.ts';
import type { TriggerableRoutine } from './routines.ts';
import type { NewRun, RunRows } from './run-rows.ts';
import type { DeliveryRows, NewDelivery } from './webhooks/delivery-rows.ts';

interface RunAcceptanceDeps {
  runRows: Pick<RunRows, 'accept'>;
  deliveryRows: Pick<DeliveryRows, 'accept'>;
  bus: Pick<Bus, 'commands'>;
  maxTimeoutMs: number;
  bundleHash: string;
  waits: Pick<Waits, 'publishMs'>;
  log: Log;
  tracing?: Tracing;
  /** The input field that names a run's trace; null: none. */
  traceNameField?: string | null;
}

/** A run to accept. */
export interface RunRequest {
  routine: TriggerableRoutine;
  input: Record<string, unknown>;
  /** Null: none. */
  metadata: Record<string, unknown> | null;
  /** Null: the run has no callback. */
  callbackUrl: string | null;
  /** As stored, unique in the routine; null: the run's id. */
  idempotencyKey: string | null;
  /** Null: an ephemeral one, with a customer of its own. */
  session: { id: string; customerId: string } | null;
  /** Trace context of the HTTP request. */
  parent: string;
}

interface PreparedRun {
  run: NewRun;
  /** A repeat publishes nothing: its span never ends and is not exported. */
  publishing: Span;
}

/** Stores accepted runs and publishes their start commands. */
export class RunAcceptance {
  readonly #deps: RunAcceptanceDeps;

  constructor(deps: RunAcceptanceDeps) {
    this.#deps = deps;
  }

  /** Resolves once the run's row is stored. @returns null: the routine has a run with this key */
  async accept(request: RunRequest): Promise<RunEnvelope | null> {
    const prepared = this.#prepared(request);
    // no fail point, because it is at the begin of `#start`
    const createdAt = await this.#deps.runRows.accept(prepared.run);
    return createdAt === null ? null : this.#start(prepared, createdAt);
  }

  /**
   * Resolves once the delivery is stored with all its runs; nothing is stored otherwise.
   * @param requests under the delivery's key
   * @returns the new runs, in the order of the requests; null: the delivery was stored before
   */
  async acceptDelivery(delivery: NewDelivery, requests: readonly RunRequest[]): Promise<RunEnvelope[] | null> {
    const prepared = requests.map((request) => this.#prepared(request));
    // no fail point, because it is at the begin of `#start`
    const createdAt = await this.#deps.deliveryRows.accept(
      delivery,
      prepared.map(({ run }) => run),
    );
    if (createdAt === null) return null;
    const starting = prepared.map((one) => {
      const at = createdAt.get(one.run.id);
      return at === undefined ? [] : [this.#start(one, at)];
    });
    return Promise.all(starting.flat());
  }

  #prepared({ routine, input, metadata, callbackUrl, idempotencyKey, session: given, parent }: RunRequest): PreparedRun {
    const { bundleHash, maxTimeoutMs } = this.#deps;
    const runUlid = ulid();
    const id = `run_${runUlid}`;
    // An ephemeral session's id derives from the run's, so creating it is idempotent.
    const session = given ?? { id: `ses_${runUlid}`, customerId: `cus_${runUlid}` };
    // Before the row: an owner that finds the row first continues below the same span.
    const publishing = this.#publishSpan({ type: 'run.start', commandId: id, sessionId: session.id }, parent, input);
    const run: NewRun = {
      id,
      partition: partitionOf(session.id),
      sessionId: session.id,
      customerId: session.customerId,
      ephemeral: given === null,
      routineId: routine.id,
      // The run's own id is unique among keys.
      idempotencyKey: idempotencyKey ?? id,
      bundleHash,
      input,
      metadata,
      callbackUrl,
      traceId: traceIdIn(publishing.traceparent) ?? '',
      traceparent: publishing.traceparent,
      timeoutMs: routine.timeoutMs,
      maxTimeoutMs,
    };
    return { run, publishing };
  }

  /**
   * A run with an input that names its trace gets a new trace with this span as its root, linked to the request; any other is a child of the request. The name
   * is no id: runs that share it are separate traces, found together by it.
   */
  #publishSpan(command: Parameters<typeof commandSpan>[1], parent: string, input: Record<string, unknown>): Span {
    const { tracing = noTracing, traceNameField = null } = this.#deps;
    const given = traceNameField === null ? undefined : input[traceNameField];
    const name = typeof given === 'number' ? String(given) : given;
    if (typeof name !== 'string' || name === '') return commandSpan(tracing, command, { parent });
    return commandSpan(tracing, command, { parent: null, traceId: newTraceId(), links: [parent] }, name);
  }

  async #start({ run, publishing }: PreparedRun, createdAt: Date): Promise<RunEnvelope> {
    const { id, routineId, sessionId, traceId } = run;
    this.#deps.log.info({ run_id: id, session_id: sessionId, trace_id: traceId }, 'a run was accepted');
    failPoint('run.stored');
    await this.#publish(run, createdAt, publishing);
    failPoint('run.started');
    return { run_id: id, routine_id: routineId, status: 'accepted', session_id: sessionId, created_at: createdAt.toISOString() };
  }

  /** The row is the acceptance: if the append fails, the owner finds the row; if both arrive, the run starts once, since its id is the command's. */
  async #publish({ id, partition, sessionId, traceparent }: NewRun, createdAt: Date, span: Span): Promise<void> {
    const { bus, waits, log } = this.#deps;
    const sentAtMs = createdAt.getTime();
    const command: CommandOf<'run.start'> = { v: 1, type: 'run.start', sessionId, commandId: id, sentAtMs, answerTo: null, traceparent, runId: id };
    try {
      // no fail point: caller
      const stored = await within(waits.publishMs, bus.commands.append(partition, id, JSON.stringify(command)), () => null);
      span.end(stored === null ? 'service.no_answer' : null);
      if (stored === null) log.warn({ run_id: id }, 'the start command of a run is not stored yet; its owner will find the row');
    } catch (error) {
      span.end(failureOf(error).code);
      log.warn({ err: error, run_id: id }, 'the start command of a run could not be stored; its owner will find the row');
    }
  }
}
