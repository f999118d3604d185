import type { SessionCommand } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { traceId, ulid } from '#shared/ids.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import type { ActorKinds } from '../../kinds/actor-kind.ts';
import type { PartitionClaim } from '../../store/port/partition-store.ts';
import type { RuntimeStore } from '../../store/runtime-store.ts';
import type { Timers } from '../partitions/timers.ts';
import type { AgentStateCache } from '../publish/agent-state-cache.ts';
import type { Histories } from '../publish/histories.ts';
import type { Outbox } from '../publish/outbox.ts';
import type { TurnRowCache } from '../publish/turn-row-cache.ts';
import type { CommandCheck } from './command-check.ts';
import type { CommandPlan } from './command-plan.ts';
import type { CommitPlan } from './commit-plan.ts';
import type { EndedWork } from './commit-rows.ts';
import { CommitSender, type Outcome } from './commit-sender.ts';
import { dequeueRoundRobin, type Entry, type Mailbox } from './mailbox.ts';
import { nameOf, type Parsed, type PlanInput, parseEntry, partsOf, planBatch, planDeadLetter, type Repeats, type States } from './plan-batch.ts';
import { reportCommit } from './report-commit.ts';
import type { Snapshots } from './snapshots.ts';
import type { TransitionInputs } from './transition-inputs.ts';

/** Per statement; larger batches cost more than they save. */
const MAX_BATCH = 128;
/** Bounds the log lines: refused commands may come by the thousand each second. */
const REFUSALS_LOGGED_EVERY_MS = 10_000;

export interface CommitLoopDeps {
  store: Pick<RuntimeStore, 'commits' | 'partitions'>;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  snapshots: Snapshots;
  histories: Histories;
  turnRows: TurnRowCache;
  agentStates: AgentStateCache;
  timers: Timers;
  outbox: Outbox;
  check: CommandCheck;
  kinds: ActorKinds<CommandPlan>;
  /** What the kinds need to know for a batch's transitions. Only transient errors are retried. */
  readInputs(commands: readonly SessionCommand[], states: States): Promise<object>;
  /** Called for each committed end of a turn or run. Must not block. */
  onEnded?(ended: EndedWork, epoch: number | undefined): void;
}

/**
 * Applies commands and commits their rows for all partitions of this host, one statement at a time. Group commit: the next batch collects while one
 * is in flight, without timers. Transitions run on committed state only.
 */
export class CommitLoop {
  readonly #deps: CommitLoopDeps;
  readonly #sender: CommitSender;
  readonly #mailboxes = new Map<number, Mailbox>();
  #running: Promise<void> | null = null;
  #inFlight: Promise<void> = Promise.resolve();
  #flushRows = false;
  /** Whether the current batch marks published effects. */
  #isFlushing = false;
  /** Keys of timers that commits of the current batch have disarmed, or armed anew. */
  readonly #changedTimers = new Set<string>();
  #stopped = false;
  /** After `abort`: no retries. */
  #aborted = false;
  /** Refused commands since the last log line, and its time. */
  #refused = 0;
  #refusalsLoggedAtMs = Number.NEGATIVE_INFINITY;
  /** Index of the next batch's first mailbox, so that no partition starves. */
  #rotation = 0;

  constructor(deps: CommitLoopDeps) {
    this.#deps = deps;
    this.#sender = new CommitSender(deps);
  }

  own(mailbox: Mailbox): void {
    // Commands of the claim before may have had it read.
    this.#deps.agentStates.forget(mailbox.claim.partition);
    this.#mailboxes.set(mailbox.claim.partition, mailbox);
  }

  get mailboxes(): Mailbox[] {
    return [...this.#mailboxes.values()];
  }

  get partitions(): number[] {
    return [...this.#mailboxes.keys()];
  }

  isOwned = (claim: PartitionClaim): boolean => this.#mailboxes.get(claim.partition)?.claim === claim;

  mailboxOf(partition: number): Mailbox | undefined {
    return this.#mailboxes.get(partition);
  }

  /** Starts the loop if there is work; does not wait. */
  kick = (): void => {
    if (this.#running !== null || this.#stopped) return;
    this.#running = this.#run()
      // Unexpected. Going on could build on state that was never stored: gives all partitions up.
      .catch((error: unknown) => this.#giveUp([...this.#mailboxes.keys()], error))
      .finally(() => {
        this.#running = null;
        if (this.#hasWork()) this.kick();
      });
  };

  /** Marks published effects even without a command. */
  flushRows(): void {
    this.#flushRows = true;
    this.kick();
  }

  /**
   * Releases partitions after the commit in flight, and once its calls are dispatched. Waiting entries stay in the log and the timers' rows for the next owner.
   *
   * @returns the claims as the last commit left them
   */
  async release(partitions: readonly number[]): Promise<PartitionClaim[]> {
    const leaving = partitions.flatMap((partition) => this.#mailboxes.get(partition) ?? []);
    // Not awaited: slow while the broker does not reply, and no more entries come.
    for (const mailbox of leaving) this.#discard(mailbox);
    await this.#inFlight.catch(() => {}); // no fail point: waits
    if (leaving.length > 0) {
      await this.#deps.outbox.handOver(partitions); // no fail point: waits
      // Begun meanwhile, it may mark effects of these.
      await this.#inFlight.catch(() => {});
    }
    const ours = leaving.filter((mailbox) => this.isOwned(mailbox.claim));
    if (ours.length > 0) failPoint('partitions.let-go');
    for (const { claim } of ours) this.#forget(claim.partition);
    return ours.map((mailbox) => mailbox.claim);
  }

  /** Without a last commit: another host may own them. */
  drop(partitions: readonly number[], why: string): void {
    if (partitions.length > 0) this.#giveUp(partitions, new Error(why));
  }

  /** Applies all waiting entries, then stops. */
  async stop(): Promise<void> {
    await Promise.all(this.mailboxes.map((mailbox) => mailbox.stopReading())); // no fail point: stops
    if (this.#deps.outbox.hasDone) this.flushRows();
    while (!this.#aborted && (this.#running !== null || this.#hasWork())) {
      this.kick();
      await this.#running; // no fail point: waits
    }
    this.#stopped = true;
  }

  /** Abandons even the batch in flight: without a database it would retry for ever. */
  abort(why: string): void {
    this.#stopped = true;
    this.#aborted = true;
    this.#sender.abort();
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
      this.#inFlight = this.#commitParts(batch);
      await this.#inFlight;
      failPoint('commit.announced');
    }
  }

  #dequeueBatch(): Entry[] {
    this.#rotation += 1;
    const batch = dequeueRoundRobin(this.mailboxes, { first: this.#rotation, most: MAX_BATCH });
    if (batch.length > 0) this.#deps.metrics.observe('commitCommands', {}, batch.length);
    return batch;
  }

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

  async #commitParts(batch: readonly Parsed[]): Promise<void> {
    this.#changedTimers.clear();
    for (const part of partsOf(batch)) await this.#commit(part); // no fail point: inside
  }

  /** Filters repeats, isolates an unprocessable command, waits for an unavailable database. */
  async #commit(entries: readonly Parsed[]): Promise<void> {
    // Dequeued with what has changed their timers, so that the mailbox could not drop them.
    const batch = entries.filter(({ entry }) => entry.kind !== 'timer' || !this.#changedTimers.has(entry.key));
    this.#leaveToNewer(batch);
    const input = await this.#inputOf(batch).catch((error: unknown) => ({ error })); // no fail point: reads
    const outcome = 'error' in input ? ({ kind: 'unreadable', error: input.error } as const) : await this.#apply(batch, input); // no fail point: inside
    if (outcome.kind === 'committed') return;
    if (batch.length > 1) {
      // Bisects until the command that can't be stored, or that has unreadable inputs, is alone.
      const middle = Math.ceil(batch.length / 2);
      await this.#commit(batch.slice(0, middle)); // no fail point: inside (2)
      await this.#commit(batch.slice(middle));
      return;
    }
    const [failed] = batch;
    if (failed === undefined) throw outcome.error;
    this.#deps.log.error({ err: outcome.error, command_id: nameOf(failed.entry), session_id: failed.command?.sessionId }, 'a command could not be stored');
    const deadLettered = 'error' in input ? outcome : await this.#execute(planDeadLetter(failed, outcome.error, input)); // no fail point: inside
    // Going on without even a dead letter would lose the command silently.
    if (deadLettered.kind !== 'committed') this.#giveUp([failed.entry.claim.partition], deadLettered.error);
  }

  async #apply(batch: readonly Parsed[], input: PlanInput): Promise<Outcome> {
    const repeats: Repeats = new Map();
    for (;;) {
      workMarks.mark('commands');
      const outcome = await this.#execute(planBatch(batch, repeats, input)); // no fail point: inside
      // Ends: each iteration finds at least one more repeat.
      if (outcome.kind !== 'repeated' || !(await this.#sender.findRepeats(batch, repeats))) return outcome; // no fail point: reads
    }
  }

  /** Only a newer host can apply a newer command: gives its partition up, to be acquired again if there is none. A dead letter would lose it. */
  #leaveToNewer(batch: readonly Parsed[]): void {
    for (const { entry, isNewer } of batch) {
      if (isNewer && this.isOwned(entry.claim)) this.#giveUp([entry.claim.partition], new Error(`${nameOf(entry)} is a command of a newer version`));
    }
  }

  async #inputOf(batch: readonly Parsed[]): Promise<PlanInput> {
    const { kinds, log } = this.#deps;
    const states = await this.#loadStates(batch); // no fail point: reads (2)
    return { kinds, states, transitionInputs: await this.#transitionInputs(batch, states), isOwned: this.isOwned, log };
  }

  async #loadStates(batch: readonly Parsed[]): Promise<States> {
    for (;;) {
      // Ends: a partition given up below leaves the batch.
      const ids = batch.flatMap(({ entry, command }) => (command === null || !this.isOwned(entry.claim) ? [] : [command.sessionId]));
      try {
        return await this.#sender.retryWhileTransient(() => this.#deps.snapshots.load(ids)); // no fail point: reads
      } catch (error) {
        // Unknown machine versions: a newer host has to own it.
        if (!(error instanceof SwitchyardError) || typeof error.details.partition !== 'number') throw error;
        this.#giveUp([error.details.partition], error);
      }
    }
  }

  async #transitionInputs(batch: readonly Parsed[], states: States): Promise<TransitionInputs> {
    const commands = batch.flatMap(({ command }) => (command === null ? [] : [command]));
    const inputs = await this.#sender.retryWhileTransient(() => this.#deps.readInputs(commands, states)); // no fail point: reads
    return { atMs: this.#deps.clock.nowMs(), newId: ulid, newTraceId: traceId, chance: Math.random, ...inputs };
  }

  async #execute(plan: CommitPlan): Promise<Outcome> {
    if (this.#isFlushing) this.#addDone(plan);
    plan.leaveOut(this.isOwned);
    if (plan.partitions.size === 0) return { kind: 'committed', owned: new Set() };
    const outcome = await this.#sender.send(plan); // no fail point: inside
    workMarks.mark('commands');
    if (outcome.kind === 'committed') this.#settle(plan, outcome.owned);
    return outcome;
  }

  /** Only when flushing: most rows go with their effect's end, and their partitions would join commits for nothing. */
  #addDone(plan: CommitPlan): void {
    this.#deps.outbox.addDone(plan, (partition) => {
      const claim = this.#mailboxes.get(partition)?.claim;
      if (claim !== undefined) plan.touch(claim);
      return claim !== undefined;
    });
  }

  /** Updates the state in memory after a commit, then publishes. */
  #settle(plan: CommitPlan, owned: ReadonlySet<number>): void {
    // Skips partitions released, or lost and acquired again, during the commit: their state in memory is not of this claim.
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
      this.#changedTimers.add(timer.key);
      this.#mailboxes.get(timer.partition)?.disarm(timer.key);
      if (timer.dueAtMs === null) this.#deps.timers.disarm(timer.key);
      else this.#deps.timers.arm(timer);
    }
    // Before the effects, which are rendered from them.
    this.#deps.histories.release(plan, stillOwned);
    this.#deps.turnRows.release(plan, stillOwned);
    this.#deps.agentStates.release(plan, stillOwned);
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

  /** Not awaited: the reader's handler may wait for this loop to free capacity. */
  #discard(mailbox: Mailbox): void {
    const { partition } = mailbox.claim;
    mailbox.discard().catch((cause: unknown) => this.#deps.log.warn({ err: cause, partition }, 'a reader did not stop'));
  }

  #forget(partition: number): void {
    this.#mailboxes.delete(partition);
    this.#deps.snapshots.forget(partition);
    this.#deps.histories.forget(partition);
    this.#deps.turnRows.forget(partition);
    this.#deps.agentStates.forget(partition);
    this.#deps.timers.forget(partition);
    this.#deps.outbox.forget(partition);
  }
}
