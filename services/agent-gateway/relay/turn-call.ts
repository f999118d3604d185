import { ulidTimeMs } from '#shared/ids.ts';

const TURN_CALL = /^(trn_([0-9A-HJKMNP-TV-Z]{26}))-(\d{1,6})$/;

/** A model call of a turn, by what its id `trn_<ulid>-<number>` says. */
export interface TurnCall {
  turnId: string;
  /** Calls of a turn are numbered from 1; each makes those before it void. */
  number: number;
  /** When the turn began, epoch milliseconds by its owner's clock. */
  turnAtMs: number;
}

/** Null when the id is of another form: then nothing is known of its place among others. */
export function turnCallOf(callId: string): TurnCall | null {
  const [, turnId, ulid, number] = TURN_CALL.exec(callId) ?? [];
  return turnId === undefined || ulid === undefined ? null : { turnId, number: Number(number), turnAtMs: ulidTimeMs(ulid) };
}

/** Whether the second call makes the first one void: a session has one turn at a time, and a turn one call. */
export function isVoidedBy(call: TurnCall | null, later: TurnCall | null): boolean {
  if (call === null || later === null) return false;
  if (call.turnId === later.turnId) return call.number < later.number;
  return call.turnAtMs < later.turnAtMs;
}
