/** Structured model calls of one turn, repeats of malformed answers included: a thousand policies by tens, and again after tools. */
const MAX_CALLS = 256;
/** Of their prompts and replies. */
const MAX_TOKENS = 4_000_000;

/** What a turn has used. */
export interface Used {
  calls: number;
  tokens: number;
}

export const nothingUsed: Used = { calls: 0, tokens: 0 };

/** Whether a turn may make further calls. */
export function mayCall({ calls, tokens }: Used, further: number): boolean {
  return calls + further <= MAX_CALLS && tokens <= MAX_TOKENS;
}
