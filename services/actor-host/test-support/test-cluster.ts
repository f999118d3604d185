import { sqlRuntimeStore } from '#actors/store/sql/sql-runtime-store.ts';
import type { Bus, WorkItem } from '#bus/bus.ts';
import { type RouterCall, routerCall } from '#bus/messages/router.ts';
import type { NoticeMessage, ReplyMessage, SessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Database } from '#shared/storage/database.ts';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { type ActorHostDeps, startActorHost } from '../service.ts';
import { completed, start, testBundle } from './commands.ts';
import { type CommitFault, FaultyLink, Gate } from './faulty-link.ts';
import { FenceWatch } from './fence-watch.ts';

/** Drivers of a cluster: embedded, or real servers. Each host gets its own handles where the driver has them. */
export interface Stores {
  openDatabase(): Promise<Database>;
  openBus(): Promise<Bus>;
  /** Empties the command log and the work queue. */
  loseBus(): Promise<void>;
  close(): Promise<void>;
}

export interface HostUnderTest {
  id: string;
  faults: CommitFault[];
  stop(): Promise<void>;
  /** Stops although its database may be unreachable. */
  stopAsItIs(): Promise<void>;
  /** Like kill -9: no further message, and no further write arrives. */
  crash(): void;
  /** Like SIGSTOP: its statements arrive once it is woken. */
  pause(): void;
  wake(): void;
  /** Holds back replies about the log's state until the returned function is called. */
  stallLog(): () => void;
  /** Closes a dead host without waiting: nothing of it reaches the database any more. */
  discard(): Promise<void>;
  isDiscarded(): boolean;
  /** Whether it has died, by `crash` or at a commit. */
  isCrashed(): boolean;
  /** Whether a command of a session has reached it: it has asked the database for the session's snapshot, with or without a result. */
  hasCommand(): boolean;
  /** Reads of rows of turns from the database that have found some. */
  turnReads(): number;
  /** As if its connection to the broker had been lost, and were back. */
  reconnect(): void;
}

interface Stalled {
  until: Promise<void>;
  /** The host has sent its request, and waits. */
  onAsked(): void;
}

export interface TestCluster {
  bus: Bus;
  database: Database;
  replies: ReplyMessage[];
  notices: NoticeMessage[];
  /** Checks every commit of every host. */
  fence: FenceWatch;
  /** Logged by hosts. */
  errors: { message: string; fields: Record<string, unknown> }[];
  warnings: { message: string; fields: Record<string, unknown> }[];
  host(config?: Partial<ActorHostDeps['config']>, options?: HostOptions): Promise<HostUnderTest>;
  send(command: SessionCommand, messageId?: string): Promise<{ sequence: number }>;
  /** Takes the next model call of a turn or a run off the queue. */
  nextCall(): Promise<RouterCall & { item: WorkItem }>;
  answerAllCalls(): void;
  acceptRun(run: Partial<RunRow> & { id: string }): Promise<void>;
  startRun(run: Partial<RunRow> & { id: string }): Promise<void>;
  /** Without deleted events. */
  log(sessionId: string): Promise<ConversationEvent[]>;
  rows<Row extends object>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  count(table: string, where?: string): Promise<number>;
  /** The broker's store is lost; hosts that start from here on, and the cluster itself, use a new one. */
  loseBus(): Promise<void>;
  close(): Promise<void>;
}

interface HostOptions {
  /** Until then requests for the log's state are held, and so no partition can be acquired. */
  stalled?: Stalled;
  /** Absent: commands need no tag. */
  check?: ActorHostDeps['check'];
}

interface RunRow {
  id: string;
  sessionId: string;
  ephemeral: boolean;
  routineId: string;
  input: unknown;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
  timeoutMs: number;
  expiresInMs: number;
  traceId: string;
}

/** Of hosts that replace one that is dead, paused or without its broker. A busy machine may delay a heartbeat for longer, and a host then acquires its partitions anew. */
export const quickTimes = { beatMs: 100, expiresAfterMs: 1_000, dropAfterMs: 800, cutOffMs: 2_000 };
/** Of all others: a host retains its partitions on a machine that is busy. */
const calmTimes = { beatMs: 100, expiresAfterMs: 60_000, dropAfterMs: 50_000, cutOffMs: 60_000 };

export async function openTestCluster(stores: Stores): Promise<TestCluster> {
  const database = await stores.openDatabase();
  await storeBundle(database, testBundle);
  let bus = await stores.openBus();
  const replies: ReplyMessage[] = [];
  const notices: NoticeMessage[] = [];
  const hosts: HostUnderTest[] = [];
  let hostsBegun = 0;
  const fence = new FenceWatch();
  const errors: TestCluster['errors'] = [];
  const warnings: TestCluster['warnings'] = [];
  const hostLog: Log = {
    ...silentLog,
    error: (fields, message) => errors.push({ message, fields }),
    warn: (fields, message) => warnings.push({ message, fields }),
  };
  const listen = () => {
    bus.notices.subscribe(subjectOf(addresses.replies, 'gw1'), (_, body) => replies.push(JSON.parse(body) as ReplyMessage));
    bus.notices.subscribe(patternOf(addresses.notices), (_, body) => notices.push(JSON.parse(body) as NoticeMessage));
  };
  listen();

  const cluster: TestCluster = {
    get bus() {
      return bus;
    },
    database,
    replies,
    notices,
    fence,
    errors,
    warnings,
    async host(config = {}, options = {}) {
      hostsBegun += 1;
      // The same shares in each run: they follow from the ids.
      const host = await startHost({ stores, fence, log: hostLog }, { hostId: `host-${hostsBegun}`, ...config }, options);
      hosts.push(host);
      return host;
    },
    send: (command, messageId = command.commandId) => bus.commands.append(partitionOf(command.sessionId), messageId, JSON.stringify(command)),
    nextCall: () =>
      new Promise((resolve) => {
        const reader = bus.work.consume('router.turn', { concurrency: 1, ackWaitMs: 30_000 }, async (item) => {
          await item.ack();
          resolve({ ...routerCall.parse(JSON.parse(item.body)), item });
          reader.stop().catch(() => {});
        });
      }),
    answerAllCalls: () => {
      bus.work.consume('router.turn', { concurrency: 50, ackWaitMs: 30_000 }, async (item) => {
        const call = routerCall.parse(JSON.parse(item.body));
        await cluster.send(completed(call.origin, call.callId, 'a reply'));
        await item.ack();
      });
    },
    acceptRun: (run) => acceptRun(database, run),
    async startRun(run) {
      await acceptRun(database, run);
      await cluster.send(start(run.sessionId ?? 'ses_run', run.id));
    },
    log: async (sessionId) =>
      (
        await database.query<{ body: ConversationEvent }>('select body from events where session_id = $1 and deleted_at is null order by off', [sessionId])
      ).rows.map((row) => row.body),
    rows: async <Row extends object>(sql: string, parameters: unknown[] = []) => (await database.query<Row>(sql, parameters)).rows,
    count: async (table, where = 'true') => (await database.query<{ n: number }>(`select count(*) as n from ${table} where ${where}`)).rows[0]?.n ?? -1,
    async loseBus() {
      await stores.loseBus();
      bus = await stores.openBus();
      listen();
    },
    async close() {
      await Promise.all(hosts.filter((host) => !host.isDiscarded()).map((host) => host.stop()));
      await bus.close();
      await stores.close();
    },
  };
  return cluster;
}

async function startHost(
  { stores, fence, log }: { stores: Stores; fence: FenceWatch; log: Log },
  config: Partial<ActorHostDeps['config']> & { hostId: string },
  { stalled, check = { accepts: () => true } }: HostOptions,
): Promise<HostUnderTest> {
  const faults: CommitFault[] = [];
  const link = new FaultyLink(faults);
  const gate = new Gate();
  if (stalled !== undefined) {
    gate.shut();
    stalled.until.then(
      () => gate.open(),
      () => {},
    );
  }
  const reconnects: (() => void)[] = [];
  const store = sqlRuntimeStore(link.over(fence.over(await stores.openDatabase())));
  let turnReads = 0;
  const staged: typeof store.turns.staged = async (turnIds) => {
    const rows = await store.turns.staged(turnIds);
    if (rows.size > 0) turnReads += 1;
    return rows;
  };
  const host = await startActorHost({
    config: {
      coalesceMs: 150,
      turnTimeoutMs: 60_000,
      drainTimeoutMs: 0,
      streaming: false,
      maxTokens: 1_000,
      providerOrder: [],
      modelKey: 'sha256:none',
      purgeEveryMs: 60_000,
      times: calmTimes,
      ...config,
    },
    bus: {
      ...stallable(await stores.openBus(), gate, stalled?.onAsked),
      onReconnect: (handler) => {
        reconnects.push(handler);
        return { stop: async () => {} };
      },
    },
    store: { ...store, turns: { ...store.turns, staged } },
    check,
    clock: systemClock,
    log,
  });
  let stopped: Promise<void> | null = null;
  let isDiscarded = false;
  return {
    id: config.hostId,
    faults,
    stop: () => {
      // A graceful stop must not die at a commit: that is `crash`, after which nothing can stop.
      faults.splice(0, faults.length, ...faults.filter((fault) => !fault.startsWith('die')));
      link.mend();
      link.wake();
      gate.open();
      stopped ??= host.stop().then(() => link.settled());
      return stopped;
    },
    stopAsItIs: () => {
      stopped ??= host.stop();
      return stopped;
    },
    crash: () => link.cut(),
    pause: () => link.pause(),
    wake: () => link.wake(),
    stallLog: () => {
      gate.shut();
      return () => gate.open();
    },
    discard: () => {
      isDiscarded = true;
      link.refuse();
      link.wake();
      gate.open();
      stopped ??= host.stop();
      return stopped;
    },
    isDiscarded: () => isDiscarded,
    turnReads: () => turnReads,
    reconnect: () => {
      for (const handler of reconnects) handler();
    },
    isCrashed: () => link.isCut,
    hasCommand: () => link.isSnapshotRequested,
  };
}

function stallable(bus: Bus, gate: Gate, onAsked = () => {}): Bus {
  const { commands, work, notices, tokens, blobs, usage } = bus;
  return {
    commands: {
      append: (...args) => commands.append(...args),
      read: (...args) => commands.read(...args),
      at: (...args) => commands.at(...args),
      lastOf: (...args) => commands.lastOf(...args),
      purge: (...args) => commands.purge(...args),
      state: async () => {
        onAsked();
        await gate.pass();
        return commands.state();
      },
    },
    work,
    notices,
    tokens,
    blobs,
    usage,
    isReady: () => bus.isReady(),
    connectionNumber: () => bus.connectionNumber(),
    flush: () => bus.flush(),
    hasCapacity: (kind) => bus.hasCapacity(kind),
    onReconnect: (handler) => bus.onReconnect(handler),
    close: () => bus.close(),
  };
}

async function acceptRun(database: Database, run: Partial<RunRow> & { id: string }): Promise<void> {
  const { id, sessionId = 'ses_run', ephemeral = true, routineId = 'triage', input = { claim: 'broken' } } = run;
  const { metadata = { order: 7 }, callbackUrl = 'https://example.com/callback', timeoutMs = 60_000, expiresInMs = 120_000 } = run;
  const { traceId = 'f'.repeat(32) } = run;
  await database.query(
    `insert into runs (id, p, session_id, customer_id, ephemeral, routine_id, idempotency_key, bundle_hash, state, input, metadata, callback_url,
       trace_id, timeout_ms, expires_at, created_at)
     values ($1, $2, $3, 'cus_run', $4, $5, $1, $6, 'accepted', $7, $8, $9, $10, $11, $12, $13)`,
    [
      id,
      partitionOf(sessionId),
      sessionId,
      ephemeral,
      routineId,
      testBundle.hash,
      JSON.stringify(input),
      metadata === null ? null : JSON.stringify(metadata),
      callbackUrl,
      traceId,
      timeoutMs,
      new Date(Date.now() + expiresInMs),
      new Date(),
    ],
  );
}

export async function eventually(condition: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const limitAtMs = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > limitAtMs) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    // Most conditions are statements, which take CPU from what is awaited.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
