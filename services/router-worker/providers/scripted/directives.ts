/** Bound of `!repeat`. */
export const MAX_WORDS = 200_000;

const FAILURES = ['connect', 'timeout', 'stall', '429', '500', '529', 'error-event', 'cut', 'malformed', 'empty', 'refuse'] as const;
type FailureKind = (typeof FAILURES)[number];

/** Directives of the user's last message (README of this folder). */
export interface Directives {
  fail: { kind: FailureKind; afterWords: number; retryAfterMs: number | null; onModel: string | null } | null;
  /** Pause before each word. */
  slowMs: number;
  repeat: number;
}

const FAIL = /!fail\s+([a-z0-9-]+)((?:\s+(?:after|retry-after|on)=\S+)*)/;
const SLOW = /!slow\s+(\d{1,5})\b/;
const REPEAT = /!repeat\s+(\d{1,6})\b/;

/** Parses the directives and removes them from the message. */
export function readDirectives(message: string): { directives: Directives; text: string } {
  const fail = FAIL.exec(message);
  const kind = FAILURES.find((known) => known === fail?.[1]);
  const option = (name: string) => new RegExp(`(?:^|\\s)${name}=(\\S+)`).exec(fail?.[2] ?? '')?.[1] ?? null;
  const text = [...(kind === undefined ? [] : [FAIL]), SLOW, REPEAT].reduce((rest, directive) => rest.replace(directive, ''), message);
  return {
    directives: {
      fail:
        kind === undefined
          ? null
          : { kind, afterWords: wholeNumber(option('after')) ?? 0, retryAfterMs: secondsOf(option('retry-after')), onModel: option('on') },
      slowMs: wholeNumber(SLOW.exec(message)?.[1] ?? null) ?? 0,
      repeat: Math.min(MAX_WORDS, Math.max(1, wholeNumber(REPEAT.exec(message)?.[1] ?? null) ?? 1)),
    },
    text: text.trim(),
  };
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function secondsOf(text: string | null): number | null {
  const seconds = wholeNumber(text);
  return seconds === null ? null : seconds * 1_000;
}
