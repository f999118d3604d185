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
import { type Entry, type Mailbox, takeInTurn } from './mailbox.ts';
import type { Outbox } from './outbox.ts';
import type { PartitionClaim } from './ownership.ts';
import { nameOf, type Parsed, type PlanInput, parseEntry, planBatch, planBurial, type Repeats, type States } from './plan-batch.ts';
import { tellOf } from './report-commit.ts';
import { type RunFactsReader, readRunFacts } from './run-facts.ts';
import type { Snapshots } from './snapshots.ts';
import type { Timers } from './timers.ts';
import type { Surroundings } from './transition-inputs.ts';

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
  #inHand: Promise<void> = Promise.resolve();
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
  #round = 0;

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
  isHeld = (claim: PartitionClaim): boolean => this.#mailboxes.get(claim.partition)?.claim === claim;

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
  async letGo(partitions: readonly number[]): Promise<PartitionClaim[]> {
    const leaving = partitions.flatMap((partition) => this.#mailboxes.get(partition) ?? []);
    // Their readers end in their own time, which is long where the broker does not answer; nothing more comes of them.
    for (const mailbox of leaving) this.#abandon(mailbox);
    await this.#inHand.catch(() => {});
    const ours = leaving.filter((mailbox) => this.isHeld(mailbox.claim));
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
      const batch = this.#takeBatch().map((entry) => parseEntry(entry, this.#deps.check));
      this.#noteRefused(batch);
      this.#inHand = this.#commit(batch);
      await this.#inHand;
      failPoint('commit.told');
    }
  }

  #takeBatch(): Entry[] {
    this.#round += 1;
    const batch = takeInTurn(this.mailboxes, { first: this.#round, most: MAX_BATCH });
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
    const [culprit] = batch;
    if (culprit === undefined) throw outcome.error;
    this.#deps.log.error({ err: outcome.error, command_id: nameOf(culprit.entry), session_id: culprit.command?.sessionId }, 'a command could not be stored');
    const burial = 'error' in input ? outcome : await this.#execute(planBurial(culprit, outcome.error, input)); // no fail point: inside
    // Not even the dead letter can be stored: to go on would lose the command in silence.
    if (burial.kind !== 'committed') this.#giveUp([culprit.entry.claim.partition], burial.error);
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
      if (isNewer && this.isHeld(entry.claim)) this.#giveUp([entry.claim.partition], new Error(`${nameOf(entry)} is a command of a newer version`));
    }
  }

  async #inputOf(batch: readonly Parsed[]): Promise<PlanInput> {
    const states = await this.#loadStates(batch); // no fail point: reads (2)
    return { states, surroundings: await this.#surroundings(batch, states), isHeld: this.isHeld, log: this.#deps.log };
  }

  async #loadStates(batch: readonly Parsed[]): Promise<States> {
    for (;;) {
      // A partition that is given up below leaves the batch, so this ends.
      const ids = batch.flatMap(({ entry, command }) => (command === null || !this.isHeld(entry.claim) ? [] : [command.sessionId]));
      try {
        return await this.#store.patiently(() => this.#deps.snapshots.load(ids)); // no fail point: reads
      } catch (error) {
        // Its snapshots are of machines that this version does not know: a newer version has to go on with it.
        if (!(error instanceof SwitchyardError) || typeof error.details.partition !== 'number') throw error;
        this.#giveUp([error.details.partition], error);
      }
    }
  }

  async #surroundings(batch: readonly Parsed[], states: States): Promise<Surroundings> {
    const greetings = new Map<string, string | null>();
    for (const { command } of batch) {
      if (command?.type !== 'session.create' || greetings.has(command.bundleHash)) continue;
      greetings.set(command.bundleHash, await this.#greetingOf(command.bundleHash)); // no fail point: reads
    }
    const commands = batch.flatMap(({ command }) => (command === null ? [] : [command]));
    const about = await this.#store.patiently(() => readRunFacts(this.#deps.runFacts, commands, states)); // no fail point: reads
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
      return await this.#store.patiently(() => this.#deps.greetingOf(bundleHash)); // no fail point: reads
    } catch (error) {
      this.#deps.log.error({ err: error, bundle: bundleHash }, 'a configuration could not be read');
      return null;
    }
  }

  /** Stores a plan, together with what is due for deletion, and sends out what follows from it. */
  async #execute(plan: CommitPlan): Promise<Outcome> {
    if (this.#isFlushing) this.#addDone(plan);
    plan.leaveOut(this.isHeld);
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
    const held = new Set<number>();
    const lost: number[] = [];
    for (const [partition, { claim, cursor, cursorMark }] of plan.partitions) {
      if (!this.isHeld(claim)) continue;
      if (!owned.has(partition)) {
        lost.push(partition);
        continue;
      }
      held.add(partition);
      claim.commitNo += 1;
      claim.cursor = cursor;
      claim.cursorMark = cursorMark;
    }
    this.#deps.snapshots.keep([...plan.sessions.values()].filter((state) => held.has(state.partition)));
    for (const timer of plan.timers.values()) {
      if (!held.has(timer.partition)) continue;
      if (timer.dueAtMs === null) this.#deps.timers.disarm(timer.key);
      else this.#deps.timers.arm(timer);
    }
    // Before the effects that are rendered from them.
    this.#deps.histories.release(plan, held);
    this.#deps.outbox.release(plan, held);
    tellOf(plan, held, this.#deps);
    if (lost.length > 0) this.#deps.metrics.add('fences', {}, lost.length);
    if (lost.length > 0) this.#giveUp(lost, new Error('another host owns the partition'));
  }

  #giveUp(partitions: readonly number[], error: unknown): void {
    this.#deps.log.error({ err: error, partitions }, 'partitions are given up');
    for (const partition of partitions) {
      const mailbox = this.#mailboxes.get(partition);
      this.#forget(partition);
      if (mailbox !== undefined) this.#abandon(mailbox);
    }
  }

  /** Not awaited: the reader's handler may itself be waiting for this loop to make room. */
  #abandon(mailbox: Mailbox): void {
    const { partition } = mailbox.claim;
    mailbox.abandon().catch((cause: unknown) => this.#deps.log.warn({ err: cause, partition }, 'a reader did not stop'));
  }

  #forget(partition: number): void {
    this.#mailboxes.delete(partition);
    this.#deps.snapshots.forget(partition);
    this.#deps.histories.forget(partition);
    this.#deps.timers.forget(partition);
    this.#deps.outbox.forget(partition);
  }
}
