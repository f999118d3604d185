import type { Answer, SessionCommand } from '#bus/messages/session.ts';
import { sessionCommand } from '#bus/messages/session.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { CommitPlan } from './commit-plan.ts';
import { applyCommand, failTurn, type Surroundings } from './interpret.ts';
import type { Entry } from './mailbox.ts';
import type { PartitionClaim } from './ownership.ts';
import type { SessionState } from './snapshots.ts';

/** Longest reason that a dead letter keeps. */
const MAX_REASON_CHARACTERS = 500;
/** What the sender of a command learns that could not be applied. The reason stands in the log and in the dead letter. */
const NOT_APPLIED: Answer = { ok: false, code: 'internal', message: 'the command could not be applied' };

/** A command taken apart; `command` is null when it is none that this version knows. */
export interface Parsed {
  entry: Entry;
  command: SessionCommand | null;
  body: string;
}

export type States = ReadonlyMap<string, SessionState | null>;

/** Answers of commands that were applied in earlier commits, by seen key. */
export type Repeats = Map<string, Answer | null>;

export interface PlanInput {
  /** States before the batch; null for sessions that do not exist. */
  states: States;
  surroundings: Surroundings;
  claimOf(partition: number): PartitionClaim | undefined;
  log: Log;
}

export function parseEntry(entry: Entry): Parsed {
  if (entry.kind === 'skip') return { entry, body: '', command: null };
  const body = entry.kind === 'timer' ? entry.command : entry.stored.body;
  try {
    const parsed = sessionCommand.safeParse(JSON.parse(body));
    return { entry, body, command: parsed.success ? parsed.data : null };
  } catch {
    return { entry, body, command: null };
  }
}

export function seenKeyOf({ sessionId, commandId }: { sessionId: string; commandId: string }): string {
  return `${sessionId} ${commandId}`;
}

/** The rows of a batch: each command on what the one before it left. Entries of partitions that are not ours any more are left out. */
export function planBatch(batch: readonly Parsed[], repeats: Repeats, input: PlanInput): CommitPlan {
  const plan = new CommitPlan();
  for (const parsed of batch) {
    const { entry, command } = parsed;
    if (!passEntry(plan, entry, input) || entry.kind === 'skip') continue;
    if (command === null) {
      bury(plan, parsed, 'not a command that this version knows');
      continue;
    }
    const key = seenKeyOf(command);
    const earlier = repeats.has(key) ? { answer: repeats.get(key) ?? null } : plan.seen.get(key);
    if (earlier === undefined) apply(plan, parsed, command, input);
    else sayAnswer(plan, entry.partition, command, earlier.answer, true);
  }
  return plan;
}

/** The rows for a command that can't be stored: a dead letter, and an end to the turn that may wait for it. */
export function planBurial(culprit: Parsed, error: unknown, input: PlanInput): CommitPlan {
  const plan = new CommitPlan();
  const { entry, command } = culprit;
  if (!passEntry(plan, entry, input)) return plan;
  bury(plan, culprit, reasonOf(error));
  if (command === null) return plan;
  failTurnOf(plan, entry.partition, command, input);
  sayAnswer(plan, entry.partition, command, NOT_APPLIED, false);
  return plan;
}

/** Moves the cursor past the entry, or takes its timer away, whatever becomes of it. False when its partition is not ours any more. */
function passEntry(plan: CommitPlan, entry: Entry, { claimOf }: PlanInput): boolean {
  const claim = claimOf(entry.partition);
  if (claim === undefined) return false;
  plan.touch(claim);
  if (entry.kind === 'timer') plan.disarmTimer(entry.partition, entry.key);
  else if (entry.kind === 'command') plan.advance(entry.partition, entry.stored.sequence, entry.stored.messageId);
  else plan.advance(entry.partition, entry.toSequence, null);
  return true;
}

function apply(plan: CommitPlan, parsed: Parsed, command: SessionCommand, input: PlanInput): void {
  const { partition } = parsed.entry;
  const { sessionId, commandId } = command;
  let answer: Answer | null;
  try {
    answer = applyCommand(plan, partition, stateOf(plan, sessionId, input), command, input.surroundings);
  } catch (error) {
    input.log.error({ err: error, session_id: sessionId, command: command.type }, 'a command could not be applied');
    bury(plan, parsed, reasonOf(error));
    failTurnOf(plan, partition, command, input);
    answer = NOT_APPLIED;
  }
  plan.seen.set(seenKeyOf(command), { partition, sessionId, commandId, answer });
  sayAnswer(plan, partition, command, answer, false);
}

function failTurnOf(plan: CommitPlan, partition: number, command: SessionCommand, input: PlanInput): void {
  const state = stateOf(plan, command.sessionId, input);
  if (state === null || state.turn === null) return;
  try {
    failTurn(plan, partition, state, command, input.surroundings);
  } catch (error) {
    input.log.error({ err: error, session_id: command.sessionId }, 'a turn could not be ended as an error');
  }
}

function stateOf(plan: CommitPlan, sessionId: string, { states }: PlanInput): SessionState | null {
  return plan.sessions.get(sessionId) ?? states.get(sessionId) ?? null;
}

function bury(plan: CommitPlan, { entry, body }: Parsed, reason: string): void {
  const id = nameOf(entry);
  // No text column takes the character, and a dead letter must never be refused itself.
  plan.deadLetters.push({ partition: entry.partition, id: withoutNul(id), reason: withoutNul(reason), body: withoutNul(body) });
}

/** What the command is known by: the message id, or the timer's key. */
export function nameOf(entry: Entry): string {
  if (entry.kind === 'skip') return '';
  return entry.kind === 'timer' ? entry.key : entry.stored.messageId;
}

function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}

function sayAnswer(plan: CommitPlan, partition: number, command: SessionCommand, answer: Answer | null, repeat: boolean): void {
  if (command.answerTo === null || answer === null) return;
  plan.after.answers.push({ partition, gateway: command.answerTo, commandId: command.commandId, answer, repeat });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}`.slice(0, MAX_REASON_CHARACTERS) : 'unknown';
}
