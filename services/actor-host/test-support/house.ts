import type { Bus, WorkItem } from '#bus/bus.ts';
import { type RouterCall, routerCall } from '#bus/messages/router.ts';
import type { AnswerMessage, NoticeMessage, SessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type ActorHostDeps, startActorHost } from '../service.ts';
import { completed, start, testBundle } from './commands.ts';

/** What hosts stand on: embedded drivers, or real servers. Each host gets handles of its own where the driver has such. */
export interface Stores {
  openDatabase(): Promise<Database>;
  openBus(): Promise<Bus>;
  /** The command log and the work queue as if they had never been. */
  loseBus(): Promise<void>;
  close(): Promise<void>;
}

/**
 * What happens to the next commits: the connection breaks before or after the statement was carried out, or long before it is (`late`),
 * or the host dies there.
 */
export type CommitFault = 'before' | 'after' | 'late' | 'die-before' | 'die-after';

export interface HostUnderTest {
  id: string;
  faults: CommitFault[];
  stop(): Promise<void>;
  /** As kill -9 looks to the others: it says nothing any more, and whatever it still wants to write does not arrive. */
  die(): void;
  /** As SIGSTOP looks to the others: its statements wait until it is woken, and then arrive. */
  pause(): void;
  wake(): void;
  /** The broker does not say any more how its log stands, until the returned function is called. */
  stallLog(): () => void;
  /** Ends what is left of a host that has died, without waiting: nothing of it reaches the database any more. */
  bury(): Promise<void>;
  isBuried(): boolean;
  /** Whether it has died, by `die` or at a commit. */
  isDead(): boolean;
}

export interface House {
  bus: Bus;
  database: Database;
  answers: AnswerMessage[];
  notices: NoticeMessage[];
  /** @param stalledUntil until then the broker does not say how its log stands, and so nothing can be taken */
  host(config?: Partial<ActorHostDeps['config']>, stalledUntil?: Promise<void>): Promise<HostUnderTest>;
  send(command: SessionCommand, messageId?: string): Promise<{ sequence: number }>;
  /** The next model call of a turn or a run that is published, taken off the queue. */
  nextCall(): Promise<RouterCall & { item: WorkItem }>;
  answerAllCalls(): void;
  /** Writes the row of a run as a gateway does. */
  acceptRun(run: Partial<RunRow> & { id: string }): Promise<void>;
  startRun(run: Partial<RunRow> & { id: string }): Promise<void>;
  log(sessionId: string): Promise<ConversationEvent[]>;
  rows<Row extends object>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  count(table: string, where?: string): Promise<number>;
  /** The broker's store is lost; whoever starts from here on is on the new one, the house itself too. */
  loseBus(): Promise<void>;
  close(): Promise<void>;
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

/** Quick enough for tests, slow enough for a busy machine. */
export const quickTimes = { beatMs: 100, deadAfterMs: 1_000, dropAfterMs: 800 };

/** After the host's first look at what became of a commit, and about when it tries again. */
const LATE_MS = 55;

export async function openHouse(stores: Stores): Promise<House> {
  const database = await stores.openDatabase();
  await storeBundle(database, testBundle);
  let bus = await stores.openBus();
  const answers: AnswerMessage[] = [];
  const notices: NoticeMessage[] = [];
  const hosts: HostUnderTest[] = [];
  const listen = () => {
    bus.notices.subscribe(subjectOf(addresses.answers, 'gw1'), (_, body) => answers.push(JSON.parse(body) as AnswerMessage));
    bus.notices.subscribe(patternOf(addresses.notices), (_, body) => notices.push(JSON.parse(body) as NoticeMessage));
  };
  listen();

  const house: House = {
    get bus() {
      return bus;
    },
    database,
    answers,
    notices,
    async host(config = {}, stalledUntil) {
      const host = await startHost(stores, config, stalledUntil);
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
        await house.send(completed(call.origin, call.callId, 'a reply'));
        await item.ack();
      });
    },
    acceptRun: (run) => acceptRun(database, run),
    async startRun(run) {
      await acceptRun(database, run);
      await house.send(start(run.sessionId ?? 'ses_run', run.id));
    },
    log: async (sessionId) =>
      (await database.query<{ body: ConversationEvent }>('select body from events where session_id = $1 order by off', [sessionId])).rows.map(
        (row) => row.body,
      ),
    rows: async <Row extends object>(sql: string, parameters: unknown[] = []) => (await database.query<Row>(sql, parameters)).rows,
    count: async (table, where = 'true') => (await database.query<{ n: number }>(`select count(*) as n from ${table} where ${where}`)).rows[0]?.n ?? -1,
    async loseBus() {
      await stores.loseBus();
      bus = await stores.openBus();
      listen();
    },
    async close() {
      await Promise.all(hosts.filter((host) => !host.isBuried()).map((host) => host.stop()));
      await bus.close();
      await stores.close();
    },
  };
  return house;
}

async function startHost(stores: Stores, config: Partial<ActorHostDeps['config']>, stalledUntil: Promise<void> | undefined): Promise<HostUnderTest> {
  const id = config.hostId ?? `host-${ulid()}`;
  const faults: CommitFault[] = [];
  const link = new FaultyLink(faults);
  const gate = new Gate();
  if (stalledUntil !== undefined) {
    gate.shut();
    stalledUntil.then(
      () => gate.open(),
      () => {},
    );
  }
  const host = await startActorHost({
    config: {
      coalesceMs: 150,
      turnTimeoutMs: 60_000,
      drainTimeoutMs: 0,
      streaming: false,
      maxTokens: 1_000,
      purgeEveryMs: 60_000,
      times: quickTimes,
      ...config,
      hostId: id,
    },
    bus: stallable(await stores.openBus(), gate),
    database: link.over(await stores.openDatabase()),
    clock: systemClock,
    log: silentLog,
  });
  let stopped: Promise<void> | null = null;
  let isBuried = false;
  return {
    id,
    faults,
    stop: () => {
      // Who stops in good order is not killed at a commit: that is `die`, and nothing would be left that could stop.
      faults.splice(0, faults.length, ...faults.filter((fault) => !fault.startsWith('die')));
      link.mend();
      link.wake();
      gate.open();
      stopped ??= host.stop().then(() => link.settled());
      return stopped;
    },
    die: () => link.cut(),
    pause: () => link.pause(),
    wake: () => link.wake(),
    stallLog: () => {
      gate.shut();
      return () => gate.open();
    },
    bury: () => {
      isBuried = true;
      link.refuse();
      link.wake();
      gate.open();
      stopped ??= host.stop();
      return stopped;
    },
    isBuried: () => isBuried,
    isDead: () => link.isCut,
  };
}

/** Whoever comes while it is shut waits until it is opened. */
class Gate {
  #held: { released: Promise<void>; release(): void } | null = null;

  shut(): void {
    // Who waits already waits for the one that is held: a second must not take its place.
    if (this.#held !== null) return;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held = { released, release };
  }

  open(): void {
    this.#held?.release();
    this.#held = null;
  }

  async pass(): Promise<void> {
    await this.#held?.released;
  }
}

function stallable(bus: Bus, gate: Gate): Bus {
  const { commands, work, notices, tokens, blobs } = bus;
  return {
    commands: {
      append: (...args) => commands.append(...args),
      read: (...args) => commands.read(...args),
      at: (...args) => commands.at(...args),
      lastOf: (...args) => commands.lastOf(...args),
      purge: (...args) => commands.purge(...args),
      state: async () => {
        await gate.pass();
        return commands.state();
      },
    },
    work,
    notices,
    tokens,
    blobs,
    isReady: () => bus.isReady(),
    hasRoom: () => bus.hasRoom(),
    onReconnect: (handler) => bus.onReconnect(handler),
    close: () => bus.close(),
  };
}

/** The way to the database of one host, which can be cut, held up, and lose single commits. */
class FaultyLink {
  readonly #faults: CommitFault[];
  readonly #gate = new Gate();
  readonly #late = new Set<Promise<unknown>>();
  #isCut = false;
  #isRefused = false;

  constructor(faults: CommitFault[]) {
    this.#faults = faults;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  cut(): void {
    this.#isCut = true;
  }

  mend(): void {
    this.#isCut = false;
  }

  /** Nothing passes, and there is no use in trying again. */
  refuse(): void {
    this.#isRefused = true;
  }

  /** Every statement that was held back has been carried out. */
  async settled(): Promise<void> {
    await Promise.all(this.#late);
  }

  pause(): void {
    this.#gate.shut();
  }

  wake(): void {
    this.#gate.open();
  }

  over(database: Database): Database {
    return {
      transaction: async (work) => {
        await this.#pass();
        return database.transaction(work);
      },
      close: () => database.close(),
      query: async (statement, parameters) => {
        await this.#pass();
        const fault = typeof statement !== 'string' && statement.name === 'commit' ? this.#faults.shift() : undefined;
        if (fault === 'late') this.#carryOutLate(() => database.query(statement, parameters));
        if (fault === 'die-before') this.cut();
        if (fault === 'before' || fault === 'late' || fault === 'die-before') throw lost();
        const result = await database.query<never>(statement, parameters);
        if (fault === 'die-after') this.cut();
        if (fault === 'after' || fault === 'die-after') throw lost();
        return result;
      },
    };
  }

  /** As a server does that has the statement in hand when the connection breaks: the host looks, finds nothing, and tries again meanwhile. */
  #carryOutLate(statement: () => Promise<unknown>): void {
    const late: Promise<unknown> = new Promise((resolve) => setTimeout(resolve, LATE_MS))
      .then(statement)
      .catch(() => {})
      .finally(() => this.#late.delete(late));
    this.#late.add(late);
  }

  async #pass(): Promise<void> {
    await this.#gate.pass();
    if (this.#isRefused) throw new Error('the host is gone');
    if (this.#isCut) throw lost();
  }
}

function lost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
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

export async function eventually(condition: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const limitAtMs = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > limitAtMs) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
