import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { traceId, ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import type { CommandCheck } from './command-check.ts';
import type { CommitPlan, EndedWork } from './commit-plan.ts';
import { CommitStore, type Outcome } from './commit-store.ts';
import type { Histories } from './histories.ts';
import { dequeueRoundRobin, type Entry, type Mailbox } from './mailbox.ts';
import type { Outbox } from './outbox.ts';
import type { PartitionClaim } from './ownership.ts';
import { nameOf, type Parsed, type PlanInput, parseEntry, planBatch, planDeadLetter, type Repeats, type States } from './plan-batch.ts';
import { reportCommit } from './report-commit.ts';
import { type RunFactsReader, readRunFacts } from './run-facts.ts';
import type { Snapshots } from './snapshots.ts';
import type { Timers } from './timers.ts';
import type { TransitionInputs } from './transition-inputs.ts';

/** Commands in one statement. Larger batches take longer than they save. */
const MAX_BATCH = 128;
/** One line of the log for all commands that are refused in this time: they may come by the thousand each second. */
const REFUSALS_LOGGED_EVERY_MS = 10_000;

export interface CommitLoopDeps {
  database: Database;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  snapshots: Snapshots;
  histories: Histories;
  timers: Timers;
  outbox: Outbox;
  runFacts: RunFactsReader;
  check: CommandCheck;
  settings: { coalesceMs: number; turnTimeoutMs: number };
  /** The greeting of a bundle, null when it has none. */
  greetingOf(bundleHash: string): Promise<string | null>;
  /** Hears of every turn and run whose end is stored. Returns at once. */
  onEnded?(ended: EndedWork): void;
}

/**
 * Applies commands and stores what follows from them, for all partitions of this host, one statement at a time. While one is in flight
 * the next batch collects; there are no timers, and transitions run only on what the last commit has stored.
 */
export class CommitLoop {
  readonly #deps: CommitLoopDeps;
  readonly #store: CommitStore;
  readonly #mailboxes = new Map<number, Mailbox>();
  #running: Promise<void> | null = null;
  /** The batch that is being applied and stored. */
  #inFlight: Promise<void> = Promise.resolve();
  #flushRows = false;
  /** Whether the batch in hand takes the rows of published effects along. */
  #isFlushing = false;
  #stopped = false;
  /** Nothing is tried again any more. */
  #aborted = false;
  /** Commands that were refused since that was last logged, and when it was. */
  #refused = 0;
  #refusalsLoggedAtMs = Number.NEGATIVE_INFINITY;
  /** Where the next batch begins, so that no partition starves. */
  #rotation = 0;

  constructor(deps: CommitLoopDeps) {
    this.#deps = deps;
    this.#store = new CommitStore(deps);
  }

  own(mailbox: Mailbox): void {
    this.#mailboxes.set(mailbox.claim.partition, mailbox);
  }

  get mailboxes(): Mailbox[] {
    return [...this.#mailboxes.values()];
  }

  get partitions(): number[] {
    return [...this.#mailboxes.keys()];
  }

  /** Whether the claim is one under which this host still owns its partition. */
  isOwned = (claim: PartitionClaim): boolean => this.#mailboxes.get(claim.partition)?.claim === claim;

  mailboxOf(partition: number): Mailbox | undefined {
    return this.#mailboxes.get(partition);
  }

  /** There is something to do. Returns at once. */
  kick = (): void => {
    if (this.#running !== null || this.#stopped) return;
    this.#running = this.#run()
      // Nothing that is expected ends here. To go on after it could store what never was, so others may try.
      .catch((error: unknown) => this.#giveUp([...this.#mailboxes.keys()], error))
      .finally(() => {
        this.#running = null;
        if (this.#hasWork()) this.kick();
      });
  };

  /** Deletes the rows of published effects even if no command comes along. */
  flushRows(): void {
    this.#flushRows = true;
    this.kick();
  }

  /**
   * Lets partitions go: nothing new of them is taken up, and what is in hand is stored. What waits still stays in the log and in the
   * timers' rows, for the next owner.
   *
   * @returns the claims as the last commit left them
   */
  async release(partitions: readonly number[]): Promise<PartitionClaim[]> {
    const leaving = partitions.flatMap((partition) => this.#mailboxes.get(partition) ?? []);
    // Their readers end in their own time, which is long where the broker does not answer; nothing more comes of them.
    for (const mailbox of leaving) this.#discard(mailbox);
    await this.#inFlight.catch(() => {});
    const ours = leaving.filter((mailbox) => this.isOwned(mailbox.claim));
    if (ours.length > 0) failPoint('partitions.let-go');
    for (const { claim } of ours) this.#forget(claim.partition);
    return ours.map((mailbox) => mailbox.claim);
  }

  /** Drops partitions at once, without a commit: another host may own them by now. */
  drop(partitions: readonly number[], why: string): void {
    if (partitions.length > 0) this.#giveUp(partitions, new Error(why));
  }

  /** Applies what is waiting, then does nothing any more. */
  async stop(): Promise<void> {
    await Promise.all(this.mailboxes.map((mailbox) => mailbox.stopReading())); // no fail point: stops
    if (this.#deps.outbox.hasDone) this.flushRows();
    while (!this.#aborted && (this.#running !== null || this.#hasWork())) {
      this.kick();
      await this.#running; // no fail point: waits
    }
    this.#stopped = true;
  }

  /** Stores nothing any more, not even what is in hand: a database that is away would keep the loop trying for ever. */
  abort(why: string): void {
    this.#stopped = true;
    this.#aborted = true;
    this.#store.abort();
    this.drop(this.partitions, why);
  }

  #hasWork(): boolean {
    if (this.#flushRows) return true;
    for (const mailbox of this.#mailboxes.values()) if (mailbox.waiting > 0) return true;
    return false;
  }

  async #run(): Promise<void> {
    while (this.#hasWork()) {
      workMarks.mark('commands');
      this.#isFlushing = this.#flushRows;
      this.#flushRows = false;
      const batch = this.#dequeueBatch().map((entry) => parseEntry(entry, this.#deps.check));
      this.#noteRefused(batch);
      this.#inFlight = this.#commit(batch);
      await this.#inFlight;
      failPoint('commit.told');
    }
  }

  #dequeueBatch(): Entry[] {
    this.#rotation += 1;
    const batch = dequeueRoundRobin(this.mailboxes, { first: this.#rotation, most: MAX_BATCH });
    if (batch.length > 0) this.#deps.metrics.observe('commitCommands', {}, batch.length);
    return batch;
  }

  /** A process that may publish commands can send any number of them, so what is said of them is bounded. */
  #noteRefused(batch: readonly Parsed[]): void {
    const refused = batch.filter(({ isRefused }) => isRefused);
    const [first] = refused;
    if (first === undefined) return;
    this.#deps.metrics.add('commandsRefused', {}, refused.length);
    this.#refused += refused.length;
    const nowMs = performance.now();
    if (nowMs - this.#refusalsLoggedAtMs < REFUSALS_LOGGED_EVERY_MS) return;
    const fields = { count: this.#refused, command_id: nameOf(first.entry), partition: first.entry.claim.partition };
    this.#deps.log.error(fields, 'commands without a valid tag were refused: a process without HOUSE_SECRET, or of an earlier release, has sent them');
    this.#refused = 0;
    this.#refusalsLoggedAtMs = nowMs;
  }

  /** Commits a batch whatever it takes: repeats are filtered, a culprit is isolated, an absent database is waited for. */
  async #commit(batch: Parsed[]): Promise<void> {
    this.#leaveToNewer(batch);
    const input = await this.#inputOf(batch).catch((error: unknown) => ({ error })); // no fail point: reads
    const outcome = 'error' in input ? ({ kind: 'unreadable', error: input.error } as const) : await this.#apply(batch, input); // no fail point: inside
    if (outcome.kind === 'committed') return;
    if (batch.length > 1) {
      // One of them can't be stored, or what it needs can't be read: halve until it stands alone, so that it harms nobody else.
      const middle = Math.ceil(batch.length / 2);
      await this.#commit(batch.slice(0, middle)); // no fail point: inside (2)
      await this.#commit(batch.slice(middle));
      return;
    }
    const [failed] = batch;
    if (failed === undefined) throw outcome.error;
    this.#deps.log.error({ err: outcome.error, command_id: nameOf(failed.entry), session_id: failed.command?.sessionId }, 'a command could not be stored');
    const deadLettered = 'error' in input ? outcome : await this.#execute(planDeadLetter(failed, outcome.error, input)); // no fail point: inside
    // Not even the dead letter can be stored: to go on would lose the command in silence.
    if (deadLettered.kind !== 'committed') this.#giveUp([failed.entry.claim.partition], deadLettered.error);
  }

  async #apply(batch: readonly Parsed[], input: PlanInput): Promise<Outcome> {
    const repeats: Repeats = new Map();
    for (;;) {
      workMarks.mark('commands');
      const outcome = await this.#execute(planBatch(batch, repeats, input)); // no fail point: inside
      // Each round finds at least one command that was applied before, so this ends.
      if (outcome.kind !== 'repeated' || !(await this.#store.findRepeats(batch, repeats))) return outcome; // no fail point: reads
    }
  }

  /**
   * A command of a newer version is for a newer host: its partition is given up, and taken again after a while if no such host has come.
   * To bury it would lose it.
   */
  #leaveToNewer(batch: readonly Parsed[]): void {
    for (const { entry, isNewer } of batch) {
      if (isNewer && this.isOwned(entry.claim)) this.#giveUp([entry.claim.partition], new Error(`${nameOf(entry)} is a command of a newer version`));
    }
  }

  async #inputOf(batch: readonly Parsed[]): Promise<PlanInput> {
    const states = await this.#loadStates(batch); // no fail point: reads (2)
    return { states, transitionInputs: await this.#transitionInputs(batch, states), isOwned: this.isOwned, log: this.#deps.log };
  }

  async #loadStates(batch: readonly Parsed[]): Promise<States> {
    for (;;) {
      // A partition that is given up below leaves the batch, so this ends.
      const ids = batch.flatMap(({ entry, command }) => (command === null || !this.isOwned(entry.claim) ? [] : [command.sessionId]));
      try {
        return await this.#store.retryWhileTransient(() => this.#deps.snapshots.load(ids)); // no fail point: reads
      } catch (error) {
        // Its snapshots are of machines that this version does not know: a newer version has to go on with it.
        if (!(error instanceof SwitchyardError) || typeof error.details.partition !== 'number') throw error;
        this.#giveUp([error.details.partition], error);
      }
    }
  }

  async #transitionInputs(batch: readonly Parsed[], states: States): Promise<TransitionInputs> {
    const greetings = new Map<string, string | null>();
    for (const { command } of batch) {
      if (command?.type !== 'session.create' || greetings.has(command.bundleHash)) continue;
      greetings.set(command.bundleHash, await this.#greetingOf(command.bundleHash)); // no fail point: reads
    }
    const commands = batch.flatMap(({ command }) => (command === null ? [] : [command]));
    const about = await this.#store.retryWhileTransient(() => readRunFacts(this.#deps.runFacts, commands, states)); // no fail point: reads
    return {
      atMs: this.#deps.clock.nowMs(),
      coalesceMs: this.#deps.settings.coalesceMs,
      turnTimeoutMs: this.#deps.settings.turnTimeoutMs,
      greetingOf: (bundleHash) => greetings.get(bundleHash) ?? null,
      newId: () => ulid(),
      newTraceId: traceId,
      chance: Math.random,
      ...about,
    };
  }

  /** A configuration that can't be read costs the session its greeting, not its life. */
  async #greetingOf(bundleHash: string): Promise<string | null> {
    try {
      return await this.#store.retryWhileTransient(() => this.#deps.greetingOf(bundleHash)); // no fail point: reads
    } catch (error) {
      this.#deps.log.error({ err: error, bundle: bundleHash }, 'a configuration could not be read');
      return null;
    }
  }

  /** Stores a plan, together with what is due for deletion, and sends out what follows from it. */
  async #execute(plan: CommitPlan): Promise<Outcome> {
    if (this.#isFlushing) this.#addDone(plan);
    plan.leaveOut(this.isOwned);
    if (plan.partitions.size === 0) return { kind: 'committed', owned: new Set() };
    const outcome = await this.#store.store(plan); // no fail point: inside
    workMarks.mark('commands');
    if (outcome.kind === 'committed') this.#settle(plan, outcome.owned);
    return outcome;
  }

  /** Most effects are over before that, and their rows go with their ends: on their own they would bring their partitions into commits that need not touch them. */
  #addDone(plan: CommitPlan): void {
    this.#deps.outbox.addDone(plan, (partition) => {
      const claim = this.#mailboxes.get(partition)?.claim;
      if (claim !== undefined) plan.touch(claim);
      return claim !== undefined;
    });
  }

  /** The commit stands: what is in memory follows it, and the world is told. */
  #settle(plan: CommitPlan, owned: ReadonlySet<number>): void {
    // What was let go, or lost and won anew, while the commit was on its way: its memory is not ours to write any more.
    const stillOwned = new Set<number>();
    const lost: number[] = [];
    for (const [partition, { claim, cursor, cursorFingerprint }] of plan.partitions) {
      if (!this.isOwned(claim)) continue;
      if (!owned.has(partition)) {
        lost.push(partition);
        continue;
      }
      stillOwned.add(partition);
      claim.commitNo += 1;
      claim.cursor = cursor;
      claim.cursorFingerprint = cursorFingerprint;
    }
    this.#deps.snapshots.retain([...plan.sessions.values()].filter((state) => stillOwned.has(state.partition)));
    for (const timer of plan.timers.values()) {
      if (!stillOwned.has(timer.partition)) continue;
      if (timer.dueAtMs === null) this.#deps.timers.disarm(timer.key);
      else this.#deps.timers.arm(timer);
    }
    // Before the effects that are rendered from them.
    this.#deps.histories.release(plan, stillOwned);
    this.#deps.outbox.release(plan, stillOwned);
    reportCommit(plan, stillOwned, this.#deps);
    if (lost.length > 0) this.#deps.metrics.add('fences', {}, lost.length);
    if (lost.length > 0) this.#giveUp(lost, new Error('another host owns the partition'));
  }

  #giveUp(partitions: readonly number[], error: unknown): void {
    this.#deps.log.error({ err: error, partitions }, 'partitions are given up');
    for (const partition of partitions) {
      const mailbox = this.#mailboxes.get(partition);
      this.#forget(partition);
      if (mailbox !== undefined) this.#discard(mailbox);
    }
  }

  /** Not awaited: the reader's handler may itself be waiting for this loop to make room. */
  #discard(mailbox: Mailbox): void {
    const { partition } = mailbox.claim;
    mailbox.discard().catch((cause: unknown) => this.#deps.log.warn({ err: cause, partition }, 'a reader did not stop'));
  }

  #forget(partition: number): void {
    this.#mailboxes.delete(partition);
    this.#deps.snapshots.forget(partition);
    this.#deps.histories.forget(partition);
    this.#deps.timers.forget(partition);
    this.#deps.outbox.forget(partition);
  }
}
