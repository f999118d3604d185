const TURN_CALL = /^(trn_([0-9A-HJKMNP-TV-Z]{10})[0-9A-HJKMNP-TV-Z]{16})-(\d{1,6})$/;
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

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
  const [, turnId, time, number] = TURN_CALL.exec(callId) ?? [];
  if (turnId === undefined || time === undefined) return null;
  let turnAtMs = 0;
  for (const letter of time) turnAtMs = turnAtMs * 32 + CROCKFORD.indexOf(letter);
  return { turnId, number: Number(number), turnAtMs };
}

/** Whether the second call makes the first one void: a session has one turn at a time, and a turn one call. */
export function isVoidedBy(call: TurnCall | null, later: TurnCall | null): boolean {
  if (call === null || later === null) return false;
  if (call.turnId === later.turnId) return call.number < later.number;
  return call.turnAtMs < later.turnAtMs;
}
