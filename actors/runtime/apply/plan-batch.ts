import type { CommandRefusal, CommandReply, SessionCommand } from '#bus/messages/session.ts';
import { COMMAND_VERSION, changesLog, isTransientRefusal, sessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { fingerprintOf } from '#bus/position-fingerprint.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';
import type { ActorKinds } from '../../kinds/actor-kind.ts';
import type { PartitionClaim } from '../../store/port/partition-store.ts';
import { applyCommand, failActors } from './apply-command.ts';
import type { CommandCheck } from './command-check.ts';
import type { CommandPlan } from './command-plan.ts';
import { CommitPlan } from './commit-plan.ts';
import type { Entry } from './mailbox.ts';
import type { SessionState } from './session-state.ts';
import type { TransitionInputs } from './transition-inputs.ts';

/** Of a dead letter's reason. */
const MAX_REASON_CHARACTERS = 500;
/** Reply to the sender; log and dead letter have the reason. */
const NOT_APPLIED: CommandReply = { ok: false, code: 'internal', message: 'the command could not be applied' };

/** An entry and its command; null when this version can't read it. */
export interface Parsed {
  entry: Entry;
  command: SessionCommand | null;
  body: string;
  /** Its `v` is newer than this program. */
  isNewer: boolean;
  /** Skipped without a dead letter: its sender may not send it. */
  isRefused: boolean;
}

export type States = ReadonlyMap<string, SessionState | null>;

/** Replies of commands applied in earlier commits, by `processedKeyOf`. */
export type Repeats = Map<string, CommandReply | null>;

export interface PlanInput {
  kinds: ActorKinds<CommandPlan>;
  /** Before the batch; null for sessions that do not exist. */
  states: States;
  transitionInputs: TransitionInputs;
  isOwned(claim: PartitionClaim): boolean;
  log: Log;
}

/** The parts of a batch that have commits of their own, in order: a command that changes stored events is alone. */
export function partsOf(batch: readonly Parsed[]): Parsed[][] {
  const parts: Parsed[][] = [];
  let isAlone = true;
  for (const parsed of batch) {
    const isChange = parsed.command !== null && changesLog(parsed.command);
    if (isAlone || isChange) parts.push([parsed]);
    else parts.at(-1)?.push(parsed);
    isAlone = isChange;
  }
  return parts.length === 0 ? [[]] : parts;
}

/** Timers and lost starts come from our own rows, so only commands of the log are checked. */
export function parseEntry(entry: Entry, check: CommandCheck): Parsed {
  const nothing = { entry, command: null, isNewer: false, isRefused: false };
  if (entry.kind === 'skip' || entry.kind === 'restart') return { ...nothing, body: '' };
  const body = entry.kind === 'command' ? entry.stored.body : entry.command;
  const value = jsonIn(body);
  if (entry.kind === 'command' && !check.accepts(entry.stored, typeOf(value))) return { ...nothing, body, isRefused: true };
  const parsed = sessionCommand.safeParse(value);
  const command = parsed.success && isFor(parsed.data, entry.claim.partition) ? parsed.data : null;
  return { entry, command, isNewer: isNewer(value), isRefused: false, body };
}

function typeOf(value: unknown): string | null {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string' ? value.type : null;
}

/** An id is one token of a subject. */
const ID = /^[A-Za-z0-9_-]{1,128}$/;

/** Other partitions have other owners; an invalid id could not even be queried. */
function isFor(command: SessionCommand, partition: number): boolean {
  if (!ID.test(command.sessionId) || partitionOf(command.sessionId) !== partition) return false;
  return command.type !== 'run.start' || ID.test(command.runId);
}

function isNewer(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'v' in value && typeof value.v === 'number' && value.v > COMMAND_VERSION;
}

export function processedKeyOf({ sessionId, commandId }: { sessionId: string; commandId: string }): string {
  return `${sessionId} ${commandId}`;
}

/**
 * The rows of a batch, each command applied to the state before it. Entries of lost partitions are skipped, and timers that a command before them has
 * disarmed, or armed anew.
 */
export function planBatch(batch: readonly Parsed[], repeats: Repeats, input: PlanInput): CommitPlan {
  const plan = new CommitPlan();
  for (const parsed of batch) {
    const { entry, command, isRefused } = parsed;
    if (entry.kind === 'timer' && plan.timers.has(entry.key)) continue;
    if (!passEntry(plan, entry, input) || isRefused || entry.kind === 'skip' || entry.kind === 'restart') continue;
    if (command === null) {
      addDeadLetter(plan, parsed, 'not a command for a session of this partition that this version knows');
      continue;
    }
    const key = processedKeyOf(command);
    const stored = repeats.has(key) ? { reply: repeats.get(key) ?? null } : undefined;
    const earlier = plan.processed.get(key) ?? stored;
    const refusal = earlier === undefined ? null : transientRefusalIn(earlier);
    if (refusal !== null && isReadAgain(entry, refusal)) continue;
    if (earlier === undefined || refusal !== null) apply(plan, parsed, command, { ...input, isReplaced: stored !== undefined });
    else addReply(plan, entry.claim.partition, command, earlier.reply, true);
  }
  return plan;
}

function transientRefusalIn({ reply }: { reply: CommandReply | null }): CommandRefusal | null {
  return reply !== null && isTransientRefusal(reply) ? reply : null;
}

/**
 * The copy that was refused, or an earlier one, from a log that is read again. Its sender has the refusal or reads it; published, it could answer a request
 * whose own copy is applied next. Both are compared: a new log counts from 1, and the clocks of two brokers differ.
 */
function isReadAgain(entry: Entry, { sequence, storedAtMs }: CommandRefusal): boolean {
  if (entry.kind !== 'command' || sequence === undefined || storedAtMs === undefined) return false;
  return entry.stored.sequence <= sequence && entry.stored.storedAtMs <= storedAtMs;
}

/** For a command that can't be stored: a dead letter, and the failure of its turn or run. */
export function planDeadLetter(failed: Parsed, error: unknown, input: PlanInput): CommitPlan {
  const plan = new CommitPlan();
  const { entry, command } = failed;
  if (!passEntry(plan, entry, input) || failed.isRefused) return plan;
  addDeadLetter(plan, failed, reasonOf(error));
  if (command === null) return plan;
  failActorOf(plan, entry.claim.partition, command, input);
  addReply(plan, entry.claim.partition, command, NOT_APPLIED, false);
  return plan;
}

/** Moves the cursor past the entry or deletes its timer, whatever its outcome. False when the partition is lost. */
function passEntry(plan: CommitPlan, entry: Entry, { isOwned }: PlanInput): boolean {
  const { claim } = entry;
  if (!isOwned(claim)) return false;
  plan.touch(claim);
  switch (entry.kind) {
    case 'command':
      plan.advance(claim, entry.stored.sequence, fingerprintOf(entry.stored));
      break;
    case 'skip':
      plan.advance(claim, entry.toSequence, entry.fingerprint);
      break;
    case 'restart':
      plan.restart(claim);
      break;
    case 'timer':
      plan.disarmTimer(claim.partition, entry.key);
      break;
    case 'start':
      break;
  }
  return true;
}

function apply(plan: CommitPlan, parsed: Parsed, command: SessionCommand, input: PlanInput & { isReplaced: boolean }): void {
  const { partition } = parsed.entry.claim;
  const { sessionId, commandId } = command;
  let reply: CommandReply | null;
  try {
    reply = withPosition(applyCommand(scopeOf(plan, partition, command, input)), parsed.entry);
  } catch (error) {
    input.log.error(
      { err: error, session_id: sessionId, command_id: commandId, trace_id: traceIdIn(command.traceparent), command: command.type },
      'a command could not be applied',
    );
    addDeadLetter(plan, parsed, reasonOf(error));
    failActorOf(plan, partition, command, input);
    // Final, unlike a transient refusal: the dead letter has the command, and its replay and a repeat would both be applied.
    reply = NOT_APPLIED;
  }
  plan.processed.set(processedKeyOf(command), { partition, sessionId, commandId, reply, isReplaced: input.isReplaced });
  addReply(plan, partition, command, reply, false);
}

function withPosition(reply: CommandReply | null, entry: Entry): CommandReply | null {
  if (entry.kind !== 'command' || reply === null || !isTransientRefusal(reply)) return reply;
  const { sequence, storedAtMs } = entry.stored;
  return { ...reply, sequence, storedAtMs };
}

function failActorOf(plan: CommitPlan, partition: number, command: SessionCommand, input: PlanInput): void {
  try {
    failActors(scopeOf(plan, partition, command, input));
  } catch (error) {
    input.log.error({ err: error, session_id: command.sessionId }, 'a turn or a run could not be ended as an error');
  }
}

function scopeOf(earlier: CommitPlan, partition: number, command: SessionCommand, { kinds, states, transitionInputs: inputs }: PlanInput) {
  const state = earlier.sessions.get(command.sessionId) ?? states.get(command.sessionId) ?? null;
  return { kinds, partition, state, command, inputs, earlier };
}

function addDeadLetter(plan: CommitPlan, { entry, body }: Parsed, reason: string): void {
  plan.deadLetters.push({ partition: entry.claim.partition, id: nameOf(entry), source: 'command', reason, body });
}

export function nameOf(entry: Entry): string {
  switch (entry.kind) {
    case 'command':
      return entry.stored.messageId;
    case 'timer':
      return entry.key;
    default:
      return entry.kind;
  }
}

function addReply(plan: CommitPlan, partition: number, command: SessionCommand, reply: CommandReply | null, repeat: boolean): void {
  if (command.answerTo === null || reply === null) return;
  plan.after.replies.push({ partition, gateway: command.answerTo, commandId: command.commandId, reply, repeat });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}`.slice(0, MAX_REASON_CHARACTERS) : 'unknown';
}
