import { ulidTimeMs } from '#shared/ids.ts';

const TURN_CALL = /^(trn_([0-9A-HJKMNP-TV-Z]{26}))-(\d{1,6})$/;

/** A model call of a turn, parsed from its id `trn_<ulid>-<number>`. */
export interface TurnCall {
  turnId: string;
  /** From 1; each call supersedes those before it. */
  number: number;
  /** By the times of its session's log. */
  turnAtMs: number;
}

/** Null for another form of id: its order is unknown. */
export function turnCallOf(callId: string): TurnCall | null {
  const [, turnId, ulid, number] = TURN_CALL.exec(callId) ?? [];
  return turnId === undefined || ulid === undefined ? null : { turnId, number: Number(number), turnAtMs: ulidTimeMs(ulid) };
}

/** Of calls with frames, which are those for replies: a session has one turn at a time, and a turn one such call at a time. */
export function isSupersededBy(call: TurnCall | null, later: TurnCall | null): boolean {
  if (call === null || later === null) return false;
  if (call.turnId === later.turnId) return call.number < later.number;
  return call.turnAtMs < later.turnAtMs;
}
