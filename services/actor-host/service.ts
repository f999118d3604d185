import type { EffectRow } from '#actors/effects/effect-row.ts';
import { effects } from '#actors/effects/registry.ts';
import type { RenderSettings } from '#actors/effects/render-deps.ts';
import type { EventWebhookAddress } from '#actors/inputs/actor-inputs.ts';
import { CustomerReader } from '#actors/inputs/customer-reader.ts';
import { EvaluationsReader } from '#actors/inputs/evaluations-reader.ts';
import { FetchedValues } from '#actors/inputs/fetched-values.ts';
import { greetingReader } from '#actors/inputs/greeting-reader.ts';
import { inputsReader } from '#actors/inputs/inputs-reader.ts';
import { RunFactsReader } from '#actors/inputs/run-facts.ts';
import { RETRY_SUFFIX } from '#actors/kinds/delivery/rounds.ts';
import { actorKinds } from '#actors/kinds/registry.ts';
import { decodeSnapshot, MACHINE_VERSION } from '#actors/kinds/snapshots.ts';
import type { CommandCheck } from '#actors/runtime/apply/command-check.ts';
import { CommitLoop } from '#actors/runtime/apply/commit-loop.ts';
import { Snapshots } from '#actors/runtime/apply/snapshots.ts';
import { Host } from '#actors/runtime/host.ts';
import { type HostTimes, hostTimes } from '#actors/runtime/host-times.ts';
import { initialisePartitions } from '#actors/runtime/partitions/initialise-partitions.ts';
import { refuseOtherLog } from '#actors/runtime/partitions/one-log.ts';
import { startPurging } from '#actors/runtime/partitions/purge.ts';
import { type DueTimer, Timers } from '#actors/runtime/partitions/timers.ts';
import { AgentStateCache } from '#actors/runtime/publish/agent-state-cache.ts';
import { replyForCalls } from '#actors/runtime/publish/awaited-calls.ts';
import { Histories } from '#actors/runtime/publish/histories.ts';
import { Outbox } from '#actors/runtime/publish/outbox.ts';
import { watchQueue } from '#actors/runtime/publish/queue-watch.ts';
import { TurnRowCache } from '#actors/runtime/publish/turn-row-cache.ts';
import { Unrenderable } from '#actors/runtime/publish/unrenderable.ts';
import type { RuntimeStore } from '#actors/store/runtime-store.ts';
import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { BundleCache } from '#shared/config/bundle-cache.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { Drained } from '#shared/lifecycle/drained.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { within } from '#shared/within.ts';
import { logPendingCallbacks } from './log-pending-callbacks.ts';
import { recordEnded } from './record-ended.ts';
import { requestValue } from './request-value.ts';
import { watchHost } from './watch-host.ts';

const DRAIN_POLL_MS = 50;
/**
 * After the drain, for the last commit and the release: milliseconds, unless database or bus are unreachable. Then other hosts take over
 * once this host's heartbeat has expired.
 */
const STOP_WITHIN_MS = 5_000;
/** Past it the stop goes on with what was last known of the other hosts. */
const ANNOUNCE_WITHIN_MS = 1_000;

export interface ActorHostDeps {
  config: {
    /** A message within this time of the previous one joins its turn. */
    coalesceMs: number;
    turnTimeoutMs: number;
    /** Absent: no address for all sessions, and the default number of attempts. */
    eventWebhooks?: { deployment: EventWebhookAddress | null; maxAttempts: number };
    /** How long the last host waits for turns in progress. With other hosts it releases its partitions at once. */
    drainTimeoutMs: number;
    /**
     * Default: a new one. A process that is alone by construction, as with the embedded database, reuses its name, so that its next start does not
     * wait for the old heartbeat to expire.
     */
    hostId?: string;
    times?: Partial<HostTimes>;
    machineVersion?: number;
    /** Of applied commands, from the log. */
    purgeEveryMs?: number;
    /** Beyond the drain. */
    stopWithinMs?: number;
  } & RenderSettings;
  bus: Bus;
  store: RuntimeStore;
  check: CommandCheck;
  clock: Clock;
  log: Log;
  metrics?: Metrics;
  tracing?: Tracing;
}

/**
 * Starts a host: it owns its share of the partitions and runs their actors. An acquired partition goes on with the commands behind its
 * cursor, its timers, its effects that were stored and not published, and its accepted runs.
 * @throws `service.other_log` when other hosts on the same database use another broker
 */
export async function startActorHost({ config, bus, store, check, clock, log, metrics = noMetrics, tracing = noTracing }: ActorHostDeps): Promise<Drained> {
  const hostId = config.hostId ?? `host-${ulid()}`;
  const times = { ...hostTimes, ...config.times };
  await initialisePartitions(store.partitions);
  await refuseOtherLog({ hosts: store.hosts, commands: bus.commands, hostId, expiresAfterMs: times.expiresAfterMs });
  const bundles = new BundleCache(store.bundles);
  const bundleOf = (hash: string) => bundles.read(hash);
  const evaluations = new EvaluationsReader({ store: store.evaluations, clock });
  const evaluationsOf: EvaluationsReader['read'] = (bundle, set) => evaluations.read(bundle, set);
  const histories = new Histories(store.sessions);
  const turnRows = new TurnRowCache(store.turns);
  const agentStates = new AgentStateCache(store.turns);
  const fetched = new FetchedValues({ fetch: (request) => requestValue({ bus, clock }, request), log });
  const customers = new CustomerReader({ store: store.customers, fetched, clock, log });
  const epochOf = (partition: number) => loop.mailboxOf(partition)?.claim.epoch;
  const fire = (due: readonly DueTimer[]) => {
    for (const timer of due) loop.mailboxOf(timer.partition)?.fire(timer);
  };
  const timers = new Timers(clock, fire, RETRY_SUFFIX);
  const outbox = new Outbox({
    bus,
    clock,
    log,
    workOf: (kind) => effects.kind(kind).work,
    callSilenceMs: times.callSilenceMs,
    cursorOf: (partition) => loop.mailboxOf(partition)?.claim.cursor ?? null,
    isOwner: () => host.isProven,
    render: (effect, republished) =>
      effects.render(effect, republished, { runs: store.runs, turns: turnRows, histories, customers, bundleOf, evaluationsOf, epochOf, settings: config }),
    onRowsDone: () => loop.flushRows(),
    fail: (effect, error) => {
      log.error({ err: error, effect_id: effect.id, session_id: effect.sessionId }, 'an effect could not be published before its deadline, or not be rendered');
      reportFailure(bus, effect, error, clock).catch((cause) => log.warn({ err: cause }, 'a failed effect could not be reported; its timer will report it'));
    },
  });
  const loop: CommitLoop = new CommitLoop({
    store,
    clock,
    log,
    metrics,
    timers,
    outbox,
    check,
    histories,
    turnRows,
    agentStates,
    snapshots: new Snapshots(store.sessions, decodeSnapshot),
    kinds: actorKinds,
    readInputs: inputsReader({
      runFacts: new RunFactsReader({ store, bundleOf, log }),
      sessions: store.sessions,
      turnFacts: {
        turns: { ...store.turns, staged: (turnIds) => turnRows.staged(turnIds), agentStates: (sessionIds) => agentStates.agentStates(sessionIds) },
        bundleOf,
        evaluations,
      },
      settings: config,
      greetingOf: greetingReader({ bundleOf, customers }),
      log,
    }),
    onEnded: recordEnded({ tracing, bundleOf, log }),
  });
  const host: Host = new Host({
    hostId,
    machineVersion: config.machineVersion ?? MACHINE_VERSION,
    store,
    bus,
    log,
    loop,
    timers,
    timersOf: (effect) => effects.timersOf(effect),
    outbox,
    metrics,
    times,
  });
  const callReplies = replyForCalls({ bus, outbox, epochOf, log });
  const queueWatch = watchQueue({ bus, effects: store.effects, outbox, partitions: () => loop.partitions, log });
  try {
    await host.open();
  } catch (error) {
    await Promise.all([queueWatch.stop(), callReplies.stop(), outbox.stop()]);
    throw error;
  }
  const purging = startPurging({
    commands: bus.commands,
    store,
    mailboxes: () => loop.mailboxes,
    log,
    ...(config.purgeEveryMs === undefined ? {} : { everyMs: config.purgeEveryMs }),
  });

  const unwatch = watchHost({ metrics, loop, outbox, bus, partitions: store.partitions });

  return {
    async stop(withinMs = config.drainTimeoutMs) {
      unwatch();
      // Commands are still applied, so turns end by themselves; the rest goes on after the next start.
      const limitAtMs = clock.nowMs() + withinMs;
      const limitAt = performance.now() + withinMs;
      const stopWithinMs = config.stopWithinMs ?? STOP_WITHIN_MS;
      const announced = host.announceStop().catch((error: unknown) => log.warn({ err: error }, 'the stop could not be announced to the other hosts'));
      await within(Math.min(stopWithinMs, ANNOUNCE_WITHIN_MS), announced, () => {});
      // Callbacks and events with a retry due within the drain are awaited, unless other hosts take them over.
      const retries = timers.waitingRetries(limitAtMs);
      if (!host.hasPeers && retries.due > 0)
        log.info({ callbacks: retries.due }, 'the stop waits for callbacks and events whose retry is due before the drain ends');
      const isAwaited = () => outbox.openEffects > 0 || timers.waitingRetries(limitAtMs).due > 0;
      while (!host.hasPeers && (isAwaited() || host.mayInherit) && performance.now() < limitAt)
        await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
      const leaving = (async () => {
        await queueWatch.stop();
        const left = { waiting: timers.waitingRetries(limitAtMs).all, inFlight: outbox.openOf('delivery') + outbox.openOf('event-delivery') };
        // With other hosts nothing is left: they take over at once.
        if (!host.hasPeers) await logPendingCallbacks(left, { effects: store.effects, log });
        await purging.stop();
        // Before the outbox: the last commits' calls are dispatched, or else the next owner would notice only by their silence.
        await host.leave();
        await Promise.all([callReplies.stop(), outbox.stop()]);
        await loop.stop();
      })();
      const isLate = await within(
        stopWithinMs,
        leaving.then(() => false),
        () => true,
      );
      if (isLate) {
        log.warn(
          { host_id: hostId },
          'the last commits could not be stored in time; other hosts acquire the partitions once the heartbeat of this host has expired',
        );
        loop.abort('the host has stopped');
      }
      timers.stop();
    },
  };
}

/** No step can read it, so the turn asks anew, with a template of this release. */
const UNREADABLE = {
  type: 'call.completed',
  ...{ text: '', toolCalls: [{ id: '', name: '', arguments: '' }], model: '', provider: '', finishReason: 'error', usage: null },
} as const satisfies Partial<CommandOf<'call.completed'>>;

/** Fails a model call that can't be published, so that its turn ends. Other effects have timers. */
async function reportFailure(bus: Bus, effect: EffectRow, error: unknown, clock: Clock): Promise<void> {
  if (effects.kind(effect.kind).overdue !== 'report') return;
  const header = {
    v: 1 as const,
    sessionId: effect.sessionId,
    commandId: effect.id,
    sentAtMs: clock.nowMs(),
    answerTo: null,
    traceparent: effect.inputs.traceparent,
    ...actorFields(effect.actorId),
    callId: effect.id,
  };
  const command: CommandOf<'call.failed' | 'call.completed'> =
    error instanceof Unrenderable ? { ...header, ...UNREADABLE } : { ...header, type: 'call.failed', failure: failureOf(error) };
  await bus.commands.append(partitionOf(effect.sessionId), effect.id, JSON.stringify(command));
}
