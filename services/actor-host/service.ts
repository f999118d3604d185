import { CommitLoop } from '#actors/runtime/commit-loop.ts';
import type { EffectRow } from '#actors/runtime/commit-plan.ts';
import { Mailbox } from '#actors/runtime/mailbox.ts';
import { Outbox } from '#actors/runtime/outbox.ts';
import { layPartitions, releasePartitions, takePartitions } from '#actors/runtime/ownership.ts';
import { startPurging } from '#actors/runtime/purge.ts';
import { bundleReader, type RenderSettings, renderRouterCall } from '#actors/runtime/render-effect.ts';
import { MACHINE_VERSION, Snapshots } from '#actors/runtime/snapshots.ts';
import { Timers } from '#actors/runtime/timers.ts';
import type { Bus } from '#bus/bus.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** How often a drain looks whether the turns in progress have ended. */
const DRAIN_LOOK_MS = 50;

export interface ActorHostDeps {
  config: {
    /** A message within this time of the one before joins its turn. */
    coalesceMs: number;
    turnTimeoutMs: number;
    /** How long a stop waits for turns in progress; what is left then goes on with the partition's next owner. */
    drainTimeoutMs: number;
    /** How often the command log is freed of what is applied; tests do not wait that long. */
    purgeEveryMs?: number;
  } & RenderSettings;
  bus: Bus;
  database: Database;
  clock: Clock;
  log: Log;
}

/**
 * Owns the partitions and runs their sessions' actors. At its start it takes over what is there: commands behind the cursors, timers,
 * effects that were stored and not published.
 */
export async function startActorHost({ config, bus, database, clock, log }: ActorHostDeps): Promise<{ stop(): Promise<void> }> {
  const hostId = `host-${ulid()}`;
  await layPartitions(database);
  const { created } = await bus.commands.state();
  const claims = await takePartitions(database, { hostId, machineVersion: MACHINE_VERSION, logCreated: created });
  const partitions = claims.map((claim) => claim.partition);

  const bundleOf = bundleReader(database);
  const timers = new Timers(clock, (due) => {
    for (const timer of due) loop.mailboxOf(timer.partition)?.fire(timer);
  });
  const outbox = new Outbox({
    bus,
    clock,
    log,
    render: async (effect) => JSON.stringify(await renderRouterCall(effect, { database, bundleOf, settings: config })),
    onRowsDone: () => loop.flushRows(),
    fail: (effect, error) => {
      log.error({ err: error, effect_id: effect.id, session_id: effect.sessionId }, 'an effect could not be published before its deadline');
      reportFailure(bus, effect, error, clock).catch((cause) => log.warn({ err: cause }, 'a failed effect could not be reported; its timer will'));
    },
  });
  const loop: CommitLoop = new CommitLoop({
    database,
    clock,
    log,
    timers,
    outbox,
    snapshots: new Snapshots(database),
    settings: config,
    greetingOf: async (hash) => (await bundleOf(hash)).body.manifest.agent_config.context.greeting ?? null,
  });
  for (const claim of claims) loop.own(new Mailbox(claim, loop.kick));
  await timers.load(database, partitions);
  await outbox.load(database, partitions);
  // Only now: what a command opens must not be read again as something that was left behind.
  for (const partition of partitions) loop.mailboxOf(partition)?.follow(bus.commands);
  for (const { partition, epoch } of claims) bus.notices.publish(subjectOf(addresses.partitions, partition), JSON.stringify({ v: 1, epoch }));
  const purging = startPurging({
    commands: bus.commands,
    database,
    mailboxes: () => loop.mailboxes,
    log,
    ...(config.purgeEveryMs === undefined ? {} : { everyMs: config.purgeEveryMs }),
  });
  log.info({ host_id: hostId, partitions: claims.length }, 'partitions taken');

  return {
    async stop() {
      // Turns end by themselves while commands still flow; only what is left at the limit moves to another host, or to our next start.
      const limitAtMs = clock.nowMs() + config.drainTimeoutMs;
      while (outbox.openEffects > 0 && clock.nowMs() < limitAtMs) await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS));
      await purging.stop();
      await outbox.stop();
      await loop.stop();
      timers.stop();
      await releasePartitions(database, loop.claims);
    },
  };
}

/** An effect that can never be published comes back as a failed call, so that its turn ends. */
async function reportFailure(bus: Bus, effect: EffectRow, error: unknown, clock: Clock): Promise<void> {
  const command: CommandOf<'call.failed'> = {
    v: 1,
    type: 'call.failed',
    sessionId: effect.sessionId,
    commandId: effect.id,
    sentAtMs: clock.nowMs(),
    answerTo: null,
    traceparent: effect.inputs.traceparent,
    turnId: effect.turnId,
    callId: effect.id,
    failure: failureOf(error),
  };
  await bus.commands.append(partitionOf(effect.sessionId), effect.id, JSON.stringify(command));
}
