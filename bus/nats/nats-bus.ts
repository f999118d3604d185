import { type Clock, systemClock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Bus } from '../bus.ts';
import { withLargeBodies } from '../large-bodies.ts';
import { PubSub } from '../pub-sub.ts';
import type { BusUser } from '../subjects.ts';
import { natsBlobStore } from './blob-store.ts';
import { CapacityGauge } from './capacity-gauge.ts';
import { isTooOldForReplicas } from './cluster-version.ts';
import { NatsCommandLog } from './commands/command-log.ts';
import type { Declare } from './connection/declared-streams.ts';
import { NatsLink } from './connection/link.ts';
import { storedPublisher } from './connection/stored-publish.ts';
import { declareStreams } from './declare-streams.ts';
import { LocalFrames } from './local/local-frames.ts';
import { natsNoticeBoard } from './notice-board.ts';
import { defaultSettings, type NatsSettings } from './settings.ts';
import { admissionStreamsOf, declarationsFor } from './streams.ts';
import { AwayFrames } from './tokens/away-frames.ts';
import { HeldFrames } from './tokens/held-frames.ts';
import { frameSender, natsTokenStream } from './tokens/token-stream.ts';
import { natsUsageLog } from './usage/usage-log.ts';
import { natsWorkQueue } from './work/work-queue.ts';

export interface NatsBusOptions {
  /** One or several `nats://host:port` (or `tls://`), separated by commas, without credentials. */
  servers: string;
  /** Declares and uses only this user's streams. Null: no authentication, all streams. */
  user: BusUser | null;
  password: string | null;
  /** Servers that store each stream; default: 1. */
  replicas?: number;
  /** Publishers and readers share this process: dispatches, frames and notices between them pass in memory while the broker can be reached (ADR 116). Absent: they do not. */
  isLocal?: boolean;
  log: Log;
  clock?: Clock;
  settings?: Partial<NatsSettings>;
}

/**
 * The bus over a NATS server with JetStream, 2.9.10 or newer. Declares its streams at the start and after each reconnect; reconnects forever. What the broker
 * has acknowledged is stored, unless power is lost before its next disk sync.
 *
 * @throws `service.unreachable` when the broker can't be reached in time, refuses the credentials or has no JetStream; `bus.stream_refused` when a stream
 * copies messages; `config.invalid` for an address with credentials
 */
export async function openNatsBus({
  servers,
  user,
  password,
  replicas = defaultSettings.replicas,
  isLocal = false,
  log,
  clock = systemClock,
  settings = {},
}: NatsBusOptions): Promise<Bus> {
  const limits: NatsSettings = { ...defaultSettings, replicas, ...settings };
  const { connectBudgetMs, storeBudgetMs: budgetMs } = limits;
  const declarations = declarationsFor(user, limits);
  const declare: Declare = (declaring, beforeCreating) => declareStreams(declaring, declarations, log, beforeCreating);
  const link = await NatsLink.open({ servers, user, password, isLocal, connectBudgetMs, log, declare });
  const { version } = link.main.info ?? {};
  if (replicas > 1 && isTooOldForReplicas(version)) {
    log.warn({ version }, 'this nats-server may lose messages of streams with replicas when a server is killed and started again: use 2.10.14 or newer');
  }
  const capacity = new CapacityGauge(link, admissionStreamsOf(user));
  await capacity.sample();
  const onFull = () => capacity.markFull();
  const publish = storedPublisher({ link, budgetMs, onFull });
  const commands = new NatsCommandLog({ link, publish, budgetMs, log });
  const work = natsWorkQueue({ link, isLocal, clock, publish, budgetMs, log });
  const notices = natsNoticeBoard(link, isLocal ? new PubSub(log) : null, log);
  const local = isLocal ? new LocalFrames(log) : null;
  const away = new AwayFrames({
    send: frameSender(link, log),
    onDropped: (frames) => log.warn({ frames }, 'frames are lost: they waited too long for their connection'),
  });
  link.onTokens({ away: () => away.onAway(), back: () => away.onBack() });
  const held = new HeldFrames(
    (subject, frame) => away.publish(subject, frame),
    () => local?.release(),
  );
  const tokens = natsTokenStream({ link, held, away, local, budgetMs, isAlone: () => work.inFlight() <= 1, log });
  const blobs = natsBlobStore(link, budgetMs, () => clock.nowMs());
  const usage = natsUsageLog({ link, held, budgetMs, ackWaitMs: limits.usageAckWaitMs, onFull, log });
  let closing: Promise<void> | null = null;

  async function close(): Promise<void> {
    // Running handlers may append, publish and ack: refuse nothing before the last has returned.
    await Promise.all([commands.stopReaders(), work.stopReaders(), usage.stopReaders()]);
    notices.close();
    // Waits for frames whose connection is away for a moment.
    await tokens.close();
    await link.close();
  }

  return withLargeBodies({
    commands,
    work,
    notices,
    tokens,
    blobs,
    usage,
    isReady: () => closing === null && link.isReady,
    connectionNumber: () => link.sessionNumber,
    flush: () => tokens.flush(),
    hasCapacity: (kind) => capacity.hasCapacity(kind),
    onReconnect: (handler) => link.onReconnect(handler),
    close: () => {
      closing ??= close();
      return closing;
    },
  });
}
